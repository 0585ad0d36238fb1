package transform

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const outliving = `
families: {d: {}, h: {max_versions: 5, removed: keep}, e: {max_versions: 5, removed: empty}, t: {max_versions: 5},
  top: {aggregate: max}, arch: {}}
rules:
- {name: kept, match: {pk: "k#{p}", sk: "{s}"}, row: "k#{p}#{s}", cells: [{attr: v, to: "d:v"}], on_ttl_expiry: keep}
- {name: archived, match: {pk: "a#{p}", sk: "{s}"}, row: "a#{p}#{s}", cells: [{attr: v, to: "d:v"}],
  on_ttl_expiry: "archive:arch"}
- {name: histories, match: {pk: "h#{p}", sk: "{s}"}, row: "h#{p}#{s}",
  cells: [{attr: v, to: "h:v"}, {attr: w, to: "e:w"}, {attr: x, to: "t:x"}]}
- {name: ended, match: {pk: "t#{p}", sk: "{s}"}, row: "t#{p}#{s}", cells: [{attr: v, to: "t:v"}], on_remove: tombstone}
- {name: most, match: {pk: "m#{p}", sk: "{s}"}, row: "m#{p}", cells: [{attr: v, to: "top:v", as: int64, ts: "0"}]}
- {name: video, match: {pk: "v#{p}", sk: "V"}, row: "v#{p}", cells: [{attr: v, to: "d:v"}], on_remove: row,
  acknowledged: [cascade]}
- {name: plain, match: {pk: "p#{p}", sk: "{s}"}, row: "p#{p}#{s}", cells: [{attr: v, to: "d:v"}]}
`

func TestWhatMayOutliveItsItem(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, outliving)
	want := []Outlive{
		{Rule: "kept", Why: "on_ttl_expiry: keep"},
		{Rule: "archived", Family: "arch", Why: "on_ttl_expiry: archive:arch"},
		{Rule: "histories", Family: "h", Why: "removed: keep"},
		{Rule: "histories", Family: "e", Why: "removed: empty"},
		{Rule: "ended", Family: "t", Why: "on_remove: tombstone"},
		{Rule: "most", Family: "top", Why: "aggregate: max"},
		{Rule: "video", Why: "on_remove: row", Lacks: true},
	}
	if diff := cmp.Diff(want, p.MayOutlive()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		row, family, qualifier, pk string
		emptied                    bool
		why                        string
	}{
		{"k#1#s", "d", "v", "k#1", false, "on_ttl_expiry: keep"},
		{"k#1#s", "d", "v", "", false, "on_ttl_expiry: keep"},
		{"k#1#s", "d", "v", "k#2", false, ""}, // another item's row
		{"k#1#s", "d", "other", "k#1", false, ""},
		{"a#1#s", "arch", `{"pk":{"S":"a#1"},"sk":{"S":"s"}}`, "", false, "on_ttl_expiry: archive:arch"},
		{"a#1#s", "d", "v", "a#1", false, ""},
		{"h#1#s", "h", "v", "h#1", false, "removed: keep"},
		{"h#1#s", "e", "w", "h#1", true, "removed: empty"},
		{"h#1#s", "e", "w", "h#1", false, ""}, // its removal would have ended it
		{"h#1#s", "t", "x", "h#1", true, ""},
		{"t#1#s", "t", "v", "t#1", true, "on_remove: tombstone"},
		{"t#1#s", "t", "v", "t#1", false, ""},
		{"m#1", "top", "v", "m#1", false, "aggregate: max"},
		{"v#1", "d", "v", "", false, ""},
		{"p#1#s", "d", "v", "p#1", false, ""},
		{"z", "d", "v", "", false, ""},
	} {
		alone := CellAlone{Row: []byte(c.row), Family: c.family, Qualifier: []byte(c.qualifier),
			Emptied: c.emptied}
		if c.pk != "" {
			alone.Keys = image(t, []byte(`{"pk":{"S":"`+c.pk+`"},"sk":{"S":"s"}}`))
		}
		code := map[string]RemainingCode{"": RemainsNot, "on_ttl_expiry: keep": RemainsWhileAbsent}
		want := Remaining{Code: Remains, Why: c.why}
		if of, ok := code[c.why]; ok {
			want.Code = of
		}
		if r := p.Outlives(alone); r != want {
			t.Errorf("%s %s:%s of item %q, emptied %v: %v, want %v", c.row, c.family, c.qualifier, c.pk, c.emptied, r, want)
		}
	}
	if plain := compiled(t, Table{Schema: schema("pk:S")}, ""); len(plain.MayOutlive()) > 0 {
		t.Errorf("the default mapping: %v", plain.MayOutlive())
	}
}
