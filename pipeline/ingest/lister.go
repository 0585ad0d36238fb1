package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// lister keeps the shard graph in the log up to date: complete listings on a slow timer and on
// request, the children at a shard's end, parents that are not listed any more, a new stream after
// the old one was disabled.
type lister struct {
	o       *Options
	log     *queue.Log
	handoff *handoff
	prover  *prover
	proved  time.Time // when the last listing for a proof began; the goroutine of run owns it and denied
	denied  int       // how often in a row DynamoDB answered that it has no such table

	mu      sync.Mutex // covers summary
	summary streamSummary

	seeking atomic.Int32 // shards whose children are being asked for

	listNow chan struct{} // capacity 1
	beatNow chan struct{} // capacity 1: a beat is wanted before its time
}

// streamSummary is the part of the state of the log that the lister needs.
type streamSummary struct {
	stream         string         // ARN of the stream that is read
	missing        []string       // parents that waiting shards name and no listing has shown
	listed         change.Millis  // when the last complete listing began
	applied        bool           // the stream is read to its end, and every sink has passed it
	awaitsChildren bool           // a shard has ended and no child of it is known yet
	highestVersion change.Version // ever given to a record
	readWatermark  change.Millis  // everything before it was read
	disabled       bool
	shards         int      // in the state
	gapped         []string // shards of the stream that are not read because of a gap
}

func newLister(o *Options, log *queue.Log, h *handoff, v *prover) *lister {
	return &lister{
		o: o, log: log, handoff: h, prover: v, listNow: make(chan struct{}, 1), beatNow: make(chan struct{}, 1),
	}
}

// update takes over what the lister must know about the state. The write loop calls it.
func (l *lister) update(s *checkpoint.State) {
	live := s.LiveStream()
	if live == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summary = streamSummary{
		stream: live.ARN, disabled: live.Disabled, missing: s.MissingParents(),
		listed:         max(l.summary.listed, s.Listed),
		applied:        s.Drained(live.ARN) && s.AllApplied(),
		highestVersion: s.HighestVersion(), readWatermark: s.ReadWatermark(),
		shards: len(s.Shards), gapped: s.GappedShards(), awaitsChildren: s.AwaitsChildren(),
	}
	if len(l.summary.missing) > 0 {
		signal(l.listNow)
	}
}

// current returns what the write loop last passed to update. Its slices are never written to.
func (l *lister) current() streamSummary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.summary
}

// lastListing returns when the last complete listing began.
func (l *lister) lastListing() change.Millis { return l.current().listed }

// beatRequested returns a channel that receives when a beat is wanted before its time.
func (l *lister) beatRequested() <-chan struct{} { return l.beatNow }

// run works until ctx ends; nil then.
func (l *lister) run(ctx context.Context) error {
	p := l.o.Periods
	listing, describe := newLooks(p.Listing), newLooks(p.Describe)
	defer listing.Stop()
	defer describe.Stop()
	proof := time.NewTimer(p.Proof)
	defer proof.Stop()
	requests, err := l.log.BeatRequests(ctx)
	if err != nil {
		return fmt.Errorf("listen for beat requests: %w", err)
	}
	// There may be shards that no earlier life has listed: children of a shard that was read to its
	// end just before a crash.
	signal(l.listNow)
	for {
		var err error
		looks := listing
		select {
		case <-ctx.Done():
			return nil
		case <-listing.C:
			err = l.listAll(ctx)
		case <-l.listNow:
			err = l.listAll(ctx)
		case <-requests:
			err = l.listAll(ctx)
			signal(l.beatNow)
		case <-l.prover.added:
		case <-proof.C:
			l.readForProofs()
			err = l.listForProofs(ctx)
		case <-describe.C:
			looks = describe
			if err = l.checkStream(ctx); err == nil && l.current().awaitsChildren {
				err = l.listAll(ctx)
			}
		}
		action := outcome.OfListing(ctx, err).Action
		looks.ended(action == outcome.Retry)
		switch action {
		case outcome.Escalate:
			return err
		case outcome.Retry:
			if looks.toldAgain() {
				l.o.Logger.Warn("list shards: will be retried", zap.Error(err))
			}
		}
		l.scheduleProof(proof) // any listing may have served a proof
	}
}

// looks is when to look at something again.
type looks struct {
	*time.Ticker
	every time.Duration
	hasty bool // the last look failed
	told  time.Time
}

// listAgain is how soon a look that failed is tried again: what is shown about a service that was
// away ends with its first answer.
const listAgain = 10 * time.Second

// toldEvery is how often a failure is logged that goes on.
const toldEvery = time.Minute

// toldAgain reports whether a failure is to be logged now.
func (l *looks) toldAgain() bool {
	if time.Since(l.told) < min(l.every, toldEvery) {
		return false
	}
	l.told = time.Now()
	return true
}

func newLooks(every time.Duration) *looks { return &looks{Ticker: time.NewTicker(every), every: every} }

// ended notes whether a look failed.
func (l *looks) ended(failed bool) {
	if failed == l.hasty {
		return
	}
	if l.hasty = failed; failed {
		l.Reset(min(l.every, listAgain))
	} else {
		l.Reset(l.every)
	}
}

// listForProofs makes the listing that the waiting calls need, unless another listing has served
// them meanwhile or it is not due yet.
func (l *lister) listForProofs(ctx context.Context) error {
	if wait, needed := l.nextListing(); !needed || wait > 0 || time.Since(l.proved) < l.o.Periods.Proof {
		return nil
	}
	l.proved = time.Now()
	return l.listAll(ctx)
}

// readForProofs has all shards read that are not being read, once an empty page of each would serve
// the calls that a listing has served. Idle shards would be read up to an idle poll later.
func (l *lister) readForProofs() {
	listed := l.lastListing()
	if wait, needed := l.prover.nextRead(listed, l.o.now()); needed && wait <= 0 {
		l.prover.noteRead(listed)
		signal(l.handoff.readAll)
	}
}

// scheduleProof sets the timer to what the waiting calls need next: a listing, at most one in
// Periods.Proof, or reads; or to the next look at when that is.
func (l *lister) scheduleProof(timer *time.Timer) {
	wait, needed := l.nextListing()
	if needed {
		wait = max(min(wait, lookAgain), time.Until(l.proved.Add(l.o.Periods.Proof)))
	}
	if read, due := l.prover.nextRead(l.lastListing(), l.o.now()); due {
		if read = min(read, lookAgain); !needed || read < wait {
			wait, needed = read, true
		}
	}
	if needed {
		timer.Reset(max(wait, 0))
	}
}

// nextListing returns how long to wait before a listing for proofs.
func (l *lister) nextListing() (time.Duration, bool) {
	return l.prover.nextListing(l.lastListing(), l.o.now(), l.proved, time.Now(), 2*l.o.Periods.Proof+dateStep)
}

// listAll lists the whole stream and stores what is new.
func (l *lister) listAll(ctx context.Context) error {
	v := l.current()
	if v.stream == "" {
		return nil
	}
	ls, shown, err := l.describeStream(ctx, v.stream)
	if source.Classify(err) == failure.Gone && len(v.missing) > 0 && v.disabled {
		// Rule 3: once a stream has ended, parents that no listing has shown are gone, and their
		// children need not wait. Rule 13: other answers have proven the end, see StreamEnded.
		return l.handoff.request(ctx, &checkpoint.Graph{Stream: v.stream, Date: l.o.now(), Gone: v.missing})
	}
	if err != nil && len(ls.Shards) == 0 {
		return err
	}
	return errors.Join(l.store(ctx, v, ls, shown), err)
}

// store stores what is new in a listing; shown is what the service's answer shows about the stream.
// v is the state when the listing began.
func (l *lister) store(
	ctx context.Context, v streamSummary, ls source.Listing, shown protocol.StreamAnswer,
) (err error) {
	g := graphOf(ls)
	if g.Disabled && !v.disabled {
		_, table := l.describeTable(ctx, v.stream)
		g.Disabled = protocol.StreamEnded(shown, table)
	}
	g.Enabled = v.disabled && shown.Shows == protocol.StreamTakes
	if ls.Complete {
		if g.Gone, err = l.findGone(ctx, ls, v.missing); err != nil {
			return err
		}
	}
	if err := l.handoff.request(ctx, g); err != nil {
		return err
	}
	if ls.Complete {
		l.mu.Lock()
		l.summary.listed = max(l.summary.listed, ls.Started)
		l.mu.Unlock()
	}
	return nil
}

// findGone returns the missing parents that do not exist any more.
//
// Rule 3: a parent that is not listed counts as finished only after a complete listing that began
// after its child was seen. Also, the service itself must answer twice that the shard does not
// exist, and confirm a shard that it lists.
func (l *lister) findGone(ctx context.Context, ls source.Listing, missing []string) (gone []string, err error) {
	if len(ls.Shards) == 0 {
		return nil, nil // a stream has shards: what this listing lacks proves nothing
	}
	listed := ls.Shards[len(ls.Shards)-1].ID
	for _, sh := range ls.Shards {
		if !sh.Closed {
			listed = sh.ID
		}
	}
	for _, id := range missing {
		if slices.ContainsFunc(ls.Shards, func(s source.Shard) bool { return s.ID == id }) {
			continue
		}
		exists, err := l.o.Source.Exists(ctx, change.Feed{Stream: ls.Stream, Shard: id}, listed)
		if err != nil {
			return nil, err
		}
		if !exists {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// findChildren stores the children of a shard that has just ended. They may be listed seconds
// later: then a complete listing follows. So it does while more than a few shards have ended
// without children: one listing, begun behind their ends, serves them all.
func (l *lister) findChildren(ctx context.Context, feed change.Feed) error {
	defer l.seeking.Add(-1)
	if l.seeking.Add(1) > fewEnds {
		signal(l.listNow)
		return nil
	}
	children, err := l.o.Source.Children(ctx, feed.Stream, feed.Shard)
	if err != nil || len(children) == 0 {
		signal(l.listNow)
		if err != nil && ctx.Err() == nil {
			l.o.Logger.Warn("look for children: the next listing will", zap.String("shard", feed.Shard), zap.Error(err))
		}
		return nil
	}
	return l.handoff.request(ctx, &checkpoint.Graph{
		Stream: feed.Stream, Date: l.o.now(), Shards: ListedShards(children),
	})
}
