package bigtable_test

import (
	"bytes"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// widest is how many columns a row, and versions a column, may have.
const widest = 10_000

// columns sets n columns from the given one on.
func columns(first, n int) *bigtable.Mutation {
	m := bigtable.NewMutation()
	for i := first; i < first+n; i++ {
		m.Set("d", fmt.Sprintf("c%06d", i), 1000, []byte("v"))
	}
	return m
}

func (r *rig) apply(key string, m *bigtable.Mutation, want codes.Code) {
	r.t.Helper()
	if err := r.table.Apply(r.t.Context(), key, m); status.Code(err) != want {
		r.t.Errorf("write %s: %v, want %v", key, err, want)
	}
}

func (r *rig) width(key string) int {
	r.t.Helper()
	row, err := r.table.ReadRow(r.t.Context(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(row["d"])
}

// TestRowsWiderThanTheEmulatorTakesAreRefused grows a row by every kind of write to its limit and
// past it.
func TestRowsWiderThanTheEmulatorTakesAreRefused(t *testing.T) {
	r := newRig(t)
	r.apply("wide", columns(0, widest-10), codes.OK)
	r.apply("wide", columns(0, widest-10), codes.OK) // the same columns again: not wider
	r.apply("wide", columns(widest-10, 11), codes.InvalidArgument)
	if n := r.width("wide"); n != widest-10 {
		t.Errorf("%d columns after a refused write, want %d", n, widest-10)
	}
	r.apply("wide", columns(widest-10, 10), codes.OK)

	more := columns(widest, 1)
	guarded := bigtable.NewCondMutation(bigtable.ColumnRangeFilter("d", "nowhere", "nowhere\x00"), nil, more)
	r.apply("wide", guarded, codes.InvalidArgument)
	increment := bigtable.NewReadModifyWrite()
	increment.AppendValue("d", "new", []byte("x"))
	if _, err := r.table.ApplyReadModifyWrite(t.Context(), "wide", increment); status.Code(err) != codes.InvalidArgument {
		t.Errorf("read, modify and write: %v", err)
	}
	errs, err := r.table.ApplyBulk(t.Context(), []string{"wide", "other"}, []*bigtable.Mutation{more, more})
	if err != nil || len(errs) != 2 || status.Code(errs[0]) != codes.InvalidArgument || errs[1] != nil {
		t.Errorf("bulk: %v, %v", errs, err)
	}

	less := bigtable.NewMutation()
	less.DeleteCellsInColumn("d", "c000000")
	r.apply("wide", less, codes.OK)
	r.apply("wide", more, codes.OK)
	again := bigtable.NewMutation()
	again.DeleteRow()
	again.Set("d", "c", 1000, nil)
	r.apply("wide", again, codes.OK)
	if n := r.width("wide"); n != 1 {
		t.Errorf("%d columns after the row was written anew, want 1", n)
	}
}

// TestBulkEntriesOfARowAddUp sends a row's columns in several entries of one call.
func TestBulkEntriesOfARowAddUp(t *testing.T) {
	r := newRig(t)
	half := widest / 2
	errs, err := r.table.ApplyBulk(t.Context(), []string{"wide", "wide", "wide"},
		[]*bigtable.Mutation{columns(0, half), columns(half, half), columns(2*half, half)})
	if err != nil || len(errs) != 3 || errs[0] != nil || errs[1] != nil || status.Code(errs[2]) != codes.InvalidArgument {
		t.Errorf("%v, %v", errs, err)
	}
	if n := r.width("wide"); n != widest {
		t.Errorf("%d columns, want %d", n, widest)
	}
}

func TestColumnsOfTooManyVersionsAreRefused(t *testing.T) {
	r := newRig(t)
	versions := func(first, n int) *bigtable.Mutation {
		m := bigtable.NewMutation()
		for i := first; i < first+n; i++ {
			m.Set("t", "c", bigtable.Timestamp(i)*1000, nil)
		}
		return m
	}
	for i := range 4 {
		r.apply("deep", versions(i*widest/4, widest/4), codes.OK)
	}
	r.apply("deep", versions(widest, 1), codes.InvalidArgument)
	r.apply("deep", versions(0, 1), codes.OK) // replaces one
}

// TestWritesOfTooManyCellsAreRefused sets one cell over and over, which leaves a narrow row.
func TestWritesOfTooManyCellsAreRefused(t *testing.T) {
	r := newRig(t)
	again := func(n int) *bigtable.Mutation {
		m := bigtable.NewMutation()
		for range n {
			m.Set("d", "c", 1000, nil)
		}
		return m
	}
	r.apply("narrow", again(widest), codes.OK)
	r.apply("narrow", again(widest), codes.OK)
	r.apply("narrow", again(widest+1), codes.InvalidArgument)
	if n := r.width("narrow"); n != 1 {
		t.Errorf("%d columns, want 1", n)
	}
}

func TestWideRowsAreKnownAfterARestart(t *testing.T) {
	r := newRig(t)
	r.apply("wide", columns(0, widest), codes.OK)
	var saved bytes.Buffer
	if err := r.front.Save(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	r.front = openFront(t, r.clock)
	if err := r.front.Restore(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	r.connect()
	r.apply("wide", columns(widest, 1), codes.InvalidArgument)
	r.apply("wide", columns(widest-1, 1), codes.OK)
}
