package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Prove blocks until the Bigtable sink has applied every change that was created up to through, a
// time of the service. Then an item that was read before through may be written: all older changes
// of it are in Bigtable already. It blocks for as long as that cannot be proved: while the stream
// is disabled, a shard stands before a gap that is not accepted, or the log is full; Unproven
// returns the reason. It returns an error when ctx or the reading of the life ends.
//
// Rule 10: the proof rests on a complete listing begun after that time, on reads of every shard
// that reach past it, and on the mark of the Bigtable sink. The archive and copies do not count.
// One listing serves all callers that wait for an earlier time; without callers, nothing is listed.
func (in *Ingest) Prove(ctx context.Context, through change.Millis) error {
	p := in.prover.add(through)
	defer in.prover.remove(p)
	select {
	case <-p.met:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("prove that all is applied: %w", context.Cause(ctx))
	case <-in.handoff.drained:
		return fmt.Errorf("prove that all is applied: the table is drained: %w", context.Canceled)
	}
}

// Unproven returns what the callers of Prove wait for, in words; empty when there are none.
func (in *Ingest) Unproven() string { return in.prover.reason() }

// prover holds the waiting calls of Prove. The lister makes the listings that they need; the write
// loop checks after each entry which of them are met.
type prover struct {
	log *zap.Logger

	mu      sync.Mutex // covers what follows
	waiting []*proof
	why     string
	reads   change.Millis // all shards were read at once for the calls up to this time

	added chan struct{} // capacity 1: for the lister
}

// proof is one call of Prove.
type proof struct {
	protocol.Proof               // the write loop owns what it has observed
	asked          time.Time     // this process's clock when Prove was called
	met            chan struct{} // closed when it is met
}

func newProver(log *zap.Logger) *prover { return &prover{log: log, added: make(chan struct{}, 1)} }

func (v *prover) add(through change.Millis) *proof {
	p := &proof{Proof: protocol.Proof{Through: through}, asked: time.Now(), met: make(chan struct{})}
	v.mu.Lock()
	v.waiting = append(v.waiting, p)
	v.mu.Unlock()
	signal(v.added)
	return p
}

func (v *prover) remove(p *proof) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waiting = slices.DeleteFunc(v.waiting, func(x *proof) bool { return x == p }); len(v.waiting) == 0 {
		v.why = ""
	}
}

func (v *prover) reason() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.why
}

// dateStep is the precision of the service's Date: a listing or a page may carry a Date that is
// earlier than its begin by that.
const dateStep = time.Second

// lookAgain bounds the time between two looks at the service's clock while a listing is due later.
// The clock is an estimate, which moves on by this process's monotonic clock and jumps when a reply
// shows that it was wrong: behind by an hour after the machine was suspended for one.
const lookAgain = 100 * time.Millisecond

// nextListing returns how long to wait before a listing that the waiting calls need; false when
// they need none. listed is when the newest complete listing began, now the time of the service.
// proved is when the last listing for a proof began, at the present, both by this process's clock.
// A call that has waited for patience without a listing gets one, whatever now is: its reply
// corrects a clock that is behind, which nothing else may do while no shard is read.
func (v *prover) nextListing(
	listed, now change.Millis, proved, at time.Time, patience time.Duration,
) (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var first *proof
	overdue := patience
	for _, p := range v.waiting {
		if p.Through <= listed {
			continue
		}
		if first == nil || p.Through < first.Through {
			first = p
		}
		since := min(at.Sub(p.asked), at.Sub(proved))
		overdue = min(overdue, patience-since)
	}
	if first == nil {
		return 0, false
	}
	due := time.Duration(first.Through-now)*time.Millisecond + dateStep
	return max(min(due, overdue), 0), true
}

// nextRead returns how long to wait before every shard is read at once; false when no waiting call
// needs it. The calls up to listed have their listing, and an empty page of each open shard serves
// all of them. Each is served once: what such a read lacks, the next due one brings.
func (v *prover) nextRead(listed, now change.Millis) (time.Duration, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := change.Millis(0)
	for _, p := range v.waiting {
		if p.Through <= listed && p.Through > v.reads && !p.Read() {
			last = max(last, p.Through)
		}
	}
	return time.Duration(checkpoint.ReadFrom(last)-now)*time.Millisecond + dateStep, last > 0
}

// noteRead notes that every shard is read now for the calls up to listed.
func (v *prover) noteRead(listed change.Millis) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads = listed
}

// firstUnread returns the earliest time behind another one that a waiting call needs to be read,
// and that has its listing; 0 for none.
func (v *prover) firstUnread(behind, listed change.Millis) (through change.Millis) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.waiting {
		if p.Through > behind && p.Through <= listed && !p.Read() && (through == 0 || p.Through < through) {
			through = p.Through
		}
	}
	return through
}

// unapplied reports whether everything is read that a waiting call needs, and not applied yet.
func (v *prover) unapplied() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.ContainsFunc(v.waiting, func(p *proof) bool { return p.Read() })
}

// wantsBeat reports whether a beat would show that everything is read up to the time of a waiting
// call. listed and read are what the beat would show; it shows nothing of shards that stand before
// a gap.
func (v *prover) wantsBeat(s *checkpoint.State, listed, read change.Millis) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(s.GappedShards()) == 0 && slices.ContainsFunc(v.waiting, func(p *proof) bool {
		return !p.Read() && min(listed, read) >= p.Through && min(s.Listed, s.ReadWatermark()) < p.Through
	})
}

// look ends the waiting calls that are met. mark is the Bigtable sink's, in memory; paused is why
// reading pauses, if it does.
func (v *prover) look(s *checkpoint.State, mark uint64, paused string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	why := ""
	v.waiting = slices.DeleteFunc(v.waiting, func(p *proof) bool {
		missing := p.Look(s, mark)
		if missing == protocol.MissingNothing {
			close(p.met)
			return true
		}
		if why == "" || !p.Read() {
			why = unprovenReason(&p.Proof, missing, s, paused)
		}
		return false
	})
	if why != v.why && why != "" {
		v.log.Debug("a proof waits", zap.String("reason", why), zap.Int("callers", len(v.waiting)))
	}
	v.why = why
}

// unprovenReason describes what a proof lacks; paused is why reading pauses, if it does.
func unprovenReason(p *protocol.Proof, m protocol.Missing, s *checkpoint.State, paused string) string {
	if (m == protocol.MissingListing || m == protocol.MissingRead) && paused != "" {
		return "reading pauses: " + paused
	}
	return p.Why(m, s)
}

func (v *prover) idle() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.waiting) == 0
}
