package guarded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// BigtableTarget is a Target in Bigtable.
type BigtableTarget struct {
	Client *bigtable.Client
	Name   string
	Views  []bigtable.View // as Views returns them

	mu      sync.Mutex // covers what follows
	retired []string
	asked   time.Time
}

// askRetired is how long a target uses its list of retired tables before it reads it again.
const askRetired = time.Minute

// NewTarget returns a table of Bigtable as a Target. The programs are the programs of all source
// tables that write it.
func NewTarget(c *bigtable.Client, name string, programs ...*transform.Program) *BigtableTarget {
	return &BigtableTarget{Client: c, Name: name, Views: Views(programs...)}
}

// Scan implements Target.
func (t *BigtableTarget) Scan(ctx context.Context, f func(*Row) error) error {
	return t.read(ctx, bigtable.GuardedRead{}, f)
}

// ScanFrom is Scan from a row on, that row included.
func (t *BigtableTarget) ScanFrom(ctx context.Context, start string, f func(*Row) error) error {
	return t.read(ctx, bigtable.GuardedRead{Start: start}, f)
}

// Range returns a Target whose Scan reads the rows from start on and before end; "" is the end of
// the table.
func (t *BigtableTarget) Range(start, end string) Target { return &rangeTarget{t, start, end} }

// rangeTarget is a part of a BigtableTarget.
type rangeTarget struct {
	*BigtableTarget
	start, end string
}

// Scan implements Target.
func (t *rangeTarget) Scan(ctx context.Context, f func(*Row) error) error {
	return t.read(ctx, bigtable.GuardedRead{Start: t.start, End: t.end}, f)
}

// Lookup implements Target.
func (t *BigtableTarget) Lookup(ctx context.Context, keys []string, f func(*Row) error) error {
	if len(keys) == 0 {
		return nil
	}
	return t.read(ctx, bigtable.GuardedRead{Keys: keys}, f)
}

func (t *BigtableTarget) read(ctx context.Context, read bigtable.GuardedRead, f func(*Row) error) error {
	if err := t.readRetired(ctx); err != nil {
		return err
	}
	read.Views, read.Dead = t.Views, true
	return t.Client.GuardedRows(ctx, t.Name, read, func(row *bigtable.GuardedRow) error { return f((*Row)(row)) })
}

// readRetired reads which tables were retired, now and then.
func (t *BigtableTarget) readRetired(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asked.IsZero() && time.Since(t.asked) < askRetired {
		return nil
	}
	all, err := t.Client.Retired(ctx, t.Name)
	if err != nil && bigtable.Classify(err) != failure.Missing { // without a state table there is none
		return fmt.Errorf("read which tables were retired: %w", err)
	}
	t.retired, t.asked = slices.Sorted(maps.Keys(all)), time.Now()
	return nil
}

// Retired implements Retiring.
func (t *BigtableTarget) Retired() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retired
}

// GuardOf implements Target.
func (t *BigtableTarget) GuardOf(value, row, qualifier []byte) (bigtable.Guard, error) {
	return t.Client.GuardOf(value, row, qualifier)
}
