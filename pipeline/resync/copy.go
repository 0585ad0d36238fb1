package resync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// Copier makes one copy of a table for one life. Run and Save are called by one goroutine, Progress
// by any.
type Copier struct {
	o       *Options
	copy    checkpoint.CopyState // as the life found it
	origin  origin
	parts   *parts
	pace    *writePace
	pages   *semaphore.Weighted // unpacked ones
	stats   *Stats
	began   time.Time
	first   int64                  // items that were copied before
	asked   int                    // exports that were asked for and are of no use
	ordered bool                   // the resync after the copy was; whoever stores marks owns it
	next    atomic.Pointer[Copier] // copies the export that this Copier has asked for; nil until that is complete

	mu      sync.Mutex // covers what follows
	waits   string     // why nothing is read
	trouble trouble
	refused map[string]int64

	unstored bool // copy.PausedWhy is not in the log yet
}

// origin is where a copy reads its items: a scan or an export.
type origin interface {
	// readers returns how many parts are read at once.
	readers() int
	// read reads the items of a part that follow a position. The batch is valid until done is
	// called.
	read(ctx context.Context, x *part, from string) (b *batch, done func(), err error)
	// due returns when the part may be read again after a batch.
	due(b *batch) time.Time
	close()
}

// New returns the running copy of a state.
func New(o Options, c *checkpoint.CopyState) *Copier {
	o.Periods = o.Periods.withDefaults()
	return &Copier{
		o: &o, copy: *c, parts: newParts(c), pages: semaphore.NewWeighted(unpackedPages),
		pace:  newWritePace(o.WriteRows, o.Bound),
		stats: o.Stats, began: time.Now(), first: c.Total().Items, refused: map[string]int64{},
	}
}

const (
	// unpackedPages is how many pages are unpacked at once, 1 MB each and a little more.
	unpackedPages = 8
	// maxRefused is how many items may be refused with one code before the copy pauses: the mapping
	// is wrong then.
	maxRefused = 1000
)

// errPaused ends the work of a copy that pauses itself.
var errPaused = errors.New("the copy pauses")

// Run copies until the copy is complete, pauses itself, or ctx ends; nil then. An error concerns
// the table's life.
func (c *Copier) Run(ctx context.Context) error {
	if (c.copy.Paused || c.copy.PausedWhy != "") && c.copy.Delegated == 0 {
		return nil
	}
	err := c.run(ctx)
	if next := c.next.Load(); err == nil && next != nil {
		return next.Run(ctx)
	}
	if errors.Is(err, errPaused) {
		err = c.storePause(ctx)
	}
	if ended := ctx.Err() != nil || errors.Is(err, context.Canceled); ended { // what is not stored yet, Save does
		return nil
	}
	return err
}

func (c *Copier) run(ctx context.Context) error {
	if c.copy.Delegated > 0 && (c.copy.Parts > 0 || c.copy.Closes()) {
		return c.watchWorkers(ctx)
	}
	if c.copy.From == checkpoint.FromExport && c.copy.Export == "" {
		complete, err := c.ask(ctx)
		if err == nil && complete.By == checkpoint.ByWorkers {
			err = c.awaitDelegated(ctx, complete)
		}
		if err == nil {
			c.next.Store(New(*c.o, complete))
		}
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer c.origin.close()
	if err := c.awaitBegin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(ctx)
	g.Go(func() error {
		c.pace.Run(working, c.o.Writer.Backlog, c.o.Throttled)
		return nil
	})
	for range c.origin.readers() {
		g.Go(func() error { return c.readPages(ctx, g) })
	}
	g.Go(func() error {
		defer stop()
		return c.mark(ctx)
	})
	return g.Wait()
}

// open opens the scan or export that the items are read from. An export that cannot be opened is
// tried again: the stream does not need it.
func (c *Copier) open(ctx context.Context) error {
	if c.copy.From == checkpoint.FromScan {
		c.origin = &scan{o: c.o, began: c.copy.Began, total: c.copy.Parts, limit: c.pace.PageLimit}
		return nil
	}
	for n := 1; ; n++ {
		e, err := c.o.Exports.Open(ctx, c.copy.Export)
		if err == nil && len(e.Files) != c.copy.Parts {
			err = fmt.Errorf("export %s has %d files, not %d as when the copy began", c.copy.Export, len(e.Files), c.copy.Parts)
		}
		if err == nil {
			c.origin = newExported(c.o, e, c.pace.PageLimit)
			c.setTrouble(noPart, "")
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n == 1 {
			c.o.Logger.Error("the export could not be opened: will be tried again", zap.Error(err))
		}
		c.setTrouble(noPart, whyOf(err))
		if err := failure.Pause(ctx, failure.Backoff(n)); err != nil {
			return err
		}
	}
}

// awaitBegin waits for the moment before which no page may be read.
func (c *Copier) awaitBegin(ctx context.Context) error {
	for {
		left := time.Duration(protocol.CopyFrom(&c.copy)-c.o.Now()) * time.Millisecond
		if left <= 0 {
			return nil
		}
		if err := failure.Pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// readPages reads the part that is due first, page after page, until all parts are done. A page is
// written by a goroutine of its own.
func (c *Copier) readPages(ctx context.Context, g *errgroup.Group) error {
	for {
		if err := c.awaitStream(ctx); err != nil {
			return err
		}
		x, err := c.parts.take(ctx)
		if x == nil || err != nil {
			return err
		}
		if err := c.o.Memory.reserve(ctx); err != nil { // not before: other tables need it while no part is due here
			return err
		}
		pg, err := c.readPage(ctx, x)
		if pg == nil {
			c.o.Memory.cancel()
		}
		if err != nil {
			return err
		}
		if pg == nil {
			continue
		}
		release := c.o.Memory.settle(pg)
		c.pace.Hold(pg.Items)
		g.Go(func() error {
			defer release()
			defer c.pace.Hold(-pg.Items)
			return c.writePage(ctx, x, pg)
		})
	}
}

// awaitStream waits while Bigtable is too far behind, or much is in hand that may not be written
// yet: pages that are read now would wait as long.
func (c *Copier) awaitStream(ctx context.Context) error {
	for {
		behind := c.o.Behind()
		switch {
		case behind > maxBehind:
			c.setWaits(fmt.Sprintf("Bigtable is %s behind the stream", behind.Round(time.Second)))
		case !c.pace.Full():
			c.setWaits("")
			return nil
		}
		if err := failure.Pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// readPage reads the next page of a part that was taken, and gives the part back. It returns nil if
// the part must be read again later.
func (c *Copier) readPage(ctx context.Context, x *part) (*page, error) {
	from, rewind := c.parts.position(x)
	b, done, err := c.origin.read(ctx, x, from)
	if err != nil {
		return nil, c.readFailed(ctx, x, err)
	}
	c.setTrouble(x.Number, "")
	c.stats.addUnits(b.units)
	pg := pack(b, from)
	due := c.origin.due(b)
	done()
	if !c.parts.add(x, pg, rewind) {
		pg = nil
	}
	c.parts.giveBack(x, due)
	return pg, nil
}

// readFailed lets a part wait after a failed read; longer after each one, because the others go on
// meanwhile. A copy that cannot read never ends the table's life: the stream does not need it.
func (c *Copier) readFailed(ctx context.Context, x *part, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if paused := (*pauseError)(nil); errors.As(err, &paused) {
		return c.pause(paused.why)
	}
	n := c.parts.failed(x)
	class := source.Classify(err)
	if class != failure.Throttled {
		c.setTrouble(x.Number, whyOf(err))
	}
	pause := failure.Backoff(n)
	switch class {
	case failure.Throttled: // by its partition or by the table, which changes from second to second
		pause = min(pause, failure.Jittered(throttledRetry))
	case failure.Transient:
	default:
		pause = c.o.Periods.Retry // an operator must act
	}
	if n == 1 && class != failure.Throttled {
		c.o.Logger.Warn("the copy could not read: will be tried again", zap.Int("part", x.Number), zap.Error(err))
	}
	c.parts.giveBack(x, time.Now().Add(pause))
	return nil
}
