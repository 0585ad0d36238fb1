package guarded

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

// evidenceByStrength is one piece of evidence of each kind, the weakest first, with what the cell
// is by it.
var evidenceByStrength = []struct {
	Evidence
	code StandingCode
}{
	{Evidence{Guard: &Guard{}, Owns: OwnedNot, Compared: true}, CellForeign},
	{Evidence{Guard: &Guard{pipeline: "other"}, Owns: OwnedYes}, CellOfOtherPipeline},
	{Evidence{Guard: &Guard{Item: Item{Table: OtherTable}}, Owns: OwnedMaybe}, CellMaybeOtherTable},
	{Evidence{Guard: &Guard{}, Owns: OwnedMaybe, Compared: true}, CellMaybe},
	{Evidence{Guard: &Guard{unknown: true}}, CellSealed},
	{Evidence{Guard: &Guard{}, Owns: OwnedYes}, CellOfOtherTable},
	{Evidence{Guard: &Guard{}, Owns: OwnedYes, Compared: true, Outlives: remains(transform.Remains)}, CellKept},
	{Evidence{Guard: &Guard{}, Owns: OwnedYes, Compared: true, Outlives: remains(transform.RemainsWhileAbsent)},
		CellKeptWhileAbsent},
	{Evidence{Guard: &Guard{}, Owns: OwnedYes, Compared: true}, CellOwned},
}

// remains is a reason with a text that is another one's: the code decides.
func remains(code transform.RemainingCode) transform.Remaining {
	return transform.Remaining{Code: code, Why: "on_ttl_expiry: keep"}
}

// TestStrongestEvidenceDecidesInAnyOrder: guards stand in the order of hashes, so every set of
// evidence, in every order, is judged by its strongest member.
func TestStrongestEvidenceDecidesInAnyOrder(t *testing.T) {
	n := len(evidenceByStrength)
	sets := 0
	for set := range 1 << n {
		var all []Evidence
		want, owner := CellForeign, (*Guard)(nil)
		for i, x := range evidenceByStrength {
			if set&(1<<i) != 0 {
				all = append(all, x.Evidence)
				want, owner = x.code, x.Guard
			}
		}
		for range max(1, len(all)) {
			for _, order := range [][]Evidence{all, reversed(all)} {
				s := JudgeCell(order, "", "")
				if s.Code != want || s.Owner != nil && s.Owner != owner {
					t.Fatalf("set %b: code %d, want %d", set, s.Code, want)
				}
				for why, code := range map[string]StandingCode{"removed: keep": CellMayOutlive} {
					if got := JudgeCell(order, why, "").Code; got != max(code, want) {
						t.Fatalf("set %b, %s: code %d", set, why, got)
					}
				}
				if got := JudgeCell(order, "", "T").Code; got != max(CellRetired, want) {
					t.Fatalf("set %b, beside a retired table: code %d", set, got)
				}
				sets++
			}
			if len(all) > 1 {
				all = append(all[1:len(all):len(all)], all[0])
			}
		}
	}
	if sets < 1<<n {
		t.Errorf("only %d orders", sets)
	}
}

func reversed(all []Evidence) []Evidence {
	out := slices.Clone(all)
	slices.Reverse(out)
	return out
}

// TestWeakerGuardHidesNoStrongerOne: a row with the guard of an item that owns the cell, and every
// other kind of guard before and behind it.
func TestWeakerGuardHidesNoStrongerOne(t *testing.T) {
	open := strings.Replace(shared, "d:{s}/{attr}", "d:{s}/{attr}/{type}", 1)
	s := newStage(t, shared, open, open, own)
	s.tables[2].Parts = 0 // not compared
	s.key = "p"
	const owner = "dead q@new=S0/a"
	for _, other := range []string{"live %s@new=S1/b", "dead %s@new=S2/b", "live %s@new=S9/b", "live %s@new=sealed",
		"dead %s@new=x:S0/a", "live %s@new=junk"} {
		for _, at := range []string{"a", "z"} {
			cells := []string{"d:a/x@new=1", owner, fmt.Sprintf(other, at)}
			if at == "a" {
				cells[1], cells[2] = cells[2], cells[1]
			}
			found, _ := s.compare(cells)
			if !slices.Contains(found, "extra_cell S0/a") {
				t.Errorf("%q: %q", cells, found)
			}
		}
	}
}

// TestSealedGuardOfAnotherItemHidesNoMissingGuard: in rows that items share, the column of a guard
// shows which item it cannot be.
func TestSealedGuardOfAnotherItemHidesNoMissingGuard(t *testing.T) {
	s := newStage(t, shared)
	s.key = "p"
	hash := func(sk string) string {
		q := guard.Qualifier("p", "S0", []byte(keyOf(sk)))
		return string(q[:])
	}
	for sk, want := range map[string]string{"a": "", "b": "no_guard S0/a"} {
		row := s.row([]string{"d:a/x@new=1"})
		row.Live = append(row.Live, s.row([]string{"live q@new=sealed"}).Live...)
		row.Live[0].Qualifier = []byte(hash(sk))
		s.found = nil
		c := NewComparison(NewGuards(target{stage: s}, s.tables), s.families, noon, late, s)
		if err := c.Compare([]byte("p"), []Wanted{s.wanted("a x=1")}, row); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.found, "; "); got != want {
			t.Errorf("a sealed guard of %s: %q, want %q", sk, got, want)
		}
	}
}
