package replay

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/verify"
)

// waiting are the items of a target that wait until they are settled.
type waiting struct {
	mu    sync.Mutex
	items map[itemKey]*waitingItem
	told  map[finding]time.Time // when a mismatch was shown: it is not shown again at each read
	more  chan struct{}         // has a token while something may wait
}

type itemKey struct {
	table int
	key   string
}

// finding is what was found about an item.
type finding struct {
	itemKey
	kinds   string
	pattern string // of the read that shows it; "" for what is so whatever reads the item
}

// waitingItem is an item with how often it differed in the reads of each pattern.
type waitingItem struct {
	verify.Candidate
	first pattern.Pattern
	of    map[string]*differed // by the ID of the pattern
}

type differed struct {
	of    pattern.Pattern
	reads int64
}

// add adds a read in which the item differed, and the rows.
func (x *waitingItem) add(of pattern.Pattern, rows [][]byte) {
	id := of.ID()
	if x.of[id] == nil {
		x.of[id] = &differed{of: of}
	}
	x.of[id].reads++
	for _, row := range rows {
		if !slices.ContainsFunc(x.Rows, func(have []byte) bool { return bytes.Equal(have, row) }) {
			x.Rows = append(x.Rows, row)
		}
	}
}

func newWaiting() *waiting {
	return &waiting{items: map[itemKey]*waitingItem{}, told: map[finding]time.Time{}, more: make(chan struct{}, 1)}
}

// tellAgain is when a mismatch is shown again.
const tellAgain = time.Minute

// news reports whether a mismatch of an item is news, and notes it.
func (w *waiting) news(x *verify.Candidate, kinds, pattern string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := finding{itemKey{x.Table, x.Key}, kinds, pattern}
	if at, told := w.told[key]; told && time.Since(at) < tellAgain {
		return false
	}
	if len(w.told) >= maxSettling {
		clear(w.told) // some are shown again
	}
	w.told[key] = time.Now()
	return true
}

// add adds an item; ok is false if too many wait.
func (w *waiting) add(x verify.Candidate, of pattern.Pattern) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := itemKey{x.Table, x.Key}
	have := w.items[key]
	switch {
	case have != nil:
	case len(w.items) >= maxSettling:
		return false
	default:
		have = &waitingItem{Candidate: x, first: of, of: map[string]*differed{}}
		w.items[key] = have
	}
	have.add(of, x.Rows)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return true
}

// take removes up to n items.
func (w *waiting) take(n int) (some []*waitingItem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, x := range w.items {
		if len(some) == n {
			break
		}
		some = append(some, x)
		delete(w.items, key)
	}
	return some
}

// atOnce is how many items share the wait for a proof.
const atOnce = 1000

// settle decides about the items of a target until all are decided behind done. Behind the end of ctx
// they are left undecided.
func (r *Replayer) settle(ctx context.Context, s *Side, done <-chan struct{}) {
	for last := false; ; {
		some := s.waiting.take(atOnce)
		if len(some) > 0 {
			r.decide(ctx, s, some)
			continue
		}
		if last {
			return
		}
		select {
		case <-done:
			last = true
		case <-s.waiting.more:
		}
	}
}

// pauses of a target that cannot settle now.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// decide decides about some items.
func (r *Replayer) decide(ctx context.Context, s *Side, some []*waitingItem) {
	candidates := make([]verify.Candidate, len(some))
	for i, x := range some {
		candidates[i] = x.Candidate
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		verdicts, err := s.Settler.Decide(ctx, candidates)
		if err == nil {
			r.tell(s, some, verdicts)
			return
		}
		if ctx.Err() == nil {
			r.o.Warn("items that differ are not settled: %v", err)
		}
		if failure.Pause(ctx, pause) != nil {
			for _, x := range some {
				r.each(x, func(c *pattern.Replay, n int64) { c.Leave(Ended, n) })
			}
			return
		}
	}
}

// each counts something about an item for every read in which it differed.
func (r *Replayer) each(x *waitingItem, f func(c *pattern.Replay, reads int64)) {
	for _, d := range x.of {
		r.o.Counts.Replay(&d.of, func(c *pattern.Replay) { f(c, d.reads) })
	}
}

// tell counts what was decided, and shows the mismatches.
func (r *Replayer) tell(s *Side, some []*waitingItem, verdicts []verify.Verdict) {
	for i, x := range some {
		v := &verdicts[i]
		switch v.Status {
		case verify.Equal, verify.EqualByLog, verify.Kept:
			r.each(x, func(c *pattern.Replay, n int64) { c.Equal += n })
		case verify.Refused:
			r.each(x, func(c *pattern.Replay, n int64) { c.Leave(Refused, n) })
		case verify.Unproven:
			why := Unproven
			if v.Busy {
				why = Changing
			}
			r.each(x, func(c *pattern.Replay, n int64) { c.Leave(why, n) })
		default:
			r.mismatch(s, x, v)
		}
	}
}

// mismatch counts an item that differs, once for each read, and shows it unless it was shown lately.
func (r *Replayer) mismatch(s *Side, x *waitingItem, v *verify.Verdict) {
	m := Mismatch{Pattern: x.first.Text(), Table: r.nameOf(s, x.Table), Key: x.Key, Rows: v.Rows}
	for _, k := range v.Kinds {
		m.Kinds = append(m.Kinds, string(k))
	}
	r.each(x, func(c *pattern.Replay, n int64) { c.Wrongly(m.Kinds[0], n) })
	if s.waiting.news(&x.Candidate, strings.Join(m.Kinds, " "), "") {
		r.show(m)
	}
}

// nameOf returns the name of a table by its number.
func (r *Replayer) nameOf(s *Side, number int) string {
	return s.Settler.Tables[number].Program.Table().Source
}
