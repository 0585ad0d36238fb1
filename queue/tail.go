package queue

import (
	"context"
	"sync"
	"time"
)

// The embedded server writes a log into blocks. A block that is read while it is written stays in
// the server's memory until ten seconds after its last read; no option of the server changes that.
// A block that is first read when it is finished is written in the buffer of the block before it,
// and the collector may free what a read of it has loaded. So a log that is read at its end takes
// ten times what is appended to it in a second.
const (
	blockBytes  = 8 << 20          // no block holds more
	keptSeconds = 10               // for which a block is kept
	longestFill = 2 * time.Second  // the longest that readers wait for the end of a block
	runBytes    = blockBytes / 128 // entries that are smaller together are noted as one
)

// tails measures how fast the logs of the embedded server grow, and has their readers keep behind
// the blocks that are being written while that is fast.
//
// A reader keeps behind while two things hold: the blocks that were written in ten seconds exceed
// the limit, all logs together; and its own log fills a block in two seconds. A change waits for the
// end of its block, and no longer than twice as long as the block before took, at most two seconds.
// Appends never wait for a reader.
//
// Rule 9: what the server keeps of the logs is bounded in bytes. Above the limit come two blocks of
// each log: the one that is being written, and the one that is being read.
type tails struct {
	limit int64 // bytes that the blocks may take

	mu       sync.Mutex // covers what follows, and all tails
	bySecond [keptSeconds]int64
	second   int64 // the newest of them, since 1970
	logs     map[string]*tail
}

// tail is the end of one log. The mutex of its tails covers it.
type tail struct {
	all      *tails
	newest   []appended // may be in the block that is being written; at most 2·blockBytes/runBytes
	bytes    int64      // of newest
	finished uint64     // no entry up to this one is in that block
	behind   time.Time  // readers keep behind that block until then
	moved    chan struct{}
}

// appended is an entry that the server has stored, or a run of small ones.
type appended struct {
	seq   uint64 // of the last
	bytes int64
	last  int64     // bytes of the last
	at    time.Time // of the last
}

// extend takes an entry into the run, and reports whether it is small enough.
func (a *appended) extend(e appended) bool {
	if a.bytes+e.bytes > runBytes {
		return false
	}
	e.bytes += a.bytes
	*a = e
	return true
}

func newTails(limit int64) *tails { return &tails{limit: limit, logs: map[string]*tail{}} }

// of returns the tail of the log in a stream; nil where the server is elsewhere.
func (a *tails) of(stream string) *tail {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.logs[stream]
	if t == nil {
		t = &tail{all: a, moved: make(chan struct{})}
		a.logs[stream] = t
	}
	return t
}

// add counts bytes that were appended, and returns how many were in ten seconds. The mutex is held.
func (a *tails) add(bytes int64, now time.Time) (sum int64) {
	for second := now.Unix(); a.second < second; {
		a.second = max(a.second+1, second-keptSeconds)
		a.bySecond[a.second%keptSeconds] = 0
	}
	a.bySecond[a.second%keptSeconds] += bytes
	for _, n := range a.bySecond {
		sum += n
	}
	return sum
}

// note takes an entry that was stored.
func (t *tail) note(seq uint64, bytes int, now time.Time) {
	if t == nil {
		return
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	sum := t.all.add(int64(bytes), now)
	e := appended{seq, int64(bytes), int64(bytes), now}
	if n := len(t.newest); n == 0 || !t.newest[n-1].extend(e) {
		t.newest = append(t.newest, e)
	}
	t.bytes += int64(bytes)
	last := appended{}
	for len(t.newest) > 0 {
		first := t.newest[0]
		if t.bytes-first.bytes+first.last <= blockBytes {
			break
		}
		last = first // its last entry and what follows do not fit in one block
		t.newest = t.newest[1:]
		t.bytes -= first.bytes
	}
	if last.seq == 0 {
		return
	}
	t.finished = last.seq
	// A log that takes twice as long for the next block is no longer fast.
	if fill := now.Sub(last.at); sum > t.all.limit && fill <= longestFill {
		t.behind = now.Add(min(2*fill, longestFill))
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// look returns the last entry that is certainly in a finished block, until when readers keep behind
// the others, and a channel that is closed when that changes.
func (t *tail) look() (finished uint64, behind time.Time, moved <-chan struct{}) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.finished, t.behind, t.moved
}

// What a reader requests at once: with few messages it waits for the server after each of them, and
// a log of small frames takes twice the CPU.
const (
	pulledBytes    = 2 << 20 // or one message
	pulledMessages = 64
	firstPulled    = 4 // messages: before the first one, whose size is not known, and at the end of the log
)

// request requests the next messages unless some that were requested are on their way, and blocks
// while the reader keeps behind.
func (r *Reader) request(ctx context.Context) error {
	for r.seq >= r.requested {
		n := uint64(firstPulled)
		if r.size > 0 {
			n = min(max(uint64(pulledBytes/r.size), 1), pulledMessages)
		}
		if r.l.tail != nil { // what follows the end of the log may be large
			n = min(n, max(r.cur.Pending(), firstPulled))
		}
		if t := r.l.tail; t != nil && r.endAt == 0 {
			finished, behind, moved := t.look()
			if wait := time.Until(behind); wait > 0 {
				if finished <= r.seq {
					if err := awaitMoved(ctx, moved, wait); err != nil {
						return err
					}
					continue
				}
				n = min(n, finished-r.seq)
			}
		}
		r.requested = r.seq + n
		return r.cur.Request(int(n))
	}
	return nil
}

// awaitMoved blocks until moved is closed or the time is over. The cause of ctx when that ended.
func awaitMoved(ctx context.Context, moved <-chan struct{}, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-moved:
	case <-timer.C:
	}
	return nil
}
