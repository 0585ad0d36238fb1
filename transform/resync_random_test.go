package transform

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

// TestRandomMappingsAreHealed loses changes under random mappings, and then resyncs every item with
// the rows that it was ever in.
func TestRandomMappingsAreHealed(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var p *Program
		var text string
		for range 10 {
			text = drawMapping(t)
			m, _ := ParseMapping("m.yaml", []byte(text))
			if p, _ = Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"),
				Mapping: m}); p != nil {
				break
			}
		}
		if p == nil {
			return
		}
		h := drawHistory(t, p, randomKeys, func(t *rapid.T, k string) string { return strings.Trim(drawBody(t, k), ",") })
		if slices.ContainsFunc(h.changes, func(c *change.Change) bool { return refused(t, p, c) }) {
			return
		}
		table := newModel()
		images := map[string][]string{}
		for _, c := range h.changes {
			for _, img := range [][]byte{c.Old, c.New} {
				if img != nil {
					images[string(c.Keys)] = append(images[string(c.Keys)], string(img))
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "lost") > 0 {
				table.apply(t, writeOf(t, p, c))
			}
		}
		open := false
		for i, key := range randomKeys {
			r := resyncOf(t, p, key, h.items[key], late+int64(i))
			r.Rows = rowsOf(t, p, images[string(r.Keys)]...)
			table.resync(t, p, r)
			open = open || len(r.Unproven) > 0
		}
		if !open {
			taken++
			defer func() {
				if t.Failed() {
					t.Log(text)
				}
			}()
			expectEqual(t, p, table, h, nil)
		}
	})
	if taken == 0 {
		t.Error("no history was compared: the test proves nothing")
	}
	t.Logf("%d histories compared", taken)
}
