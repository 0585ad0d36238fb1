package staterow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// BucketStore keeps the rows of tables that have no target, and so no row in Bigtable, in the archive's
// bucket. It is a Store, with the errors of bigtable.Client and of package bucket. Safe for concurrent
// use.
//
// Each revision of a row is an object of its own, created if absent, and the newest one counts:
//
//	<prefix>/_tailrace/Sessions/life-000000000003.json
//
// So a change is what it is in Bigtable, a comparison and a write in one: a process that has read
// revision 3 tries to create revision 4, and of two one succeeds. A process that was frozen before it
// wrote finds the name taken. There are a few revisions in each life of a log: nothing below the prefix
// is ever replaced or deleted.
type BucketStore struct {
	bucket bucket.Bucket
	probe  func(context.Context) error
}

// NewBucketStore returns the rows that a bucket holds. The bucket must create each name only once:
// see bucket.Probe.
func NewBucketStore(b bucket.Bucket) *BucketStore {
	return NewProbedBucketStore(b, func(context.Context) error { return nil })
}

// NewProbedBucketStore is NewBucketStore for a bucket of which probe finds out, before each write,
// whether it creates a name only once.
func NewProbedBucketStore(b bucket.Bucket, probe func(context.Context) error) *BucketStore {
	return &BucketStore{b, probe}
}

// LoadState reads the newest revision of a table's row; bigtable.ErrNoState if there is none.
// *OtherPipelineError means that another pipeline archives the table below the prefix.
func (s *BucketStore) LoadState(ctx context.Context, pipeline, table string) (*bigtable.State, error) {
	row, err := s.newest(ctx, table)
	if err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	if row == nil || !row.Retired.IsZero() {
		return nil, fmt.Errorf("load state: %w", bigtable.ErrNoState)
	}
	if row.Identity.Pipeline != pipeline {
		return nil, fmt.Errorf("load state: %w", &OtherPipelineError{Table: table, Pipeline: row.Identity.Pipeline})
	}
	return &row.State, nil
}

// revision is what an object holds.
type revision struct {
	bigtable.State
	Retired time.Time `json:"retired,omitzero"` // the table's replication ended here: as if there was no row
}

// OtherPipelineError is the row of another pipeline: two pipelines must not archive one table into
// one place.
type OtherPipelineError struct{ Table, Pipeline string }

func (e *OtherPipelineError) Error() string {
	return fmt.Sprintf("pipeline %q archives table %s below this prefix: two would archive each event twice", e.Pipeline,
		e.Table)
}

// Hint returns what an operator can do.
func (e *OtherPipelineError) Hint() string {
	return "take another prefix in archive.url; or go on under the name of that pipeline, which must not run any more"
}

// newest reads the newest revision of a table's row, of whichever pipeline; nil if there is none.
func (s *BucketStore) newest(ctx context.Context, table string) (*revision, error) {
	var last int64
	for info, err := range s.bucket.List(ctx, layout.Lives(table)) {
		if err != nil {
			return nil, err
		}
		if n, ok := layout.ParseLife(table, info.Name); ok {
			last = max(last, n)
		}
	}
	if last == 0 {
		return nil, s.confirmNone(ctx, table)
	}
	return s.read(ctx, table, last)
}

// confirmNone returns an error if the first revision of a table's row is there, of which a listing
// has shown none.
//
// Rule 13: that a table has no row, and so begins, is taken from two answers of different kinds.
func (s *BucketStore) confirmNone(ctx context.Context, table string) error {
	name := layout.Life(table, 1)
	r, err := s.bucket.Open(ctx, name)
	switch {
	case errors.Is(err, bucket.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(&bucket.Error{
		Op: "list " + layout.Lives(table), Class: failure.Transient, Err: fmt.Errorf("%s is there, but was not listed", name),
	}, r.Close())
}

func (s *BucketStore) read(ctx context.Context, table string, n int64) (*revision, error) {
	name := layout.Life(table, n)
	text, err := bucket.ReadText(ctx, s.bucket, name)
	if err != nil {
		return nil, err
	}
	row := &revision{}
	if err := json.Unmarshal(text, row); err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	if row.Format > bigtable.StateFormat { // Rule 11
		newer := &bigtable.NewerFormatError{Have: row.Format, Know: bigtable.StateFormat}
		return nil, fmt.Errorf("decode %s: %w", name, newer)
	}
	if row.Revision != n || row.Identity.Table != table {
		return nil, fmt.Errorf("decode %s: it is revision %d of table %s", name, row.Revision, row.Identity.Table)
	}
	return row, nil
}

// CreateState stores the first row, and makes s the loaded state. It succeeds again with the same
// content, and returns bigtable.ErrStateExists if there is another one.
func (s *BucketStore) CreateState(ctx context.Context, row *bigtable.State) error {
	next := *row
	next.Format, next.Revision = bigtable.StateFormat, 1
	if old, err := s.newest(ctx, row.Identity.Table); err != nil {
		return fmt.Errorf("create state: %w", err)
	} else if old != nil && !old.Retired.IsZero() {
		next.Revision = old.Revision + 1
	}
	won, err := s.create(ctx, &revision{State: next})
	if err != nil {
		return fmt.Errorf("create state: %w", err)
	}
	if !won {
		return fmt.Errorf("create state: %w", bigtable.ErrStateExists)
	}
	*row = next
	return nil
}

// CompareAndSet stores next as the revision after old, and makes it the loaded state. It returns
// bigtable.ErrStateChanged if another process has stored that revision.
func (s *BucketStore) CompareAndSet(ctx context.Context, old, next *bigtable.State) error {
	n := *next
	n.Format, n.Revision = bigtable.StateFormat, old.Revision+1
	won, err := s.create(ctx, &revision{State: n})
	if err != nil {
		return fmt.Errorf("set state: %w", err)
	}
	if !won {
		return fmt.Errorf("set state: %w", bigtable.ErrStateChanged)
	}
	*next = n
	return nil
}

// RemoveState stores that the replication of the table has ended: from then on there is no row,
// until a new first one. It returns bigtable.ErrStateChanged if another process has changed the row
// since it was loaded.
func (s *BucketStore) RemoveState(ctx context.Context, row *bigtable.State) error {
	n := *row
	n.Revision++
	won, err := s.create(ctx, &revision{State: n, Retired: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("remove state: %w", err)
	}
	if !won {
		return fmt.Errorf("remove state: %w", bigtable.ErrStateChanged)
	}
	return nil
}

// create creates the object of a revision, and reports whether it holds that content. That is also
// the case after an earlier attempt that got no answer.
func (s *BucketStore) create(ctx context.Context, row *revision) (bool, error) {
	if err := s.probe(ctx); err != nil {
		return false, err
	}
	text, err := json.Marshal(row)
	if err != nil {
		return false, err
	}
	name := layout.Life(row.Identity.Table, row.Revision)
	err = bucket.CreateText(ctx, s.bucket, name, string(text))
	if !errors.Is(err, bucket.ErrExists) {
		return err == nil, err
	}
	have, err := bucket.ReadText(ctx, s.bucket, name)
	return bytes.Equal(have, text), err
}

// Reserve raises the version reservation to at least lead, and returns the state with it.
//
// Rule 5: versions are assigned once and grow across lives.
func (s *BucketStore) Reserve(ctx context.Context, row *bigtable.State, lead time.Duration) (*bigtable.State, error) {
	for {
		if row.Lead >= lead {
			return row, nil
		}
		next := *row
		next.Lead = lead
		err := s.CompareAndSet(ctx, row, &next)
		if err == nil {
			return &next, nil
		}
		if !errors.Is(err, bigtable.ErrStateChanged) {
			return nil, fmt.Errorf("reserve lead: %w", err)
		}
		fresh, err := s.LoadState(ctx, row.Identity.Pipeline, row.Identity.Table)
		if err != nil {
			return nil, fmt.Errorf("reserve lead: %w", err)
		}
		if fresh.Identity != row.Identity || fresh.Life != row.Life {
			return nil, fmt.Errorf("reserve lead: %w", bigtable.ErrStateChanged)
		}
		row = fresh
	}
}
