package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
)

// TestTableHasItsOwnArchive: what it does not say, the archive of all tables says.
func TestTableHasItsOwnArchive(t *testing.T) {
	cfg, problems := parse(t, archivedOnly(`{classes: [user, ttl], columns: {a: {type: string}}}`))
	if problem.AnyError(problems) {
		t.Fatal(problems)
	}
	sessions := &cfg.Tables[0]
	if !sessions.ArchivedOnly() || sessions.OnTTLExpiry != "archive" || sessions.Backfill.From != "none" {
		t.Errorf("%+v", sessions)
	}
	want := TableArchive{
		Classes: []string{"user", "ttl"}, Roll: Duration(2 * time.Hour), Columns: map[string]Column{"a": {"a", "string"}},
	}
	if d := cmp.Diff(want, cfg.ArchiveOf(sessions)); d != "" {
		t.Error(d)
	}
	want = TableArchive{
		Classes: []string{"ttl"}, Roll: Duration(2 * time.Hour), Columns: map[string]Column{"b": {"b", "json"}},
	}
	if d := cmp.Diff(want, cfg.ArchiveOf(&cfg.Tables[1])); d != "" {
		t.Error(d)
	}
	if some := cfg.Replicated(); len(some.Tables) != 1 || some.Tables[0].Source != "Orders" {
		t.Errorf("%+v", some.Tables)
	}
}

// archivedOnly returns a configuration of a table without a target, and of one with.
func archivedOnly(archive string) string {
	return `pipeline: shop
source: {region: eu-west-1}
bigtable: {project: p, instance: i}
queue: {dir: d}
archive: {url: "file:///a", roll: 2h, columns: {b: {type: json}}}
tables:
- {source: Sessions, archive: ` + archive + `}
- {source: Orders, target: orders, archive: {}}
`
}

// TestTableWithoutTargetNeedsAnArchive: and nothing that only rows have.
func TestTableWithoutTargetNeedsAnArchive(t *testing.T) {
	text := archivedOnly("{}")
	for name, c := range map[string]struct{ from, to, path, what string }{
		"as it is":          {"", "", "", ""},
		"bigtable is empty": {"- {source: Orders, target: orders, archive: {}}\n", "", "", ""},
		"nothing in its place": {", archive: {}}\n- {source: Orders", "}\n- {source: Orders",
			"tables[0].target", "required"},
		"a subject alone": {`url: "file:///a", roll: 2h, columns: {b: {type: json}}`, "subject: s",
			"archive.url", "objects"},
		"no archive": {`archive: {url: "file:///a", roll: 2h, columns: {b: {type: json}}}` + "\n", "",
			"tables[0].archive", "no place"},
		"a mapping": {"Sessions, ", "Sessions, mapping: {preset: default}, ",
			"tables[0].mapping", "no target"},
		"a comparison": {"Sessions, ", "Sessions, verify: {read_units: 5}, ",
			"tables[0].verify", "no target"},
		"a backfill": {"Sessions, ", "Sessions, backfill: scan, ", "tables[0].backfill", "no target"},
		"another expiry": {"Sessions, ", "Sessions, on_ttl_expiry: keep, ",
			"tables[0].on_ttl_expiry", "to be archived"},
		"an impossible class": {"Sessions, archive: {}", "Sessions, archive: {classes: [healed]}",
			"tables[0].archive.classes[0]", "healed"},
		"an impossible roll": {"Sessions, archive: {}", "Sessions, archive: {roll: 1ms}",
			"tables[0].archive.roll", "open"},
		"an impossible column": {"Sessions, archive: {}", "Sessions, archive: {columns: {id: {type: string}}}",
			"tables[0].archive.columns.id", "every object"},
		"Bigtable by half": {"project: p, ", "", "bigtable.project", "required"},
		"an archive with no on": {"target: orders, ", "target: orders, on_ttl_expiry: delete, ",
			"tables[1].on_ttl_expiry", "to be archived"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		if name == "bigtable is empty" {
			changed = strings.Replace(changed, "{project: p, instance: i}", `{project: "", instance: ""}`, 1)
		}
		_, problems := parse(t, changed)
		var found []string
		ok := c.path == "" && !problem.AnyError(problems)
		for _, p := range problems {
			found = append(found, p.Path+": "+p.What)
			ok = ok || p.Severity == problem.SeverityError && p.Path == c.path && strings.Contains(p.What, c.what)
		}
		if !ok {
			t.Errorf("%s: %q", name, found)
		}
		if name == "no archive" && len(found) != 2 { // one of each table
			t.Errorf("%s: one cause is reported as %q", name, found)
		}
	}
}

// TestNameThatNoDirectoryTakesIsRefused: tr_table=NAME would be longer than a name on a file
// system. In a bucket it is part of a key.
func TestNameThatNoDirectoryTakesIsRefused(t *testing.T) {
	name := strings.Repeat("n", 247)
	for archive, want := range map[string]string{
		`{url: "file://archive"}`:                     "file systems take 255",
		`{file: archive}`:                             "file systems take 255",
		`{url: "s3://acme/cold?region=eu-central-1"}`: "",
	} {
		text := strings.Replace(smallest, "tables:\n- {source: Products,", "archive: "+archive+
			"\ntables:\n- {source: "+name+", on_ttl_expiry: archive,", 1)
		_, problems := parse(t, text)
		if got := fmt.Sprint(problems); want == "" && problem.AnyError(problems) || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", archive, got, want)
		}
		text = strings.Replace(text, "- {source: "+name+",", "- {source: \"*\",", 1)
		cfg, _ := parse(t, strings.Replace(text, "target: products", `target: "s{table}"`, 1))
		_, problems = cfg.Expand([]Listed{{Name: name}})
		if got := fmt.Sprint(problems); !strings.Contains(got, want) {
			t.Errorf("%s, found: %s, want %q", archive, got, want)
		}
	}
}
