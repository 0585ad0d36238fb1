package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// ErrTrimmed means that entries were deleted from the log before they were read: sinks have applied
// them, and the replay window is over. What a walk has yielded by then is right, but it is not
// everything from its beginning.
var ErrTrimmed = errors.New("the log is trimmed above that position")

// Walk is a way through the log of a table. The zero values of From and After walk from its oldest
// entry.
type Walk struct {
	Log *Log
	// From is the first entry. ErrTrimmed when it is not in the log any more.
	From uint64
	// After begins behind an entry, instead of From. Its hash shows whether the log is still the
	// one that held it.
	After checkpoint.Mark
}

// WalkedEntry is an entry of the log.
type WalkedEntry struct {
	*checkpoint.Entry
	Seq   uint64
	Hash  checkpoint.Hash
	Owner string // who wrote it; empty where the claim of its epoch is trimmed

	walk *walking
}

// WalkedChange is a change of an item. It and its slices are valid until the callback returns.
type WalkedChange struct {
	*change.Change
	Entry *WalkedEntry
	Page  *checkpoint.PageHead
}

// Entries calls f with every entry, from the first one to the newest of this moment, and returns
// the mark of the last one, behind which another walk can go on. An error of f ends the walk and is
// returned unchanged.
func (w Walk) Entries(ctx context.Context, f func(*WalkedEntry) error) (checkpoint.Mark, error) {
	from, end := w.From, w.After
	if w.After.Seq > 0 {
		from = w.After.Seq + 1
	}
	info, err := w.Log.Info(ctx)
	if err != nil {
		return end, err
	}
	switch {
	case from > 0 && from < info.First:
		return end, trimmed(from, info.First)
	case from == info.Last+1:
		return end, w.checkEnd(ctx, info.Last)
	}
	state, err := w.Log.Fold(ctx)
	if err != nil {
		return end, err
	}
	x := &walking{owner: state.Owner, epoch: state.Epoch}
	r, err := w.Log.Read(ctx, from, w.After.Hash)
	if err != nil {
		return end, w.explain(ctx, err, from)
	}
	defer r.Close(context.WithoutCancel(ctx))
	r.EndAt(info.Last)
	for {
		_, e, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return end, w.explain(ctx, err, max(end.Seq+1, from))
		}
		if err := f(x.entry(r.Mark(), e)); err != nil {
			return end, err
		}
		end = r.Mark()
	}
}

// Changes calls f with every change that the entries hold, otherwise as Entries does.
func (w Walk) Changes(ctx context.Context, f func(*WalkedChange) error) (checkpoint.Mark, error) {
	return w.Entries(ctx, func(e *WalkedEntry) error { return e.Changes(f) })
}

// ChangesOf calls f with every change of some items, which are named by their canonical keys, and
// with the index of the key; otherwise as Entries does.
func (w Walk) ChangesOf(
	ctx context.Context, schema change.KeySchema, keys [][]byte, f func(key int, c *WalkedChange) error,
) (checkpoint.Mark, error) {
	byHash := map[uint64][]int{}
	for i, key := range keys {
		h := change.HashKey(key)
		byHash[h] = append(byHash[h], i)
	}
	var key []byte
	return w.Changes(ctx, func(c *WalkedChange) (err error) {
		maybe := byHash[c.KeyHash]
		if maybe == nil {
			return nil
		}
		if key, err = c.Key(key[:0], schema); err != nil {
			return err
		}
		for _, i := range maybe {
			if bytes.Equal(key, keys[i]) {
				if err := f(i, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// EntrySince returns the first entry that was stored at a time or later, by the clock of the log's
// server. ErrTrimmed when such entries may have been deleted.
func EntrySince(ctx context.Context, log *Log, t time.Time) (uint64, error) {
	info, err := log.Info(ctx)
	if err != nil {
		return 0, err
	}
	if info.Trimmed() && !info.Oldest.Before(t) {
		return 0, fmt.Errorf("%w: its oldest entry is of %s", ErrTrimmed, info.Oldest.UTC().Format(time.RFC3339))
	}
	return log.SeqAt(ctx, t)
}

// KeyHashesBehind returns the hashes of the first few items that changes behind an entry are of,
// but for deletions by TTL.
func KeyHashesBehind(ctx context.Context, log *Log, behind uint64, most int) (hashes []string, err error) {
	enough := errors.New("enough")
	_, err = Walk{Log: log, From: behind + 1}.Changes(ctx, func(c *WalkedChange) error {
		if c.TTL {
			return nil
		}
		if h := change.HashText(c.KeyHash); !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
		if len(hashes) == most {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return hashes, fmt.Errorf("look for changed items: %w", err)
	}
	return hashes, nil
}

// clockMargin covers what changes between two clocks, and what it takes to read them.
const clockMargin = time.Minute

// EntrySinceCreated returns an entry before which there is no change that was created at a time or
// later, by the service's clock, which shows now. ErrTrimmed when such changes may have been
// deleted.
func EntrySinceCreated(ctx context.Context, log *Log, t, now change.Millis) (uint64, error) {
	info, err := log.Info(ctx)
	if err != nil {
		return 0, err
	}
	return EntrySince(ctx, log, info.Now.Add(-now.Time().Sub(t.Time())-clockMargin))
}

// Changes calls f with every change of the entry. Entries of other kinds than frames have none.
func (e *WalkedEntry) Changes(f func(*WalkedChange) error) (err error) {
	if e.Kind != checkpoint.KindFrame {
		return nil
	}
	out := WalkedChange{Entry: e}
	e.walk.buf, err = frame.Unpack(e.Entry, e.walk.buf, func(p *checkpoint.PageHead, c *change.Change) error {
		out.Change, out.Page = c, p
		return f(&out)
	})
	return err
}

// Key appends the canonical key of the change's item.
func (c *WalkedChange) Key(dst []byte, schema change.KeySchema) ([]byte, error) {
	var d change.Decoder
	img, err := d.Image(c.Keys)
	if err != nil {
		return dst, fmt.Errorf("read keys of a change: %w", err)
	}
	return schema.Canonical(dst, img)
}

// walking is what a walk has read of the entries before the current one.
type walking struct {
	owner string // named by the last claim
	epoch uint64 // of owner
	buf   []byte // of an unpacked frame
}

// entry returns an entry with its owner. Until the first claim, the owner is set only for entries
// of the newest epoch.
func (x *walking) entry(at checkpoint.Mark, e *checkpoint.Entry) *WalkedEntry {
	if claim, ok := e.Body.(*checkpoint.Claim); ok {
		x.owner, x.epoch = claim.Owner, e.Epoch
	}
	out := &WalkedEntry{Entry: e, Seq: at.Seq, Hash: at.Hash, walk: x}
	if e.Epoch == x.epoch {
		out.Owner = x.owner
	}
	return out
}

// checkEnd checks that a log which has nothing behind the mark still holds the mark's entry.
func (w Walk) checkEnd(ctx context.Context, last uint64) error {
	if w.After.Hash == (checkpoint.Hash{}) {
		return nil
	}
	r, err := w.Log.Read(ctx, last+1, w.After.Hash)
	if err != nil {
		return w.explain(ctx, err, last+1)
	}
	r.Close(ctx)
	return nil
}

// explain returns ErrTrimmed where the next entry was trimmed, else err.
func (w Walk) explain(ctx context.Context, err error, next uint64) error {
	if !errors.Is(err, ErrGap) {
		return err
	}
	info, failed := w.Log.Info(ctx)
	if failed != nil || next == 0 || next >= info.First {
		return err
	}
	return trimmed(next, info.First)
}

func trimmed(from, first uint64) error {
	return fmt.Errorf("%w: it would begin at entry %d, and the oldest one is %d", ErrTrimmed, from, first)
}
