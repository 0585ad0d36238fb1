package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// follower reads the logs of all tables of a target for the keys of changed items.
type follower struct {
	pair *pair.Pair
	keys *keys
	from []uint64 // first entry of each table that has no mark; nil: those from the first one

	result *Saved // of the comparison that entries may break; nil: none
	dec    change.Decoder
	key    []byte
}

// follow reads what the logs have got since the last time, and stores it. What makes the comparison
// useless is stored, too, and is no error.
func (f *follower) follow(ctx context.Context) error {
	for i, t := range f.pair.Tables {
		if f.keys.Broken != "" {
			return nil
		}
		w := queue.Walk{After: f.keys.Marks[i]}
		if w.After.Seq == 0 {
			w.From = f.first(i)
		}
		mark, err := f.pair.Entries(ctx, t.Source, w, func(e *queue.WalkedEntry) error { return f.entry(i, e) })
		if why := lost(t.Source, err); why != "" {
			f.keys.Broken = why
			continue
		}
		if err != nil {
			return fmt.Errorf("read changes of %s: %w", t.Source, err)
		}
		f.keys.Marks[i] = mark
	}
	return f.keys.save()
}

// lost returns why a log does not show any more what has changed; "" for any other error, or nil. A
// log that was resumed behind damage, or that has lost its end, holds other entries than were read
// before.
func lost(table string, err error) string {
	switch {
	case errors.Is(err, queue.ErrTrimmed):
		return fmt.Sprintf("the log of %s does not reach back: %s", table, err)
	case errors.Is(err, queue.ErrDamaged), errors.Is(err, queue.ErrChain), errors.Is(err, queue.ErrGap),
		errors.Is(err, queue.ErrEmptied):
		return fmt.Sprintf("the log of %s does not show any more what has changed: %s", table, err)
	}
	return ""
}

// first returns the first entry of a table's log that is read when there is no mark. Without
// another one it is the very first, not the oldest that is left.
func (f *follower) first(table int) uint64 {
	if f.from == nil {
		return 1
	}
	return f.from[table]
}

// entry takes the changes of an entry, or notes why the changes of the log are not all that was
// done to the rows.
//
// Rule 14: checkpoint.ChangesRows decides.
func (f *follower) entry(table int, e *queue.WalkedEntry) error {
	done := f.result == nil || e.Seq <= f.result.Tables[table].Begun || f.keys.Broken != ""
	if why := checkpoint.ChangesRows(e.Body); why != checkpoint.RowsByChanges && !done {
		f.keys.Broken = fmt.Sprintf("the last full one began before %s of %s (entry %d of its log)", began[why],
			f.pair.Tables[table].Source, e.Seq)
	}
	return e.Changes(func(c *queue.WalkedChange) error { return f.change(table, c) })
}

// began names what a kept comparison began before, by the reason why it is not valid any more.
var began = map[checkpoint.RowsReason]string{
	checkpoint.RowsByStream:      "a stream",
	checkpoint.RowsByGap:         "a loss of changes",
	checkpoint.RowsByCopy:        "the end of a copy",
	checkpoint.RowsByResync:      "a resync",
	checkpoint.RowsByMapping:     "a change of the mapping",
	checkpoint.RowsByCopyOrder:   "a command to the copy",
	checkpoint.RowsByApplication: "the undo of a fence, behind which the application may have written,",
	checkpoint.RowsUnknown:       "an entry of an unknown kind",
}

// change adds the item of a change, with the rows that it had before and after. An image that the
// mapping refuses has none.
func (f *follower) change(table int, c *queue.WalkedChange) (err error) {
	t := f.pair.Tables[table]
	if f.key, err = c.Key(f.key[:0], t.Info.Schema); err != nil {
		return err
	}
	if err := f.keys.add(partChanged, table, f.key, nil); err != nil {
		return err
	}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw == nil {
			continue
		}
		f.dec.Reset()
		img, err := f.dec.Image(raw)
		if err != nil {
			return fmt.Errorf("read image of a change: %w", err)
		}
		rows, err := t.Program.Project(img)
		if err != nil {
			continue // refused: settling says so
		}
		for i := range rows {
			if err := f.keys.add(partChanged, table, f.key, rows[i].Key); err != nil {
				return err
			}
		}
	}
	return nil
}
