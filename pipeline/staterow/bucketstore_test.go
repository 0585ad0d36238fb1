package staterow

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

func openBucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.Context(), "file://"+t.TempDir(), bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func firstLife(t *testing.T, s *BucketStore) *bigtable.State {
	t.Helper()
	row := &bigtable.State{Identity: bigtable.Identity{Pipeline: "shop", Table: "Orders", TableID: "id"}, Life: 1}
	if err := s.CreateState(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	return row
}

// TestRowIsReadBack: what was stored last, by whichever process.
func TestRowIsReadBack(t *testing.T) {
	b := openBucket(t)
	s := NewBucketStore(b)
	if _, err := s.LoadState(t.Context(), "shop", "Orders"); !errors.Is(err, bigtable.ErrNoState) {
		t.Errorf("before the first row: %v", err)
	}
	row := firstLife(t, s)
	other := &bigtable.State{Identity: row.Identity, Life: 7}
	if err := s.CreateState(t.Context(), other); !errors.Is(err, bigtable.ErrStateExists) {
		t.Errorf("another first row: %v", err)
	}
	next := *row
	next.Issued, next.Recovering, next.OldLog = true, true, time.Unix(1, 2).UTC()
	if err := s.CompareAndSet(t.Context(), row, &next); err != nil {
		t.Fatal(err)
	}
	for range 10 { // names with two digits come after those with one
		old := next
		next.Lead += time.Second
		if err := s.CompareAndSet(t.Context(), &old, &next); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NewBucketStore(b).LoadState(t.Context(), "shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&next, got, cmpopts.IgnoreUnexported(bigtable.State{})); d != "" || got.Revision != 12 {
		t.Errorf("revision %d: %s", got.Revision, d)
	}
	if _, err := s.LoadState(t.Context(), "shop", "Order"); !errors.Is(err, bigtable.ErrNoState) {
		t.Errorf("another table: %v", err)
	}
	var foreign *OtherPipelineError
	if _, err := s.LoadState(t.Context(), "shop2", "Orders"); !errors.As(err, &foreign) || foreign.Pipeline != "shop" {
		t.Errorf("another pipeline: %v", err)
	}
}

// TestOfTwoChangesOneSucceeds: the other process hears that it was overtaken, whenever it was
// frozen.
func TestOfTwoChangesOneSucceeds(t *testing.T) {
	s := NewBucketStore(openBucket(t))
	row := firstLife(t, s)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			next := *row
			next.Lead = time.Duration(i + 1)
			errs[i] = s.CompareAndSet(context.Background(), row, &next)
		})
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, bigtable.ErrStateChanged):
			t.Errorf("%d: %v", i, err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d succeeded", won, len(errs))
	}
}

// lostBucket is a bucket whose answers to the creation of objects are lost.
type lostBucket struct{ bucket.Bucket }

func (l lostBucket) Create(ctx context.Context, name string, f *os.File, size int64) error {
	if err := l.Bucket.Create(ctx, name, f, size); err != nil {
		return err
	}
	return errors.New("connection reset")
}

// TestChangeWhoseAnswerWasLostSucceedsAgain: it finds its own object.
func TestChangeWhoseAnswerWasLostSucceedsAgain(t *testing.T) {
	b := openBucket(t)
	row := firstLife(t, NewBucketStore(b))
	next := *row
	next.Issued = true
	if err := NewBucketStore(lostBucket{b}).CompareAndSet(t.Context(), row, &next); err == nil {
		t.Fatal("the answer was not lost")
	}
	if err := NewBucketStore(lostBucket{b}).CompareAndSet(t.Context(), row, &next); err != nil {
		t.Error(err)
	}
}

// TestReservationOvertakenIsRaisedAgain: by another owner of the same life; in another life it is
// refused.
func TestReservationOvertakenIsRaisedAgain(t *testing.T) {
	s := NewBucketStore(openBucket(t))
	old := firstLife(t, s)
	other := *old
	other.Lead = time.Minute
	if err := s.CompareAndSet(t.Context(), old, &other); err != nil {
		t.Fatal(err)
	}
	got, err := s.Reserve(t.Context(), old, time.Hour)
	if err != nil || got.Lead != time.Hour || got.Revision != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	next := *got
	next.Life++
	if err := s.CompareAndSet(t.Context(), got, &next); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), got, 2*time.Hour); !errors.Is(err, bigtable.ErrStateChanged) {
		t.Errorf("in another life: %v", err)
	}
}

// TestTableThatWasRetiredHasNoRow: and begins anew behind the old revisions.
func TestTableThatWasRetiredHasNoRow(t *testing.T) {
	s := NewBucketStore(openBucket(t))
	row := firstLife(t, s)
	if err := s.RemoveState(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveState(t.Context(), row); !errors.Is(err, bigtable.ErrStateChanged) {
		t.Errorf("removed again from the old revision: %v", err)
	}
	if _, err := s.LoadState(t.Context(), "shop", "Orders"); !errors.Is(err, bigtable.ErrNoState) {
		t.Errorf("retired: %v", err)
	}
	if row = firstLife(t, s); row.Revision != 3 {
		t.Errorf("revision %d", row.Revision)
	}
}

// TestRowThatIsNotReadIsRefused: of a later build, of another table, or none at all.
func TestRowThatIsNotReadIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		`{"format":99,"revision":1,"identity":{"table":"Orders","pipeline":"shop"}}`: &bigtable.NewerFormatError{},
		`{"format":1,"revision":2,"identity":{"table":"Orders","pipeline":"shop"}}`:  nil,
		`{"format":1,"revision":1,"identity":{"table":"Carts","pipeline":"shop"}}`:   nil,
		`{"format":1,`: nil, ``: nil,
	} {
		b := openBucket(t)
		if err := bucket.CreateText(t.Context(), b, layout.Life("Orders", 1), text); err != nil {
			t.Fatal(err)
		}
		_, err := NewBucketStore(b).LoadState(t.Context(), "shop", "Orders")
		var newer *bigtable.NewerFormatError
		if err == nil || errors.Is(err, bigtable.ErrNoState) || want != nil && !errors.As(err, &newer) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// unlisted is a bucket whose listings show nothing, a number of times.
type unlisted struct {
	bucket.Bucket
	times int
}

func (u *unlisted) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	if u.times--; u.times >= 0 {
		return func(func(bucket.Info, error) bool) {}
	}
	return u.Bucket.List(ctx, prefix)
}

// TestRowThatIsNotListedIsNotNew: an empty listing alone does not begin a table.
//
// Rule 13.
func TestRowThatIsNotListedIsNotNew(t *testing.T) {
	b := &unlisted{Bucket: openBucket(t)}
	s := NewBucketStore(b)
	row := firstLife(t, s)
	b.times = 2
	if _, err := s.LoadState(t.Context(), "shop", "Orders"); bucket.Classify(err) != failure.Transient {
		t.Errorf("load: %v", err)
	}
	other := &bigtable.State{Identity: row.Identity, Life: 7}
	if err := s.CreateState(t.Context(), other); bucket.Classify(err) != failure.Transient {
		t.Errorf("create: %v", err)
	}
	if got, err := s.LoadState(t.Context(), "shop", "Orders"); err != nil || got.Life != row.Life {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}
