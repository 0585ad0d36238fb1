package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/putback"
	"github.com/tailrace-cdc/replicator/transform"
)

// Restore brings items back into their table: the newest event of each that the Query finds.
type Restore struct {
	Query

	Source *source.Source
	Into   *source.TableInfo
	Reads  *source.Budget  // of looking which items exist
	Writer *putback.Writer // nil: a dry run

	TTL     putback.TTL
	TTLAttr string    // the attribute that TTL is about; "": the table has none
	Now     time.Time // what TTL counts from

	Differ func(*Difference) error // receives each item that is not restored; may be nil
}

// Difference is an item that was not restored, as --differences writes it.
type Difference struct {
	Schema  int       `json:"schema"`
	Table   string    `json:"table"`
	Key     rawKey    `json:"key"`
	Outcome string    `json:"outcome"` // recreated, refused, without_item
	Event   string    `json:"event"`   // its id
	Deleted time.Time `json:"deleted"`
	Reason  string    `json:"reason,omitempty"`
}

// rawKey is a key in typed JSON.
type rawKey string

// MarshalJSON returns the key as it is.
func (k rawKey) MarshalJSON() ([]byte, error) { return []byte(k), nil }

// The outcomes of an item.
const (
	restored    = "restored"
	unchanged   = "unchanged"
	recreated   = "recreated"
	refused     = "refused"
	withoutItem = "without_item"
)

// candidate is an item that may be restored.
type candidate struct {
	event   *transform.Event
	key     []byte
	item    []byte // as it would be written
	size    int
	units   float64
	outcome string
	reason  string
}

// The items of one reading: BatchGetItem takes 100 keys, and no more than this is in memory.
const (
	batchItems = 100
	batchBytes = 4 << 20
)

// Run restores the items, or in a dry run reports what it would do. After an error the result holds
// what was done before.
//
// There is no state: an item that is in the table as it was archived is found by reading it, at a
// fraction of what a write costs. So a run that was interrupted is repeated.
func (r *Restore) Run(ctx context.Context, b bucket.Bucket) (*Restored, error) {
	out := &Restored{Schema: schema, Table: r.Table, DryRun: r.Writer == nil, TTL: r.TTL.Mode}
	var batch []*candidate
	var bytes int
	err := r.Newest(ctx, b, &out.Events, func(e *transform.Event) error {
		out.Items++
		c, err := r.candidate(e, out)
		if c == nil || err != nil {
			return err
		}
		batch, bytes = append(batch, c), bytes+len(c.item)
		if len(batch) < batchItems && bytes < batchBytes {
			return nil
		}
		err = r.settle(ctx, batch, out)
		batch, bytes = nil, 0
		return err
	})
	if err == nil {
		err = r.settle(ctx, batch, out)
	}
	return out, err
}

// candidate returns an item that may be restored; nil for one that cannot be, or is not to be,
// which it counts.
func (r *Restore) candidate(e *transform.Event, out *Restored) (*candidate, error) {
	c := &candidate{event: e}
	switch {
	case e.Class == transform.ClassUser && r.Class != transform.ClassUser:
		out.DeletedByUser++
		return nil, nil
	case len(e.Item) == 0:
		c.outcome, c.reason = withoutItem, "its stream had no image of it"
		return nil, r.count(c, out)
	case e.Expiry != "" && r.TTL.Mode == putback.Unchosen:
		return nil, needTTL("items carry an expiry")
	}
	var d change.Decoder
	image, err := d.Image(e.Item)
	if err == nil {
		c.key, err = r.Into.Schema.Canonical(nil, image)
	}
	if err == nil {
		c.item, err = r.TTL.Apply(e.Item, r.TTLAttr, r.Now)
	}
	if err == nil {
		c.size, err = putback.Size(c.item)
	}
	if err != nil {
		c.outcome, c.reason = refused, err.Error()
		return nil, r.count(c, out)
	}
	return c, nil
}

// needTTL is the error for a restore without --ttl where it is needed.
func needTTL(why string) error {
	return failure.Usagef("--ttl remove, --ttl +30d, or --ttl keep: an item whose time is over expires again at once",
		"%s: say with --ttl what becomes of it", why)
}

// settle writes those items of a batch that the table does not have, and counts all.
func (r *Restore) settle(ctx context.Context, batch []*candidate, out *Restored) error {
	if len(batch) == 0 {
		return nil
	}
	var absent []*candidate
	if err := r.compare(ctx, batch, out, func(c *candidate) { absent = append(absent, c) }); err != nil {
		return err
	}
	err := r.write(ctx, absent, out)
	for _, c := range batch {
		if c.outcome == "" {
			continue // not reached
		}
		if failed := r.count(c, out); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}

// compare reads the items of a batch from the table, and decides about those that are there.
func (r *Restore) compare(ctx context.Context, batch []*candidate, out *Restored, absent func(*candidate)) error {
	keys := make([][]byte, len(batch))
	for i, c := range batch {
		keys[i] = c.key
	}
	read := r.Source.ReadItems
	if r.Writer == nil {
		read = r.Source.ReadItemsEventually
	}
	if err := r.Reads.Take(ctx, float64(len(keys))); err != nil {
		return err
	}
	there, err := read(ctx, r.Into.Name, keys)
	if err != nil {
		r.Reads.Settle(float64(len(keys)), 0)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return source.Explain(err)
	}
	r.Reads.Settle(float64(len(keys)), there.Units)
	out.ReadUnits += there.Units
	for i, c := range batch {
		switch {
		case there.Items[i] == nil:
			absent(c)
		case putback.Equal(there.Items[i], c.item, r.TTLAttr):
			c.outcome = unchanged
		default:
			c.outcome, c.reason = recreated, "an item with other content has its key"
		}
	}
	return nil
}

// write writes items that were absent; a dry run counts what that would take.
func (r *Restore) write(ctx context.Context, absent []*candidate, out *Restored) error {
	if r.Writer == nil {
		for _, c := range absent {
			c.outcome, c.units = restored, putback.Units(c.size)
		}
		return nil
	}
	var group errgroup.Group // without a context: a write under way ends, and is counted
	group.SetLimit(putback.Concurrency)
	for _, c := range absent {
		group.Go(func() error { return r.put(ctx, c) })
	}
	err := group.Wait()
	// What appeared meanwhile may be ours, where the reply to an earlier attempt was lost.
	var appeared []*candidate
	for _, c := range absent {
		if c.outcome == recreated {
			appeared = append(appeared, c)
		}
	}
	if len(appeared) == 0 || err != nil {
		return err
	}
	if err := r.compare(ctx, appeared, out, func(*candidate) {}); err != nil {
		return err
	}
	for _, c := range appeared {
		if c.outcome == unchanged {
			c.outcome = restored
		}
	}
	return nil
}

// put writes one item.
func (r *Restore) put(ctx context.Context, c *candidate) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	units, err := r.Writer.Put(ctx, c.item)
	c.units = units
	switch {
	case err == nil:
		c.outcome = restored
	case errors.Is(err, putback.ErrExists):
		c.outcome, c.reason = recreated, "an item was written meanwhile"
	case errors.Is(err, putback.ErrRefused):
		c.outcome, c.reason = refused, err.Error()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return writeFailed(err)
	}
	return nil
}

// writeFailed gives an error of a write its exit code and hint.
func writeFailed(err error) error {
	switch source.Classify(err) {
	case failure.Throttled:
		hint := "the table takes no more: run it again with a lower --write-units"
		return failure.With(failure.None, hint, err)
	case failure.Denied:
		return failure.With(failure.Unready, "restore needs dynamodb:PutItem and dynamodb:BatchGetItem on the table",
			err)
	}
	return source.Explain(err)
}

// count counts an item, and reports one that was not restored.
func (r *Restore) count(c *candidate, out *Restored) error {
	out.WriteUnits += c.units
	switch c.outcome {
	case restored:
		out.Restored++
		out.Bytes += int64(c.size)
		if putback.Expires(c.item, r.TTLAttr, r.Now) {
			out.ExpireAtOnce++
		}
		return nil
	case unchanged:
		out.Unchanged++
		return nil
	case recreated:
		out.Recreated++
	case refused:
		out.Refused++
	case withoutItem:
		out.WithoutItem++
	}
	if r.Differ == nil {
		return nil
	}
	err := r.Differ(&Difference{
		Schema: schema, Table: r.Table, Key: rawKey(c.event.Subject), Outcome: c.outcome, Event: c.event.ID(),
		Deleted: c.event.Time(), Reason: c.reason,
	})
	if err != nil {
		return fmt.Errorf("write differences: %w", err)
	}
	return nil
}
