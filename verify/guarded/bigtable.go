package guarded

import (
	"context"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// BigtableTarget is a Target in Bigtable.
type BigtableTarget struct {
	Client *bigtable.Client
	Name   string
	Views  []bigtable.View // as Views returns them
}

// NewTarget returns a table of Bigtable as a Target. The programs are those of all source tables that write it.
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

// Lookup implements Target.
func (t *BigtableTarget) Lookup(ctx context.Context, keys []string, f func(*Row) error) error {
	if len(keys) == 0 {
		return nil
	}
	return t.read(ctx, bigtable.GuardedRead{Keys: keys}, f)
}

func (t *BigtableTarget) read(ctx context.Context, read bigtable.GuardedRead, f func(*Row) error) error {
	read.Views, read.Dead = t.Views, true
	return t.Client.GuardedRows(ctx, t.Name, read, func(row *bigtable.GuardedRow) error { return f((*Row)(row)) })
}

// GuardOf implements Target.
func (t *BigtableTarget) GuardOf(value, row, qualifier []byte) (bigtable.Guard, error) {
	return t.Client.GuardOf(value, row, qualifier)
}
