package verify

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestRandomDamageIsFoundAndNothingElse: changes that only the source has, as in a gap, and cells
// that somebody else wrote. Every item that was changed in the gap is repaired, and no other one;
// afterwards a plain reader sees the source, and a second resync writes nothing.
func TestRandomDamageIsFoundAndNothingElse(t *testing.T) {
	engines := make([]*engine, len(histories))
	for i, kind := range histories {
		engines[i] = newEngine(t, kind.mapping)
	}
	rapid.Check(t, func(r *rapid.T) {
		at := rapid.IntRange(0, len(histories)-1).Draw(r, "mapping")
		e, kind := engines[at], histories[at]
		sorts := kind.sorts
		key := func() (pk, sk string) {
			return fmt.Sprint("p", rapid.IntRange(0, 3).Draw(r, "pk")), rapid.SampledFrom(sorts).Draw(r, "sk")
		}
		content := func() string {
			s := fmt.Sprintf(`"text":{"S":"t%d"}`, rapid.IntRange(0, 2).Draw(r, "text"))
			for _, attr := range []string{"x", "y"} {
				if rapid.Bool().Draw(r, attr) {
					s += fmt.Sprintf(`,%q:{"S":"%d"}`, attr, rapid.IntRange(0, 9).Draw(r, "value"))
				}
			}
			return s
		}
		for range rapid.IntRange(0, 20).Draw(r, "changes") {
			pk, sk := key()
			if _, here := e.items[keyOf(pk, sk)]; here && rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				e.put(pk, sk, "")
			} else {
				e.put(pk, sk, content())
			}
		}
		before := maps.Clone(e.items)
		for range rapid.IntRange(0, 5).Draw(r, "lost") {
			pk, sk := key()
			if rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				e.lose(pk, sk, "")
			} else {
				e.lose(pk, sk, content())
			}
		}
		e.repaired = nil
		res := e.resync()
		if healed, why := res.Healed(false); !healed {
			r.Fatalf("%s: %s: %+v", kind.name, why, res)
		}
		for _, x := range e.repaired {
			if before[x.Key] == e.items[x.Key] {
				r.Fatalf("%s: %s was repaired, and did not differ", kind.name, x.Key)
			}
		}
		if c := e.compare(oracle.Options{}); !c.Equal() {
			r.Fatalf("%s: cell by cell: %+v", kind.name, c)
		}
		if again := e.resync(); again.Counts.Candidates > 0 || again.Written > 0 {
			r.Fatalf("%s: again: %+v", kind.name, again)
		}
		e.version += 120_000 // the repairs' versions lie above those so far
	})
}

// TestRandomForeignCellsAreForeign: no cell that somebody else wrote is counted as anything else,
// or repaired.
func TestRandomForeignCellsAreForeign(t *testing.T) {
	e := newEngine(t, sharedRows)
	for i := range 20 {
		e.put(fmt.Sprint("p", i%5), fmt.Sprint(i), `"x":{"S":"1"}`)
	}
	seen := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		row := fmt.Sprint("p", rapid.IntRange(0, 9).Draw(r, "row"))
		column := rapid.StringMatching(`[a-z]{1,3}`).Draw(r, "column")
		if !seen[row+" "+column] {
			seen[row+" "+column] = true
			e.foreignCell(row, column)
		}
		f := e.full(e.options())
		if c := f.Counts; c.Foreign != int64(len(seen)) || c.Candidates+c.Unproven+c.Kept > 0 {
			r.Fatalf("%d foreign cells: %+v", len(seen), c)
		}
		if err := f.Remove(); err != nil {
			r.Fatal(err)
		}
	})
}

// foreignCell sets a cell without a guard that can be read.
func (e *engine) foreignCell(row, column string) {
	e.t.Helper()
	e.version++
	e.write(&transform.Write{Item: transform.Item{Guard: [16]byte{1}, Table: "foreign"},
		Version: change.Version(e.version), Rows: []transform.Row{{Key: []byte(row), Class: transform.ClassK,
			Cells: []transform.Cell{{Family: "d", Qualifier: []byte(column), Value: []byte("?")}}}}})
}

func TestCandidatesComeOnceEachInBatches(t *testing.T) {
	e := newEngine(t, "")
	for i := range 25 {
		e.lose("p", fmt.Sprintf("%02d", i), `"x":{"S":"1"}`)
	}
	f := e.full(e.options())
	var keys []string
	sizes := []int{}
	err := f.Candidates(10, func(batch []Candidate) error {
		sizes = append(sizes, len(batch))
		for _, c := range batch {
			keys = append(keys, c.Key)
		}
		return nil
	})
	if err != nil || !slices.Equal(sizes, []int{10, 10, 5}) || !slices.IsSorted(keys) || len(keys) != 25 {
		t.Errorf("%v, %d keys, %v", sizes, len(keys), err)
	}
}
