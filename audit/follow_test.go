package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
)

// moving is a mapping: an item's row depends on the attribute place, and an item without it is
// refused.
const moving = `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}#{place}"
  cells: [{attrs: all, except: [pk, sk, place], to: "d:{attr}"}]
`

// pairOf returns the pair of one target without servers.
func pairOf(t *testing.T, mappings ...string) *pair.Pair {
	t.Helper()
	all := &pair.Pair{Target: "orders"}
	for i, text := range mappings {
		one := config.Table{Source: string(rune('A' + i)), Target: "orders", Keys: config.Keys{"pk:S", "sk:S"},
			OnTTLExpiry: "delete"}
		if text != "" {
			one.Mapping = config.Mapping{File: "m.yaml", Data: []byte(text)}
		}
		cfg := config.Default()
		cfg.Pipeline, cfg.Tables = "shop", []config.Table{one} // each by itself, because they would share rows
		tables, err := catalog.Load(t.Context(), &cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Tables = append(all.Tables, tables.Tables...)
	}
	return all
}

// TestEntriesThatMakeTheComparisonUseless: what is done to rows beside the changes of the log, and
// what is missing in it, behind the begin of the kept comparison; nothing before it.
func TestEntriesThatMakeTheComparisonUseless(t *testing.T) {
	pause := true
	for name, c := range map[string]struct {
		body any
		why  string
	}{
		"start":        {&checkpoint.Start{}, "began before a stream"},
		"gap":          {&checkpoint.Gap{}, "before a loss"},
		"copy":         {&checkpoint.Copy{}, "end of a copy"},
		"copied":       {&checkpoint.CopyMarks{}, "end of a copy"},
		"healed":       {&checkpoint.Healed{}, "before a resync"},
		"archive":      {&checkpoint.Healed{Exports: []string{"e"}}, ""},
		"lost shards":  {&checkpoint.Graph{Gone: []string{"s"}}, "before a loss"},
		"listing":      {&checkpoint.Graph{}, ""},
		"resync":       {&checkpoint.Control{Resync: &checkpoint.ResyncOrder{}}, "before a resync"},
		"mapping":      {&checkpoint.Control{Accept: &checkpoint.Accept{}}, "change of the mapping"},
		"copy command": {&checkpoint.Control{Copy: &checkpoint.CopyOrder{}}, "command to the copy"},
		"pause":        {&checkpoint.Control{Pause: &pause}, ""},
		"fence":        {&checkpoint.Control{Fence: &checkpoint.FenceOrder{}}, ""},
		"undo":         {&checkpoint.Control{Fence: &checkpoint.FenceOrder{Undo: true}}, "before the undo of a fence"},
		"unknown":      {&struct{}{}, "an entry of an unknown kind"},
		"claim":        {&checkpoint.Claim{}, ""},
		"marks":        {&checkpoint.Marks{}, ""},
		"beat":         {&checkpoint.Beat{}, ""},
	} {
		const begun = 7
		for seq, want := range map[uint64]string{begun - 1: "", begun: "", begun + 1: c.why} {
			f := follower{pair: pairOf(t, ""), keys: &keys{}, result: &Saved{Tables: []SavedTable{{Begun: begun}}}}
			if err := f.entry(0, &queue.WalkedEntry{Entry: &checkpoint.Entry{Body: c.body}, Seq: seq}); err != nil {
				t.Fatal(err)
			}
			if got := f.keys.Broken; !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s, entry %d: %q", name, seq, got)
			}
		}
		since := follower{pair: pairOf(t, ""), keys: &keys{}} // a time, and no comparison
		if err := since.entry(0, &queue.WalkedEntry{Entry: &checkpoint.Entry{Body: c.body}, Seq: 1}); err != nil ||
			since.keys.Broken != "" {
			t.Errorf("%s since a time: %q, %v", name, since.keys.Broken, err)
		}
	}
	first := follower{pair: pairOf(t, ""), keys: &keys{}, result: &Saved{Tables: []SavedTable{{}}}}
	for _, e := range []*checkpoint.Entry{{Body: &checkpoint.Gap{}}, {Body: &checkpoint.Start{}}} {
		err := first.entry(0, &queue.WalkedEntry{Entry: e, Seq: 1})
		if err != nil || !strings.Contains(first.keys.Broken, "loss") {
			t.Errorf("the first reason stays: %q, %v", first.keys.Broken, err)
		}
	}
}

// TestChangedItemsHaveTheRowsOfBothImages: those that it has left, too. An image that the mapping
// refuses has none.
func TestChangedItemsHaveTheRowsOfBothImages(t *testing.T) {
	image := func(sk, rest string) []byte {
		return []byte(`{"pk":{"S":"p"},"sk":{"S":"` + sk + `"}` + rest + `}`)
	}
	s := pairOf(t, moving)
	f := follower{pair: s, keys: newKeys(t, t.TempDir(), checkpoint.Mark{})}
	for sk, c := range map[string]*change.Change{
		"moved":   {Old: image("moved", `,"place":{"S":"a"}`), New: image("moved", `,"place":{"S":"b"}`)},
		"new":     {New: image("new", `,"place":{"S":"a"}`)},
		"removed": {Old: image("removed", `,"place":{"S":"a"}`)},
		"refused": {Old: image("refused", `,"place":{"S":"a"}`), New: image("refused", `,"place":{"L":[]}`)},
		"unknown": {},
	} {
		c.Keys = image(sk, "")
		if err := f.change(0, &queue.WalkedChange{Change: c}); err != nil {
			t.Errorf("%s: %v", sk, err)
		}
	}
	mustSave(t, f.keys)
	key := func(sk string) string { return `0 {"pk":{"S":"p"},"sk":{"S":"` + sk + `"}}` }
	want := [][]string{{key("moved") + " p#moved#a p#moved#b", key("new") + " p#new#a", key("refused") + " p#refused#a",
		key("removed") + " p#removed#a", key("unknown")}}
	if d := cmp.Diff(want, items(t, f.keys.each, 10)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for name, c := range map[string]*change.Change{
		"no keys": {Keys: []byte(`{`)}, "an image": {Keys: image("x", ""), New: []byte(`{`)},
	} {
		if err := f.change(0, &queue.WalkedChange{Change: c}); err == nil {
			t.Errorf("damaged: %s", name)
		}
	}
}

// TestResultOfOtherTablesIsUseless: each part of what the kept comparison is of.
func TestResultOfOtherTablesIsUseless(t *testing.T) {
	s := pairOf(t, "", "")
	at := time.Unix(9, 0)
	tables := func() []SavedTable {
		return []SavedTable{{TableID: "a", MappingHash: "h", LogCreated: at, Life: 1},
			{TableID: "b", MappingHash: "i", LogCreated: at, Life: 2}}
	}
	for name, c := range map[string]struct {
		change func(r *Saved)
		why    string
	}{
		"nothing":                {func(*Saved) {}, ""},
		"in another time zone":   {func(r *Saved) { r.Tables[0].LogCreated = at.In(time.FixedZone("x", 3600)) }, ""},
		"more requests and mark": {func(r *Saved) { r.Tables[0].Requests.Last, r.Tables[0].Mark.Seq = 3, 4 }, ""},
		"pipeline":               {func(r *Saved) { r.Pipeline = "other" }, "other tables"},
		"target":                 {func(r *Saved) { r.Target = "other" }, "other tables"},
		"a table less":           {func(r *Saved) { r.Tables = r.Tables[:1] }, "other tables"},
		"a source":               {func(r *Saved) { r.Tables[1].Result.Source = "C" }, "another table than this B"},
		"a table made anew":      {func(r *Saved) { r.Tables[1].TableID = "c" }, "another table than this B"},
		"a mapping":              {func(r *Saved) { r.Tables[1].MappingHash = "j" }, "B with another mapping"},
		"a life":                 {func(r *Saved) { r.Tables[1].Life++ }, "before B was recovered"},
		"a log":                  {func(r *Saved) { r.Tables[0].LogCreated = at.Add(1) }, "before A was recovered"},
	} {
		r := &Saved{Pipeline: "shop", Target: "orders", Tables: tables()}
		r.Tables[0].Result.Source, r.Tables[1].Result.Source = "A", "B"
		c.change(r)
		if why := r.differs(s, "shop", tables()); !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestMappingsThatAlterOtherItems: what a change does to other items than its own, the log does not
// name.
func TestMappingsThatAlterOtherItems(t *testing.T) {
	const rules = `families: {d: {max_versions: 1}}
rules:
- {name: one, match: {pk: "{p}", sk: "a{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}]`
	for name, c := range map[string]struct{ mapping, why string }{
		"own rows":   {"", ""},
		"own cells":  {moving, ""},
		"wiped rows": {rules + `, on_remove: row}`, "on_remove"},
		"shared cells": {rules + `}
- name: two
  match: {pk: "{p}", sk: "b{s}"}
  row: "{p}#{s}"
  cells: [{attr: v, to: "d:v"}]
  may_share_cells_with: [one]`,
			"share cells"},
	} {
		s := pairOf(t, c.mapping)
		if why := alters(s); !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %q", name, why)
		}
		if c.why == "" {
			continue
		}
		both := pairOf(t, "")
		both.Tables = append(both.Tables, s.Tables...)
		if why := alters(both); why == "" {
			t.Errorf("%s in the second table is not seen", name)
		}
	}
}
