package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// tooOldLimit is how many changes may be refused for their age since the last applied one before the table halts:
// then it is the clock or the outage that is wrong, and not the changes.
const tooOldLimit = 100

// letters keeps the changes that a sink refused, and knows which items are dirty because of that.
type letters struct {
	t     *table
	store *queue.Letters

	mu     sync.Mutex
	dirty  map[uint64]int64 // items with a letter of Bigtable, by key hash: the lowest version of these
	tooOld map[string]bool  // letters refused for their age since the last applied change
	count  int              // letters in the store
	put    int              // letters put by this life
	listed bool
}

func (t *table) openLetters(ctx context.Context) (*letters, error) {
	store, err := t.logOf().Letters(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	l := &letters{t: t, store: store, dirty: map[uint64]int64{}, tooOld: map[string]bool{}}
	return l, l.refresh(ctx)
}

// watch looks at the store again and again until ctx ends; nil then. It has a goroutine of its own: walking over many
// letters may take longer than the claim's time, in which the write loop must beat.
func (l *letters) watch(ctx context.Context, every time.Duration) error {
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
			l.t.log.Warn("look at the dead letters: will be retried", zap.Error(err))
		case outcome.Escalate:
			return err
		}
	}
}

// isDirty says whether a change of the item is a dead letter, at this version or an earlier one. What is older than all
// letters of the item stands in Bigtable already, or is applied now: a restart reads it again.
func (l *letters) isDirty(hash uint64, version int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lowest, ok := l.dirty[hash]
	return ok && lowest <= version
}

// lower takes note of a letter.
func lower(dirty map[uint64]int64, hash uint64, version int64) {
	if lowest, ok := dirty[hash]; !ok || version < lowest {
		dirty[hash] = version
	}
}

// taken notes that the sink takes changes.
func (l *letters) taken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tooOld) > 0 {
		clear(l.tooOld)
		l.t.appliedAt.Store(l.t.now())
	}
}

// refuse makes a dead letter of the change, or halts the table.
//
// Rule 8: nothing is dropped in silence. Rule 1: the letter is stored before the mark may pass; a replay
// stores it once, for its id is the change's own.
func (l *letters) refuse(ctx context.Context, sink string, c *change.Change, seq uint64, why outcome.Outcome) error {
	letter := queue.NewLetter(l.t.Source, sink, c, why.Code, why.Reason, time.UnixMilli(l.t.now()))
	halt := l.t.OnReject == "halt"
	if why.Code == bigtable.CodeTooOld {
		l.mu.Lock()
		l.tooOld[letter.ID] = true
		halt = halt || len(l.tooOld) > tooOldLimit
		l.mu.Unlock()
	}
	if halt {
		return &outcome.HaltError{Entry: seq, Code: why.Code, Reason: why.Reason}
	}
	letter.Behind = sink == sinkBigtable && l.isDirty(c.KeyHash, c.Version)
	if err := l.store.Put(ctx, letter); err != nil {
		return fmt.Errorf("store dead letter: %w", err)
	}
	l.mu.Lock()
	_, known := l.dirty[c.KeyHash]
	if sink == sinkBigtable {
		lower(l.dirty, c.KeyHash, c.Version)
	}
	l.put++
	l.count++
	l.mu.Unlock()
	if !known {
		l.t.log.Error("dead letter: a change was refused for good", zap.String("sink", sink), zap.String("code", why.Code),
			zap.Uint64("key_hash", c.KeyHash), zap.Int64("version", c.Version))
	}
	return nil
}

// open returns how many letters there are, as of the last look.
func (l *letters) open() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// refresh looks at the store: the commands retry and drop letters beside us.
func (l *letters) refresh(ctx context.Context) error {
	n, err := l.store.Count(ctx)
	if err != nil {
		return fmt.Errorf("count dead letters: %w", err)
	}
	l.mu.Lock()
	known, put := l.count == n && l.listed, l.put
	l.mu.Unlock()
	if known {
		return nil
	}
	dirty, tooOld := make(map[uint64]int64, n), map[string]bool{}
	for x, err := range l.t.p.listLetters(ctx, l.store) {
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		if x.Sink == sinkBigtable {
			lower(dirty, x.KeyHash, x.Version)
		}
		if x.Code == bigtable.CodeTooOld && x.FirstSeen.UnixMilli() > l.t.appliedAt.Load() {
			tooOld[x.ID] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.put != put {
		return nil // a letter came in between: look again next time
	}
	// They count since the last applied change, whatever ended in between: a table that can apply nothing else must
	// halt, and not make another hundred in every life. What was retried or dropped counts no more.
	l.tooOld = tooOld
	l.dirty, l.count, l.listed = dirty, n, true
	return nil
}
