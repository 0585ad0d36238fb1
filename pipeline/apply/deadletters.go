package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// tooOldLimit is how many changes may be refused for their age since the last applied one before
// the sink halts: then the clock or the outage is to blame, and not the changes.
const tooOldLimit = 100

// loggedPerMinute is how many refused changes of a table are logged in a minute. A mapping that
// does not fit refuses every one; the counts are in the line that each table logs once a minute.
// (zap's own sampler takes half a megabyte for each table.)
const loggedPerMinute = 20

// DeadLetters stores the refused changes of a table, and tracks which items are dirty because of
// them. It belongs to one life; its methods may be called by any goroutine.
type DeadLetters struct {
	o      *Options
	shared *Shared
	stored *deadletter.Store
	logged *rate.Limiter // of refused changes

	mu     sync.Mutex
	items  map[uint64]*letteredItem // by key hash
	codes  map[string]int           // how many of items there are of each code
	tooOld map[string]bool          // dead letters refused for their age since the last applied change
	breaks breaker
	count  int       // dead letters in the store
	put    int       // dead letters put by this life
	inPut  int       // dead letters that are being put or deleted
	listed bool      // items and tooOld are those of count dead letters
	since  time.Time // since when there have been dead letters, while there are some
}

// OpenDeadLetters opens the dead letter store of a table and walks over it. That may take longer
// than a claim lives: the caller keeps beating meanwhile. Options need no Append yet.
func OpenDeadLetters(ctx context.Context, shared *Shared, o Options) (*DeadLetters, error) {
	stored, err := o.Log.DeadLetters(ctx)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	l := &DeadLetters{
		o: &o, shared: shared, stored: stored, items: map[uint64]*letteredItem{}, codes: map[string]int{},
		tooOld: map[string]bool{},
		logged: rate.NewLimiter(rate.Every(time.Minute/loggedPerMinute), loggedPerMinute),
	}
	return l, l.refresh(ctx)
}

// Watch looks at the store again every period until ctx ends; nil then. It has a goroutine of its
// own, because walking over many dead letters may take longer than a claim lives, while the write
// loop has to beat.
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

// Since returns since when there have been dead letters: when the oldest was refused that was there
// at the last walk over the store, or the first one behind it. Zero for a nil *DeadLetters.
func (l *DeadLetters) Since() time.Time {
	if l == nil {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// CountOf returns how many dead letters of a sink are known.
func (l *DeadLetters) CountOf(sink string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.items {
		for i := range x.letters {
			if x.letters[i].sink == sink {
				n++
			}
		}
	}
	return n
}

// isDirty reports whether a change of the item is a dead letter at this version or an earlier one.
// A change older than all dead letters of its item is in Bigtable already, or is applied now: a
// restart reads it again.
func (l *DeadLetters) isDirty(hash uint64, version change.Version) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.items[hash]
	return x != nil && x.dirty != 0 && x.dirty <= version
}

// has reports whether a change is a dead letter of a sink.
func (l *DeadLetters) has(sink string, c *change.Change) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.items[c.KeyHash]
	return x != nil && slices.ContainsFunc(x.letters, func(ref letterRef) bool {
		return ref.sink == sink && ref.version == c.Version
	})
}

// of returns the dead letters of the items with a key hash, in version order: of every sink, or of
// Bigtable only.
func (l *DeadLetters) of(hash uint64, everySink bool) (refs []letterRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.items[hash]
	if x == nil {
		return nil
	}
	for _, ref := range x.letters {
		if everySink || ref.sink == checkpoint.SinkBigtable {
			refs = append(refs, ref)
		}
	}
	slices.SortStableFunc(refs, func(a, b letterRef) int { return cmp.Compare(a.version, b.version) })
	return refs
}

// noteApplied notes that Bigtable takes changes.
func (l *DeadLetters) noteApplied() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaks.took()
	if len(l.tooOld) > 0 {
		clear(l.tooOld)
		l.o.Stats.lastApplied.Store(int64(l.shared.now()))
	}
}

// store makes a dead letter of a change, or returns the sink's halt.
//
// Rule 8: nothing is dropped in silence. Rule 1: the dead letter is stored before the mark may
// pass; a replay stores it once, because its id is the change's own.
func (l *DeadLetters) store(ctx context.Context, sink string, c *change.Change, seq uint64, why outcome.Outcome) error {
	letter := deadletter.New(l.o.Source, sink, c, why.Code, why.Reason, l.shared.now().Time())
	halt := l.o.Table.Halts
	l.mu.Lock()
	l.inPut++
	if why.Code == bigtable.CodeTooOld {
		l.tooOld[letter.ID] = true
		halt = halt || len(l.tooOld) > tooOldLimit
	}
	breaks := sink == checkpoint.SinkBigtable && !l.holds(c.KeyHash, letter.ID) && l.breaks.refused(why.Code)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.inPut--
		l.mu.Unlock()
	}()
	switch {
	case halt:
		return &outcome.HaltError{Code: why.Code, Entry: seq, Reason: why.Reason, Held: true}
	case breaks:
		return l.breaks.halt(seq, why)
	}
	letter.Behind = sink == checkpoint.SinkBigtable && l.isDirty(c.KeyHash, c.Version)
	if err := l.stored.Put(ctx, letter); errors.Is(err, deadletter.ErrDropped) {
		return nil // somebody has said that the change may be lost
	} else if err != nil {
		return fmt.Errorf("store dead letter: %w", err)
	}
	if !l.noteStored(letter, c.Keys, imageOf(c)) && l.logged.Allow() {
		l.o.Logger.Error("dead letter: a change was refused for good", zap.Inline(letter))
	}
	return nil
}

// storeOfCopy makes a dead letter of an item that a copy cannot write. It halts nothing and counts
// for no limit: the operator of the copy decides when there are too many.
func (l *DeadLetters) storeOfCopy(ctx context.Context, x deadletter.CopyItem, why outcome.Outcome) error {
	now := l.shared.now().Time()
	letter := deadletter.NewOfCopy(l.o.Source, checkpoint.SinkBigtable, x, why.Code, why.Reason, now)
	if _, err := l.keep(ctx, letter, x.Keys); err != nil {
		return fmt.Errorf("store dead letter of a copy: %w", err)
	}
	return nil
}

// imageOf returns the newest image of a changed item; nil without one.
func imageOf(c *change.Change) []byte {
	if c.Op == change.Remove {
		return c.Old
	}
	return c.New
}

// keep stores a letter, and returns whether its item had others. keys are the item's, as typed
// JSON.
func (l *DeadLetters) keep(ctx context.Context, letter *deadletter.Letter, keys []byte) (known bool, err error) {
	l.mu.Lock()
	l.inPut++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.inPut--
		l.mu.Unlock()
	}()
	if err := l.stored.Put(ctx, letter); errors.Is(err, deadletter.ErrDropped) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	return l.noteStored(letter, keys, nil), nil
}

// noteStored notes that a dead letter is in the store, and returns whether its item had others.
// image is the item's newest one, or nil.
func (l *DeadLetters) noteStored(letter *deadletter.Letter, keys, image []byte) (known bool) {
	rule := l.ruleOf(keys, image)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put++
	if l.holds(letter.KeyHash, letter.ID) {
		return true // stored again by a replay
	}
	x := l.items[letter.KeyHash]
	addLetter(l.items, letter.KeyHash, refOf(letter))
	l.codes[letter.Code]++
	if l.count++; l.count == 1 || l.since.IsZero() || letter.FirstSeen.Before(l.since) {
		l.since = letter.FirstSeen
	}
	l.o.Stats.refused.WithLabelValues(letter.Sink, letter.Code, rule).Inc()
	return x != nil
}

// drop deletes dead letters of an item, in the order given, after their changes were applied or the
// rows of the item were repaired. It returns how many it deleted before an error.
func (l *DeadLetters) drop(ctx context.Context, hash uint64, ids []string) (n int, err error) {
	l.mu.Lock()
	l.inPut++ // a walk that ends meanwhile does not count some of them, which are subtracted below
	l.mu.Unlock()
	for n < len(ids) && err == nil {
		if err = l.stored.Forget(ctx, ids[n]); errors.Is(err, deadletter.ErrNotFound) {
			err = nil
		}
		if err == nil {
			n++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inPut--
	l.put++ // a walk under way may have seen them
	l.count -= n
	for _, id := range ids[:n] {
		delete(l.tooOld, id)
	}
	l.update(hash, ids[:n], nil)
	if err != nil {
		return n, fmt.Errorf("delete applied dead letter: %w", err)
	}
	return n, nil
}

// recordRetry stores that a dead letter was tried again and stays. With a version in r.Resynced its
// item is not dirty because of it any more.
func (l *DeadLetters) recordRetry(ctx context.Context, hash uint64, id string, r deadletter.Retried) error {
	err := l.stored.RecordRetry(ctx, id, r)
	if errors.Is(err, deadletter.ErrNotFound) {
		return nil // dropped meanwhile
	}
	if err != nil {
		return fmt.Errorf("record retry of dead letter: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put++
	l.update(hash, []string{id}, func(ref *letterRef) { ref.dirty = ref.dirty && r.Resynced == 0 })
	return nil
}

// update changes the entries of dead letters, or removes them when change is nil. The caller holds
// the mutex.
func (l *DeadLetters) update(hash uint64, ids []string, change func(*letterRef)) {
	x := l.items[hash]
	if x == nil {
		return
	}
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	kept := x.letters[:0]
	x.dirty = 0
	for _, ref := range x.letters {
		if named[ref.id] && change == nil {
			if l.codes[ref.code]--; l.codes[ref.code] == 0 {
				delete(l.codes, ref.code)
			}
			continue
		}
		if named[ref.id] {
			change(&ref)
		}
		kept = append(kept, ref)
		x.noteDirty(ref)
	}
	if x.letters = kept; len(kept) == 0 {
		delete(l.items, hash)
	}
}

// refresh looks at the store: `dlq drop` changes it from outside.
func (l *DeadLetters) refresh(ctx context.Context) error {
	l.mu.Lock()
	put := l.put // before the look: one that is dropped behind it is in its number and not in the walk
	l.mu.Unlock()
	n, dropped, err := l.stored.Look(ctx)
	if err != nil {
		return fmt.Errorf("look at dead letters: %w", err)
	}
	l.mu.Lock()
	known := l.count == n && l.listed && !dropped
	l.mu.Unlock()
	if known {
		return nil
	}
	if l.shared.BeforeWalk != nil {
		l.shared.BeforeWalk(ctx)
	}
	items, tooOld, since := make(map[uint64]*letteredItem, n), map[string]bool{}, time.Time{}
	codes := map[string]int{}
	for x, err := range l.stored.All(ctx) {
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		addLetter(items, x.KeyHash, refOf(x))
		codes[x.Code]++
		if since.IsZero() || x.FirstSeen.Before(since) {
			since = x.FirstSeen
		}
		if x.Code == bigtable.CodeTooOld && x.Copy == "" && x.FirstSeen.UnixMilli() > l.o.Stats.lastApplied.Load() {
			tooOld[x.ID] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.put != put || l.inPut > 0 {
		return nil // one was or is being stored, and the walk may have missed it: look again next time
	}
	// They count since the last applied change, whatever lives ended in between: a table that can
	// apply nothing else must halt, and not store another hundred in every life. What was retried
	// or dropped counts no more.
	l.tooOld = tooOld
	l.items, l.codes, l.count, l.listed, l.since = items, codes, n, true, since
	return nil
}
