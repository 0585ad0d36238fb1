package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// ingest brings pages from the shards into the log. One goroutine, write, owns the log's writer and with it
// the state (Rule 2); readers and the lister hand it what they found and hear from it which shards may be
// read.
type ingest struct {
	t     *table
	w     *queue.Writer
	sinks []Sink

	arrivals chan arrival
	ended    chan struct{} // closed when nobody reads any more, because a drain began
	findings chan finding
	open     chan []shardTask // shards that became readable, or stopped being so
	idle     *watermarks
	unsent   []frame.Packed // frames that a full log did not take yet
	proofs   []*change.Page // empty pages that were read after them
	behind   *finding       // a gap that was found after them
	full     bool
	lister   *lister
}

// Sink is what the write loop needs to know about a sink.
type Sink interface {
	Name() string
	// Acked returns the sink's mark, and the newest entry with changes that this process moved it past; 0 for none.
	Acked() (mark checkpoint.Mark, lastChanges uint64)
	// Drain asks the sink to end once everything up to seq is durable, Drained reports whether it has.
	Drain(seq uint64)
	Drained() bool
}

// finding is an entry that the lister, a reader or a sink asks the write loop to append. It may be out of date by then.
type finding struct {
	body any // *checkpoint.Graph, *checkpoint.Gap or *checkpoint.Control
	done chan error
}

// arrival is what came of a shard, in the shard's own order: a page, or the gap that ended its reading.
type arrival struct {
	page *source.Page
	gap  finding
}

// release lets go of what will not be stored.
func (a *arrival) release() {
	if a.page != nil {
		a.page.Release()
	}
}

// shardTask is a shard and where to go on with it.
type shardTask struct {
	feed   change.Feed
	pos    change.Position
	clock  int64
	since  int64 // everything before it was read: what is trimmed later is a gap, even from the trim horizon
	closed bool
	over   bool // it may not be read any more
}

func newIngest(t *table, w *queue.Writer) *ingest {
	in := &ingest{
		t: t, w: w,
		arrivals: make(chan arrival, 64),
		ended:    make(chan struct{}),
		findings: make(chan finding),
		open:     make(chan []shardTask, 1),
		idle:     newWatermarks(),
	}
	in.lister = newLister(t, in)
	return in
}

// find asks the writer to append an entry and waits until it is durable. While the log is full it asks again.
func (in *ingest) find(ctx context.Context, body any) error {
	return in.stored(ctx, body, func(f finding) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case in.findings <- f:
			return nil
		}
	})
}

// stored hands an entry over and waits until it is durable.
func (in *ingest) stored(ctx context.Context, body any, hand func(finding) error) error {
	for {
		f := finding{body: body, done: make(chan error, 1)}
		if err := hand(f); err != nil {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err = <-f.done:
		}
		if !errors.Is(err, queue.ErrFull) {
			return err
		}
		if !sleep(ctx, in.t.p.o.Periods.Mark) {
			return context.Cause(ctx)
		}
	}
}

// write is the writer's loop. It ends with nil after a drain, with the log released.
func (in *ingest) write(ctx context.Context) error {
	p := in.t.p.o.Periods
	beat, mark, trim := time.NewTicker(p.Beat), time.NewTicker(p.Mark), time.NewTicker(p.Trim)
	defer beat.Stop()
	defer mark.Stop()
	defer trim.Stop()
	if err := in.begin(ctx); err != nil {
		return err
	}
	for {
		// Rule 9: above the limit nothing is taken from the readers; their budget fills up and they park.
		accept := in.arrivals
		if in.t.pressure.Pause || len(in.unsent) > 0 || in.behind != nil {
			accept = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-in.ended:
			return in.finish(ctx)
		case first := <-accept:
			err = in.take(ctx, first)
		case f := <-in.findings:
			err = in.storeFinding(ctx, f)
		case <-in.lister.asked():
			err = in.beat(ctx)
		case <-beat.C:
			err = in.beat(ctx)
		case <-mark.C:
			err = in.tick(ctx)
		case <-trim.C:
			err = in.trim(ctx)
		}
		if err = in.tolerateFull(err); err != nil {
			return err
		}
	}
}

// tick writes the marks and, while the log is full, makes room and tries again.
func (in *ingest) tick(ctx context.Context) error {
	if err := in.tolerateFull(in.marks(ctx)); err != nil {
		return err
	}
	if len(in.unsent) == 0 && in.behind == nil {
		return nil
	}
	if err := in.trim(ctx); err != nil {
		return err
	}
	return in.flush(ctx)
}

// tolerateFull goes on without what a full log did not take: frames wait, beats and marks come again.
func (in *ingest) tolerateFull(err error) error {
	if !errors.Is(err, queue.ErrFull) {
		in.full = in.full && len(in.unsent) > 0
		return err
	}
	if !in.full {
		in.full = true
		in.t.log.Warn("the log takes no more changes, they wait", zap.Error(err))
	}
	return nil
}

// begin gives every sink a mark and hands the readers what the stored state says.
func (in *ingest) begin(ctx context.Context) error {
	s := in.w.State()
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	configured := map[string]bool{}
	for _, a := range in.sinks {
		configured[a.Name()] = true
		if _, ok := s.Marks[a.Name()]; !ok {
			m.Sinks[a.Name()], _ = a.Acked()
		}
	}
	for sink := range s.Marks {
		if !configured[sink] {
			m.Retired = append(m.Retired, sink)
			in.t.log.Warn("retire the mark of a sink that is not configured any more", zap.String("sink", sink))
		}
	}
	if len(m.Sinks)+len(m.Retired) > 0 {
		if _, err := in.w.Append(ctx, m, nil); err != nil {
			return fmt.Errorf("append first marks: %w", err)
		}
	}
	if err := in.clearHalts(ctx); err != nil { // the owner before may have been killed after the marks
		return err
	}
	if err := in.trim(ctx); err != nil {
		return err
	}
	s.TakeReadabilityChanges()
	in.tell(s, slices.Collect(maps.Values(s.Shards)))
	return nil
}

// storeFinding appends a finding and replies to the goroutine that waits for it.
func (in *ingest) storeFinding(ctx context.Context, f finding) error {
	err := in.append(ctx, f.body)
	f.done <- err
	return err
}

// append stores what the lister or a sink found, unless it is stale by now.
func (in *ingest) append(ctx context.Context, body any) error {
	s := in.w.State()
	bodies := []any{body}
	switch b := body.(type) {
	case *checkpoint.Graph:
		if bodies = anys(s.DiffListing(b, in.t.listingPart())); len(bodies) == 0 {
			return nil
		}
	case *checkpoint.Start:
		bodies = anys(in.t.startParts(s, b))
	case *checkpoint.Gap:
		sh := s.Shards[b.Feed.Shard]
		if sh != nil && (sh.Phase.Finished() || sh.Loss.Pending) {
			return nil
		}
		if b.Feed.Shard == "" && slices.ContainsFunc(s.Gaps, func(g checkpoint.Gap) bool { return g.Feed == b.Feed }) {
			return nil // a stream ends once
		}
		// What was trimmed before the pipeline ever started was never promised.
		if sh != nil && b.Ends && s.LostBeforeStart(sh, b.Found) {
			b.Accepted, b.Reason = true, checkpoint.ReasonBeforeStart
		}
	}
	for _, b := range bodies {
		if _, err := in.w.Append(ctx, b, nil); err != nil {
			return fmt.Errorf("append %s entry: %w", checkpoint.KindOf(b), needsUpgrade(s, err))
		}
	}
	in.t.observe(s)
	in.spread()
	return nil
}

func anys[T any](all []T) (list []any) {
	for _, x := range all {
		list = append(list, x)
	}
	return list
}

// needsUpgrade adds to the error of an entry that is too large what would let it be stored in parts.
func needsUpgrade(s *checkpoint.State, err error) error {
	if errors.Is(err, queue.ErrTooLarge) && s.Format < checkpoint.Format {
		return fmt.Errorf("%w: %w", &checkpoint.FormatError{Need: checkpoint.Format, Have: s.Format}, err)
	}
	return err
}

// spread tells the readers and the lister what the state has become.
func (in *ingest) spread() {
	s := in.w.State()
	in.tell(s, s.TakeReadabilityChanges())
}

// tell gives the readers the shards that became readable among these, and takes from them those that are not any more.
func (in *ingest) tell(s *checkpoint.State, turned []*checkpoint.Shard) {
	tasks := make([]shardTask, 0, len(turned))
	for _, sh := range turned {
		in.idle.watch(sh)
		tasks = append(tasks, shardTask{
			feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, pos: sh.Pos, clock: sh.Clock, closed: sh.Phase.Closed(), since: s.CompleteUntil(sh),
			over: !s.Readable(sh),
		})
	}
	in.lister.learn(s)
	if len(tasks) == 0 {
		return
	}
	select { // what they have not taken yet goes first
	case older := <-in.open:
		tasks = append(older, tasks...)
	default:
	}
	in.open <- tasks
}

// beat says that we live and how far the open shards have been read.
func (in *ingest) beat(ctx context.Context) error {
	s := in.w.State()
	b := &checkpoint.Beat{Date: in.t.now(), Listed: in.lister.listed(), Watermark: in.idle.low()}
	_, err := in.w.Append(ctx, b, nil)
	in.lister.learn(s) // the marks may have passed what a new stream waits for
	// A full log keeps its last tenth for entries that make room. Without beats the work goes on.
	if err != nil && !errors.Is(err, queue.ErrFull) {
		in.t.observe(s)
		return fmt.Errorf("append beat: %w", err)
	}
	return in.clearOwnHalt(ctx)
}

// marks appends how far the sinks are, if that passed any change since the marks that are stored (Rule 1). A mark
// that only passed beats and marks is worth no entry: marks would feed themselves for ever.
func (in *ingest) marks(ctx context.Context) error {
	s := in.w.State()
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	for _, a := range in.sinks {
		if at, changes := a.Acked(); changes > s.Marks[a.Name()].Seq {
			m.Sinks[a.Name()] = at
		}
	}
	if len(m.Sinks) == 0 {
		return nil
	}
	for sink, at := range m.Sinks {
		// Rule 4: a sink reads the log itself. What it has read and the writer has not is somebody else's, a control
		// entry for instance, and the next append would be refused.
		if at.Seq > s.Seq {
			return fmt.Errorf("append marks: %w: sink %s has read entry %d, the writer knows %d", queue.ErrOutcomeUnknown, sink, at.Seq, s.Seq)
		}
	}
	if _, err := in.w.Append(ctx, m, nil); err != nil {
		return fmt.Errorf("append marks: %w", err)
	}
	if err := in.clearHalts(ctx); err != nil {
		return err
	}
	in.t.observe(s)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (in *ingest) trim(ctx context.Context) error {
	if _, err := in.w.Trim(ctx, in.w.State().LowMark()+1); err != nil {
		return fmt.Errorf("trim log: %w", err)
	}
	p, err := in.w.Pressure(ctx)
	if err != nil {
		return fmt.Errorf("ask how full the log is: %w", err)
	}
	if p.Pause != in.t.pressure.Pause {
		if p.Pause {
			in.t.log.Warn("reading pauses", zap.String("reason", p.Reason), zap.Float64("used", p.Fraction))
		} else {
			in.t.log.Info("reading goes on", zap.Float64("used", p.Fraction))
		}
	}
	in.t.pressure = p
	in.t.observe(in.w.State())
	return nil
}
