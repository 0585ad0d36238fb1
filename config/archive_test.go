package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

func TestDirectoryIsAShortFormOfAURL(t *testing.T) {
	for text, want := range map[string]Archive{
		`{file: ./archive}`: {URL: "file:///etc/tailrace/archive",
			File: "/etc/tailrace/archive", Format: "json"},
		`{file: "/a b"}`:                         {URL: "file:///a%20b", File: "/a b", Format: "json"},
		`{url: "file:///var/archive"}`:           {URL: "file:///var/archive", Format: "parquet"},
		`{url: "file://archive/x?a=b"}`:          {URL: "file:///etc/tailrace/archive/x?a=b", Format: "parquet"},
		`{url: "file:../archive", format: json}`: {URL: "file:///etc/archive", Format: "json"},
		`{url: "s3://b/p?region=eu-west-1"}`:     {URL: "s3://b/p?region=eu-west-1", Format: "parquet"},
		`{url: "gs://b", subject: a.b}`:          {URL: "gs://b", Format: "parquet", Subject: "a.b"},
		`{url: "azblob://container/prefix/"}`:    {URL: "azblob://container/prefix/", Format: "parquet"},
		`{subject: a.b, classes: [ttl]}`:         {Subject: "a.b"},
		`{}`:                                     {},
		`{url: "s3://b", columns: {c: {type: bool}}}`: {URL: "s3://b", Format: "parquet",
			Columns: map[string]Column{"c": {"c", "bool"}}},
	} {
		cfg, problems := parse(t, smallest+"archive: "+text+"\n")
		if len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
		d := Default().Archive
		want.Classes, want.Roll, want.OnStall, want.MaxBytes = d.Classes, d.Roll, d.OnStall, d.MaxBytes
		if diff := cmp.Diff(want, cfg.Archive); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
		if wants := want.URL+want.Subject != ""; cfg.Archive.Enabled() != wants {
			t.Errorf("%s: enabled %v", text, !wants)
		}
	}
}

func TestArchiveThatCannotBeIsRefusedWithEveryReason(t *testing.T) {
	for text, want := range map[string]string{
		`{url: "s3://b", file: x}`: `archive: archive.url and archive.file exclude each other`,
		`{file: x, format: parquet, classes: [], roll: 500ms, on_stall: drop, max_bytes: 63MiB}`: `
archive.format: archive.file holds JSON lines only
archive.classes: no deletions are archived
archive.roll: an object is open from 1s to 24h, not 500ms
archive.on_stall: "drop" is not a possible value
archive.max_bytes: 63MiB is too small: the archive's stream holds every event of an object that is not complete`,
		`{url: "s3://b", classes: [user]}`: `
archive.classes: deletions by time to live are always archived, so ttl is one of the classes`,
		`{url: "http://b/x", format: csv, classes: [ttl, healed, ttl, all], roll: 25h}`: `
archive.url: "http://b/x" is not the place of objects
archive.format: "csv" is not a possible value
archive.classes[1]: the class healed is made by healing a gap, and not chosen here
archive.classes[2]: "ttl" is listed twice
archive.classes[3]: "all" is not a possible value
archive.roll: an object is open from 1s to 24h, not 25h0m0s`,
		`{subject: a.b, format: json, roll: 1h}`: `
archive.format: archive.format is about objects, and these have no place
archive.roll: archive.roll is about objects, and these have no place`,
		`{url: "file://"}`: `archive.url: "file://" is not the place of objects`,
		`{url: "s3:///p"}`: `archive.url: "s3:///p" is not the place of objects`,
		`{url: "s3://a:s3cret@b/p"}`: `archive.url: a store's URL has no user and no password: ` + "" +
			`credentials come from the cloud's default chain`,
		`{url: "file:///a#b"}`: `archive.url: a store's URL has no part behind #: write %23 for the character`,
		`{url: "s3://b", columns: {_x: {type: int}, tr_x: {type: int64}, X: {type: bool}, x: {type: bool, path: a..b},` +
			` y: {type: "decimal(39,0)"}, z: {type: "decimal(2,3)"}, w: {}, v: text}}`: `
archive.columns.v: the text @text@ does not fit: expected a block of keys
archive.columns.X: "X" is not a name that every reader takes
archive.columns._x: "_x" is not a name that every reader takes
archive.columns.tr_x: every object has a column or a partition of that name
archive.columns.w.type: a column needs a type
archive.columns.x.path: "a..b" is not the path of an attribute
archive.columns.y.type: "decimal(39,0)" is not the type of a column
archive.columns.z.type: "decimal(2,3)" is not the type of a column`,
		`{file: f, columns: {x: {type: bool}}}`: `archive.columns: objects of JSON lines have no columns`,
	} {
		_, problems := parse(t, smallest+"archive: "+text+"\n")
		var got []string
		for _, p := range problems {
			got = append(got, strings.TrimPrefix(p.String(), "error: line 8: "))
			if p.Hint == "" {
				t.Errorf("%s: no hint", p)
			}
			if strings.Contains(p.String()+p.Hint, "s3cret") {
				t.Errorf("a password is repeated: %s", p)
			}
		}
		if d := cmp.Diff(strings.TrimSpace(strings.ReplaceAll(want, "@", "`")), strings.Join(got, "\n")); d != "" {
			t.Errorf("%s:\n%s", text, d)
		}
	}
}

// TestColumnsAreThoseOfObjects: what the configuration takes, objects take, and the other way
// round.
func TestColumnsAreThoseOfObjects(t *testing.T) {
	names := []string{
		"price", "a_1", "A", "_a", "1a", "a-b", "", "tr_dt", "tr_x", "_misfits", "id", "deleted_at", "source", "stream",
		"shard", "sequence", "version", "keys", "item", "expires", "class",
		strings.Repeat("a", 128), strings.Repeat("a", 129),
	}
	types := []string{
		"string", "int64", "double", "bool", "timestamp_s", "timestamp_ms", "json", "decimal(38,38)", "decimal(1, 0)",
		"decimal(0,0)", "decimal(39,1)", "decimal(2,3)", "decimal", "text", "",
	}
	for i := range len(names) + len(types) {
		name, kind := names[min(i, len(names)-1)], "bool"
		if i >= len(names) {
			name, kind = "price", types[i-len(names)]
		}
		_, problems := parse(t, fmt.Sprintf("%sarchive: {url: \"s3://b\", columns: {%q: {type: %q, path: a}}}\n",
			smallest, name, kind))
		wrong := object.ValidateColumns([]object.Column{{Name: name, Path: []string{"a"}, Type: object.Type(kind)}})
		if problem.AnyError(problems) != (len(wrong) > 0) {
			t.Errorf("column %q of type %q: %v here, %v for objects", name, kind, problems, wrong)
		}
	}
}
