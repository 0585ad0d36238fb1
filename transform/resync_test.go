package transform

import (
	gocmp "cmp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// versions are the cells of families that keep histories, and the live guards apart from their
// times: what a resync of a correct table must not change.
func (m *model) versions(p *Program) map[string][]modelCell {
	out := map[string][]modelCell{}
	for key, row := range m.rows {
		for _, c := range row.cells {
			if c.family == LiveFamily {
				c.time = 0
			}
			i := slices.IndexFunc(p.prog.FamilyRules, func(f *ir.FamilyRule) bool { return f.Name == c.family && f.History })
			if i >= 0 || c.family == LiveFamily {
				out[key] = append(out[key], c)
			}
		}
		slices.SortFunc(out[key], compareCells)
	}
	return out
}

func compareCells(a, b modelCell) int {
	return gocmp.Or(strings.Compare(a.family, b.family), strings.Compare(a.qual, b.qual), int(a.time-b.time))
}

const late = 9_000_000 // a version after those of every history

// TestResyncOfACorrectTableChangesNothing: every mapping, any key; rows that are read are not even
// written.
func TestResyncOfACorrectTableChangesNothing(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		deliver(t, p, m, h.changes)
		before, versions := m.plain(s.siblings), m.versions(p)
		for i := range int64(2) {
			key := rapid.SampledFrom(s.keys).Draw(t, "key")
			r := resyncOf(t, p, key, h.items[key], late+i)
			r.First = rapid.Bool().Draw(t, "first")
			w := m.resync(t, p, r)
			if diff := cmp.Diff(before, m.plain(s.siblings)); diff != "" {
				t.Fatalf("a plain reader sees a change (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(versions, m.versions(p), cmp.AllowUnexported(modelCell{})); diff != "" {
				t.Fatalf("versions or guards changed (-before +after):\n%s", diff)
			}
			if r.Equal && len(w.Rows) > 0 {
				t.Fatalf("equal, but %d rows are written", len(w.Rows))
			}
		}
		expectEqual(t, p, m, h, s.siblings)
	})
}

// TestResyncHealsLostChanges: changes are lost, as in a gap; then every item is resynced, with the
// rows that a difference names: all that the item was ever in.
func TestResyncHealsLostChanges(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		images := map[string][]string{}
		for _, c := range h.changes {
			key := string(c.Keys)
			for _, img := range [][]byte{c.Old, c.New} {
				if img != nil {
					images[key] = append(images[key], string(img))
				}
			}
			if rapid.IntRange(0, 2).Draw(t, "lost") > 0 {
				deliver(t, p, m, []*change.Change{c})
			}
		}
		open := false // something remains that the resync says it cannot prove, or must keep
		for i, key := range s.keys {
			r := resyncOf(t, p, key, h.items[key], late+int64(i))
			r.Rows = rowsOf(t, p, images[string(r.Keys)]...)
			m.resync(t, p, r)
			open = open || len(r.Unproven) > 0 || r.Kept > 0
		}
		if !open {
			expectEqual(t, p, m, h, s.siblings)
		}
	})
}
