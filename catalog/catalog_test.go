package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

const mapping = `families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{attrs: all, except: [pk], to: "d:{attr}"}]}]`

func configured(tables ...config.Table) *config.Config {
	cfg := config.Default()
	cfg.Pipeline, cfg.File, cfg.Tables = "shop", "tailrace.yaml", tables
	return &cfg
}

func table(source, target, text string, keys ...string) config.Table {
	t := config.Table{Source: source, Target: target, Keys: keys, OnTTLExpiry: "delete"}
	if text != "" {
		t.Mapping = config.Mapping{File: "m.yaml", Data: []byte(text)}
	}
	return t
}

// TestProblemsNameTheirPlaceInTheConfiguration: of the file, of the compiler, of the key, of
// archive and secrets.
func TestProblemsNameTheirPlaceInTheConfiguration(t *testing.T) {
	archives := strings.Replace(mapping, `row: "{p}",`, `row: "{p}", on_ttl_expiry: archive,`, 1)
	hashed := `{pii: [pk], secrets: {s: "0123456789abcdef"}, families: {d: {}}, rules: [{name: r, match: {pk: "{p}"},
row: "{p|hmac(s,32)}", cells: [{attr: v, to: "d:v"}]}]}`
	for name, c := range map[string]struct {
		table config.Table
		want  string // code, and path
	}{
		"good":              {table("T", "t", mapping, "pk:S"), ""},
		"without a mapping": {table("T", "t", "", "pk:S"), ""},
		"a wrong key":       {table("T", "t", "rulez: []", "pk:S"), "unknown_key tables[0].mapping.rulez"},
		"no archive":        {table("T", "t", archives, "pk:S"), "missing tables[0].mapping"},
		"no secret":         {table("T", "t", hashed, "pk:S"), "missing tables[0].mapping"},
	} {
		cfg := configured(c.table)
		_, err := Load(t.Context(), cfg, nil)
		var bad *ProblemsError
		got := ""
		if errors.As(err, &bad) {
			got = bad.Problems[0].Code + " " + bad.Problems[0].Path
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	sealing := configured(table("T", "t", hashed, "pk:S"))
	sealing.PIISecrets = []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
	if _, err := Load(t.Context(), sealing, nil); err != nil {
		t.Errorf("with a secret: %v", err)
	}
	all, _ := Parse(configured(table("T", "t", mapping, "id:S")))
	all.Tables[0].TakeDeclaredKey()
	all.Tables[0].Keys = config.Keys{"pk:S"} // as if DynamoDB had described another key
	if p := all.Compile(); len(p) == 0 || p[0].Code != "keys" || p[0].Path != "tables[0].keys" {
		t.Errorf("%+v", p)
	}
}

// TestTableWithoutTargetIsNotWarnedAboutRows: that 9 sorts after 10 in row keys hurts nobody where
// there are no rows.
func TestTableWithoutTargetIsNotWarnedAboutRows(t *testing.T) {
	for target, want := range map[string]int{"t": 1, "": 0} {
		all, _ := Parse(configured(table("T", target, "", "pk:S", "sk:N")))
		all.Tables[0].TakeDeclaredKey()
		if p := all.Compile(); len(p) != want {
			t.Errorf("target %q: %+v", target, p)
		}
	}
}

// TestTablesOfATargetAreProvedTogether: two sources that may write the same rows of one target are
// refused, each alone is not; and a running pipeline compiles a table together with the others of
// its target.
func TestTablesOfATargetAreProvedTogether(t *testing.T) {
	shared := configured(table("A", "t", mapping, "pk:S"), table("B", "t", mapping, "pk:S"))
	var bad *ProblemsError
	if _, err := Load(t.Context(), shared, nil); !errors.As(err, &bad) || !problem.AnyError(bad.Problems) {
		t.Errorf("two sources of a target: %v", err)
	}
	apart := configured(table("A", "a", mapping, "pk:S"), table("B", "b", mapping, "pk:S"))
	all, err := Load(t.Context(), apart, nil)
	if err != nil {
		t.Fatal(err)
	}
	info := source.TableInfo{Schema: all.Table("A").Info.Schema}
	p, err := CompileTable(t.Context(), apart, nil, apart.Tables[0], info) // no source: B needs no description
	if err != nil || p.Hash() != all.Table("A").Program.Hash() {
		t.Errorf("compiled alone: %v", err)
	}
	if all.Table("C") != nil {
		t.Error("a table that is not configured is found")
	}
}

// TestTargetsAndWhatTheSinkNeedsAreMade: a target once, with the families of all its sources.
func TestTargetsAndWhatTheSinkNeedsAreMade(t *testing.T) {
	all, err := Load(t.Context(), configured(table("A", "a", mapping, "pk:S"), table("B", "b", "", "pk:S")), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range all.BigtableTables() {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "a b tailrace_state" {
		t.Error(got)
	}
}

func TestSelectNamesWhatIsConfigured(t *testing.T) {
	cfg := configured(table("A", "a", ""), table("B", "b", "", "pk:S"))
	if all, err := Select(cfg, ""); err != nil || len(all) != 2 {
		t.Errorf("%v %v", all, err)
	}
	if one, err := Select(cfg, "B"); err != nil || len(one) != 1 || one[0].Target != "b" {
		t.Errorf("%v %v", one, err)
	}
	_, err := Select(cfg, "C")
	if class, hint := failure.Of(err); class != failure.Usage || !strings.Contains(hint, "A, B") {
		t.Errorf("%v", err)
	}
	const arn = "arn:aws:dynamodb:eu-west-1:222222222222:table/B"
	cfg.Tables[1].ARN = arn
	if one, err := Select(cfg, arn); err != nil || len(one) != 1 || one[0].Source != "B" {
		t.Errorf("%v %v", one, err)
	}
	if KeysDeclared(cfg) || !KeysDeclared(configured(cfg.Tables[1])) {
		t.Error("KeysDeclared")
	}
}
