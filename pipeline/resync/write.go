package resync

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
)

// writePage waits until the stream has passed the reading of a page, then writes its items.
//
// Without the wait a reader could see an item step back: the page's content, then older changes of
// it.
func (c *Copier) writePage(ctx context.Context, x *part, pg *page) error {
	err := c.awaitProof(ctx, pg)
	if err == nil {
		err = c.writeProven(ctx, pg)
	}
	if errors.Is(err, apply.ErrStale) {
		c.o.Logger.Info("a page became too old before it could be written: it is read again", zap.Int("part", x.Number))
		c.parts.readAgain(x, pg)
		return nil
	}
	if err != nil {
		return err
	}
	c.parts.complete(x, pg)
	c.stats.addPage(pg)
	return nil
}

// awaitProof waits until the stream has passed the reading of a page, at most until that is too
// old. The proof may take for ever, as before a gap that waits for an operator, and meanwhile the
// page would take memory from other tables.
func (c *Copier) awaitProof(ctx context.Context, pg *page) error {
	if pg.Items == 0 {
		return nil
	}
	ctx, cancel := apply.WhileFresh(ctx, pg.at)
	defer cancel()
	return c.orStale(ctx, c.o.Prove(ctx, pg.proof))
}

// writeProven writes a page, few pages at once.
func (c *Copier) writeProven(ctx context.Context, pg *page) error {
	if err := c.pages.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.pages.Release(1)
	return c.writeItems(ctx, pg)
}

// writeItems writes the items of a page, many at once. Its goroutines write one item after the
// other, because a stack that grows anew for each costs more than the rest of what a copy does for
// an item.
func (c *Copier) writeItems(ctx context.Context, pg *page) error {
	keys := change.NewKeyReader(c.o.Info.Schema)
	ctx, cancel := apply.WhileFresh(ctx, pg.at)
	defer cancel()
	g, inner := errgroup.WithContext(ctx)
	idle := make(chan *apply.ResyncItem)
	done, err := pg.unpack(func(item []byte) error {
		if err := c.pace.Begin(inner); err != nil {
			return err
		}
		r, err := c.resyncItem(pg, item, keys)
		if err != nil {
			c.pace.End(inner, 0, false)
			return err
		}
		select {
		case idle <- r:
		default:
			g.Go(func() error { return c.writeEach(inner, pg, r, idle) })
		}
		return nil
	})
	close(idle)
	if werr := g.Wait(); werr != nil {
		err = werr // the cause of what ended the loop
	}
	done()
	return c.orStale(ctx, err)
}

// orStale returns ErrStale for an error that ended the writing of a page because the page became
// too old: some of the calls that the writer waits for return another error then.
func (c *Copier) orStale(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, errPaused) && errors.Is(context.Cause(ctx), apply.ErrStale) {
		return apply.ErrStale
	}
	return err
}

// writeEach writes an item, then the items that arrive on more until it is closed.
func (c *Copier) writeEach(ctx context.Context, pg *page, r *apply.ResyncItem, more <-chan *apply.ResyncItem) error {
	for ok := true; ok; r, ok = <-more {
		if err := c.writeItem(ctx, pg, r); err != nil {
			return err
		}
	}
	return nil
}

// resyncItem returns the operation on one item of a page.
func (c *Copier) resyncItem(pg *page, item []byte, keys *change.KeyReader) (*apply.ResyncItem, error) {
	key, err := keys.Of(nil, item)
	if err != nil {
		return nil, fmt.Errorf("read key of a copied item: %w", err)
	}
	return &apply.ResyncItem{
		Keys: key, Hash: change.HashKey(key), Item: item, Version: pg.version, Requested: pg.requested, ReadAt: pg.at,
		First: c.copy.Why == checkpoint.CopyBackfill && c.o.Floor == 0, Copy: c.copy.ID,
	}, nil
}

// writeItem writes one item, and notes if it was refused.
func (c *Copier) writeItem(ctx context.Context, pg *page, r *apply.ResyncItem) error {
	out, err := c.resync(ctx, r)
	c.pace.End(ctx, out.Written, err == nil)
	if err != nil || out.Refused == nil {
		return err
	}
	if !out.Lettered {
		return c.pause(fmt.Sprintf("an item is refused (%s): %s", out.Refused.Code, out.Refused.Reason))
	}
	pg.letters.Add(1)
	c.mu.Lock()
	c.refused[out.Refused.Code]++
	n := c.refused[out.Refused.Code]
	c.mu.Unlock()
	if n > maxRefused {
		return c.pause(fmt.Sprintf("more than %d items are refused (%s): %s; go on with `replicator copy resume`",
			maxRefused, out.Refused.Code, out.Refused.Reason))
	}
	return nil
}

// resync writes an item. Trouble with one item is tried again until what was read is too old: it
// does not end the table's life, because the changes of the stream go on.
func (c *Copier) resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	for n := 1; ; n++ {
		out, err := c.o.write(ctx, r)
		if n > 1 {
			c.setTrouble(noPart, "")
		}
		if err == nil || errors.Is(err, apply.ErrStale) || errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return out, err
		}
		if n == 1 {
			c.o.Logger.Warn("an item could not be copied: will be tried again",
				zap.String("key_hash", change.HashText(r.Hash)), zap.Error(err))
		}
		c.setTrouble(noPart, err.Error())
		if err := failure.Pause(ctx, failure.Backoff(n)); err != nil {
			return out, err
		}
	}
}
