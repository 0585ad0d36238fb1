package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// tooOldLimit is how many changes may be refused for their age since the last applied one before the sink halts: then
// the clock or the outage is to blame, and not the changes.
const tooOldLimit = 100

// DeadLetters stores the refused changes of a table, and knows which items are dirty because of them. It belongs to one
// life; its methods may be called by any goroutine.
type DeadLetters struct {
	o      *Options
	shared *Shared
	stored *deadletter.Store

	mu     sync.Mutex
	dirty  map[uint64]change.Version // items with a dead letter of Bigtable, by key hash: the lowest version of these
	tooOld map[string]bool           // dead letters refused for their age since the last applied change
	count  int                       // dead letters in the store
	put    int                       // dead letters put by this life
	inPut  int                       // dead letters that are being put
	listed bool                      // dirty and tooOld are those of count dead letters
}

// OpenDeadLetters opens the dead letter store of a table and walks over it. That may take longer than a claim lives:
// the caller keeps beating meanwhile. Options need no Append yet.
func OpenDeadLetters(ctx context.Context, shared *Shared, o Options) (*DeadLetters, error) {
	stored, err := o.Log.DeadLetters(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	l := &DeadLetters{
		o: &o, shared: shared, stored: stored,
		dirty: map[uint64]change.Version{}, tooOld: map[string]bool{},
	}
	return l, l.refresh(ctx)
}

// Watch looks at the store again every period until ctx ends; nil then. It has a goroutine of its own, because walking
// over many dead letters may take longer than a claim lives, while the write loop has to beat.
func (l *DeadLetters) Watch(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.refresh(ctx)
		switch outcome.OfDeadLetters(ctx, err).Action {
		case outcome.Retry:
			l.o.Logger.Warn("look at the dead letters: will be retried", zap.Error(err))
		case outcome.Escalate:
			return err
		}
	}
}

// Count returns how many dead letters there were at the last look; 0 for a nil *DeadLetters.
func (l *DeadLetters) Count() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// isDirty reports whether a change of the item is a dead letter at this version or an earlier one. A change older than
// all dead letters of its item is in Bigtable already, or is applied now: a restart reads it again.
func (l *DeadLetters) isDirty(hash uint64, version change.Version) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lowest, ok := l.dirty[hash]
	return ok && lowest <= version
}

// setLowest notes a dead letter of an item.
func setLowest(dirty map[uint64]change.Version, hash uint64, version change.Version) {
	if lowest, ok := dirty[hash]; !ok || version < lowest {
		dirty[hash] = version
	}
}

// noteApplied notes that Bigtable takes changes.
func (l *DeadLetters) noteApplied() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tooOld) > 0 {
		clear(l.tooOld)
		l.o.Stats.lastApplied.Store(int64(l.shared.now()))
	}
}

// store makes a dead letter of a change, or returns the sink's halt.
//
// Rule 8: nothing is dropped in silence. Rule 1: the dead letter is stored before the mark may pass; a replay stores it
// once, because its id is the change's own.
func (l *DeadLetters) store(ctx context.Context, sink string, c *change.Change, seq uint64, why outcome.Outcome) error {
	letter := deadletter.New(l.o.Table.Source, sink, c, why.Code, why.Reason, l.shared.now().Time())
	halt := l.o.Table.Halts
	l.mu.Lock()
	l.inPut++
	if why.Code == bigtable.CodeTooOld {
		l.tooOld[letter.ID] = true
		halt = halt || len(l.tooOld) > tooOldLimit
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.inPut--
		l.mu.Unlock()
	}()
	if halt {
		return &outcome.HaltError{Code: why.Code, Entry: seq, Reason: why.Reason}
	}
	letter.Behind = sink == SinkBigtable && l.isDirty(c.KeyHash, c.Version)
	if err := l.stored.Put(ctx, letter); err != nil {
		return fmt.Errorf("store dead letter: %w", err)
	}
	l.mu.Lock()
	_, known := l.dirty[c.KeyHash]
	if sink == SinkBigtable {
		setLowest(l.dirty, c.KeyHash, c.Version)
	}
	l.put++
	l.count++
	l.mu.Unlock()
	if !known {
		l.o.Logger.Error("dead letter: a change was refused for good", zap.String("sink", sink), zap.String("code", why.Code),
			zap.Uint64("key_hash", c.KeyHash), zap.Int64("version", int64(c.Version)))
	}
	return nil
}

// refresh looks at the store: `dlq retry` and `dlq drop` change it from outside.
func (l *DeadLetters) refresh(ctx context.Context) error {
	n, err := l.stored.Count(ctx)
	if err != nil {
		return fmt.Errorf("count dead letters: %w", err)
	}
	l.mu.Lock()
	known, put := l.count == n && l.listed, l.put
	l.mu.Unlock()
	if known {
		return nil
	}
	if l.shared.BeforeWalk != nil {
		l.shared.BeforeWalk(ctx)
	}
	dirty, tooOld := make(map[uint64]change.Version, n), map[string]bool{}
	for x, err := range l.stored.All(ctx) {
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		if x.Sink == SinkBigtable {
			setLowest(dirty, x.KeyHash, x.Version)
		}
		if x.Code == bigtable.CodeTooOld && x.FirstSeen.UnixMilli() > l.o.Stats.lastApplied.Load() {
			tooOld[x.ID] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.put != put || l.inPut > 0 {
		return nil // one was or is being stored, and the walk may have missed it: look again next time
	}
	// They count since the last applied change, whatever lives ended in between: a table that can apply nothing else must
	// halt, and not store another hundred in every life. What was retried or dropped counts no more.
	l.tooOld = tooOld
	l.dirty, l.count, l.listed = dirty, n, true
	return nil
}
