package continuous

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// rowsOf returns the rows of candidates by key.
func rowsOf(all []verify.Candidate) string {
	var out []string
	for i := range all {
		rows := []string{}
		for _, r := range all[i].Rows {
			rows = append(rows, string(r))
		}
		slices.Sort(rows)
		out = append(out, all[i].Key+": "+strings.Join(rows, " "))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// TestNothingIsForgottenBetweenTwoOwners: what waits to be settled, what is being settled, and what
// differs goes on with the next one. A cell without an owner that was seen once does not: it is
// found again.
func TestNothingIsForgottenBetweenTwoOwners(t *testing.T) {
	o := newWorld(t, "").options(50)
	v := New(o)
	v.candidate(verify.Value, guarded.Item{Key: "settling"}, []byte("r1"))
	v.noteOne(&verify.Verdict{Key: "known", Status: verify.Different, Rows: [][]byte{[]byte("r2")}})
	if got := rowsOf(v.batch()); got != "settling: r1" {
		t.Errorf("batch: %s", got)
	}
	v.candidate(verify.Value, guarded.Item{Key: "waiting"}, []byte("r3"))
	v.candidate(verify.Value, guarded.Item{Key: "known"}, []byte("r4"))
	v.cells["once"] = &openRow{n: 1, looks: 1}
	v.cells["confirmed"] = &openRow{n: 5, other: 6, looks: confirmedLooks}
	v.more = 7

	o.From = v.Snapshot()
	next := New(o)
	if got := slices.Sorted(maps.Keys(next.pending)); !slices.Equal(got, []string{"settling", "waiting"}) {
		t.Errorf("to be settled: %q", got)
	}
	if got := slices.Collect(maps.Keys(next.cells)); !slices.Equal(got, []string{"confirmed"}) || next.more != 7 ||
		next.cells["confirmed"].n != 5 || next.cells["confirmed"].other != 6 {
		t.Errorf("cells in %q, %d differences more", got, next.more)
	}
	if got := rowsOf(next.batch()); got != "known: r2; settling: r1; waiting: r3" {
		t.Errorf("the next owner settles %s", got)
	}
}

// TestKnownDifferenceIsSettledWithAllItsRows: those that were known, and those that were seen
// since.
func TestKnownDifferenceIsSettledWithAllItsRows(t *testing.T) {
	v := New(newWorld(t, "").options(50))
	v.noteOne(&verify.Verdict{Key: "k", Status: verify.Different, Rows: [][]byte{[]byte("old")}})
	v.candidate(verify.Value, guarded.Item{Key: "k"}, []byte("new"))
	if got := rowsOf(v.batch()); got != "k: new old" {
		t.Errorf("seen again: %s", got)
	}
	if got := rowsOf(v.batch()); got != "" {
		t.Errorf("before its time: %s", got)
	}
	v.open["k"].due = time.Now()
	if got := rowsOf(v.batch()); got != "k: old" {
		t.Errorf("after a while: %s", got)
	}
}

// TestDifferencesBeyondThoseInMemoryAreCounted: and what is known already is no further one.
func TestDifferencesBeyondThoseInMemoryAreCounted(t *testing.T) {
	v := New(newWorld(t, "").options(50))
	for i := range maxOpen + 2 {
		v.noteOne(&verify.Verdict{Key: fmt.Sprint(i), Status: verify.Different})
	}
	v.noteOne(&verify.Verdict{Key: "0", Status: verify.Unproven})
	if len(v.open) != maxOpen || v.more != 2 || v.open["0"].verdict.Status != verify.Unproven {
		t.Errorf("%d are known, %d more", len(v.open), v.more)
	}
}

// TestOnlyItemsThatAreKnownAreCandidates: a row with several items is compared with those that the
// page of a scan holds. Items of other tables of the target are left to their own comparison.
func TestOnlyItemsThatAreKnownAreCandidates(t *testing.T) {
	for all, want := range map[bool]string{false: "known: r", true: "known: r; other: r"} {
		v := New(newWorld(t, "").options(50))
		f := v.found
		f.all, f.items = all, []guarded.Wanted{{Item: guarded.Item{Key: "known"}}}
		for _, of := range []guarded.Item{{Key: "known"}, {Key: "other"}, {Table: 1, Key: "theirs"}} {
			if err := f.Candidate(verify.ExtraCell, of, []byte("r")); err != nil {
				t.Fatal(err)
			}
		}
		if got := rowsOf(v.batch()); got != want {
			t.Errorf("all items are known: %t: %s", all, got)
		}
	}
}
