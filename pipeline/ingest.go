package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// ingest brings pages from the shards into the log. One goroutine, write, owns the log's writer and with it
// the state (Rule 2); readers and the lister hand it what they found and hear from it which shards may be
// read.
type ingest struct {
	t     *table
	w     *queue.Writer
	sinks []*applier

	pages    chan *source.Page
	ended    chan struct{} // closed when nobody reads any more
	findings chan finding
	open     chan []shardTask // shards that became readable
	idle     *watermarks
	unsent   []queue.Packed // frames that a full log did not take yet
	proofs   []*change.Page // empty pages that were read after them
	full     bool
	lister   *lister
}

// finding is an entry that somebody else wants appended. It may have become pointless until it is its turn.
type finding struct {
	body any // *checkpoint.Graph, *checkpoint.Gap or *checkpoint.Control
	done chan error
}

// shardTask is a shard and where to go on with it.
type shardTask struct {
	feed   change.Feed
	pos    change.Position
	clock  int64
	since  int64 // everything before it was read: what is trimmed later is a gap, even from the trim horizon
	closed bool
}

func newIngest(t *table, w *queue.Writer) *ingest {
	in := &ingest{
		t: t, w: w,
		pages:    make(chan *source.Page, 64),
		ended:    make(chan struct{}),
		findings: make(chan finding),
		open:     make(chan []shardTask, 1),
		idle:     newWatermarks(),
	}
	in.lister = newLister(t, in)
	return in
}

// find asks the writer to append an entry and waits until it is durable.
func (in *ingest) find(ctx context.Context, body any) error {
	f := finding{body: body, done: make(chan error, 1)}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case in.findings <- f:
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-f.done:
		return err
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
		accept := in.pages
		if in.t.pressure.Pause || len(in.unsent) > 0 {
			accept = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-in.ended:
			return in.finish(ctx)
		case first := <-accept:
			err = in.frames(ctx, in.collect(first))
		case f := <-in.findings:
			err = in.append(ctx, f.body)
			f.done <- err
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
	if len(in.unsent) == 0 {
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
		in.t.log.Warn("the log is full: reading waits for the sinks", zap.Error(err))
	}
	return nil
}

// begin gives every sink a mark and hands the readers what the stored state says.
func (in *ingest) begin(ctx context.Context) error {
	s := in.w.State()
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	configured := map[string]bool{}
	for _, a := range in.sinks {
		configured[a.sink] = true
		if _, ok := s.Marks[a.sink]; !ok {
			m.Sinks[a.sink] = a.prefix.Load().at()
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
	if err := in.trim(ctx); err != nil {
		return err
	}
	in.spread()
	return nil
}

// collect takes what waits besides the first page, up to one frame: group commit by itself.
func (in *ingest) collect(first *source.Page) []*source.Page {
	pages, size := []*source.Page{first}, first.Bytes
	for size < maxFrame {
		select {
		case p := <-in.pages:
			pages, size = append(pages, p), size+p.Bytes
		default:
			return pages
		}
	}
	return pages
}

// maxFrame is the volume of pages that go into one append.
const maxFrame = 4 << 20

// frames packs pages and appends the frames. The pages are released whatever happens: what is not stored stays
// in packed form, or, after doubt, is read again.
func (in *ingest) frames(ctx context.Context, pages []*source.Page) error {
	full := make([]*change.Page, 0, len(pages))
	var empty []*change.Page
	for _, p := range pages {
		if len(p.Records) > 0 || p.Done {
			full = append(full, &p.Page)
		} else {
			empty = append(empty, &p.Page)
		}
	}
	packed, err := queue.PackFrame(full, in.payload())
	for _, p := range pages {
		p.Release()
	}
	if err != nil {
		return in.tooLarge(err)
	}
	in.unsent, in.proofs = packed, empty
	return in.flush(ctx)
}

// payload is how large a frame may be: a part of the log's limit only, so that the reserve above which reading
// pauses always holds one more frame. In a small log a frame that never fits would wait for ever.
func (in *ingest) payload() int {
	most := in.t.p.queue.MaxPayload()
	if limit := in.t.pressure.Limit; limit > 0 {
		most = min(most, int(limit/framesPerLog))
	}
	return most
}

// framesPerLog is how many frames a log holds at least.
const framesPerLog = 16

// flush appends what is packed. When the log is full the rest waits, and nothing more is taken from the readers.
func (in *ingest) flush(ctx context.Context) error {
	ended := false
	for len(in.unsent) > 0 {
		f := in.unsent[0]
		if _, err := in.w.Append(ctx, f.Body, f.Data); err != nil {
			return fmt.Errorf("append frame: %w", err)
		}
		in.unsent = in.unsent[1:]
		for i := range f.Body.Pages {
			ended = ended || f.Body.Pages[i].Done
		}
	}
	// What an empty page proves counts only now, that everything read before it is in the log.
	for _, p := range in.proofs {
		in.idle.note(p)
	}
	in.proofs = nil
	if ended {
		in.spread()
	}
	return nil
}

func (in *ingest) tooLarge(err error) error {
	big := (*queue.TooLargeError)(nil)
	if errors.As(err, &big) {
		return &haltError{checkpoint.Halt{Sink: "log", Code: "record_too_large", Reason: big.Error(), At: in.t.now()}}
	}
	return fmt.Errorf("pack pages: %w", err)
}

// append stores what the lister or a sink found, unless it is stale by now.
func (in *ingest) append(ctx context.Context, body any) error {
	s := in.w.State()
	switch b := body.(type) {
	case *checkpoint.Graph:
		if !s.Changed(b) {
			return nil
		}
	case *checkpoint.Gap:
		sh := s.Shards[b.Feed.Shard]
		if sh != nil && (sh.Phase == checkpoint.Finished || sh.Gapped) {
			return nil
		}
		// What was trimmed before the pipeline ever started was never promised.
		if sh != nil && b.Ends && sh.Pos == (change.Position{}) && sh.Seen == s.Live().Date {
			b.Accepted, b.Reason = true, "nothing was left of the shard when the pipeline started"
		}
	}
	if _, err := in.w.Append(ctx, body, nil); err != nil {
		return fmt.Errorf("append %c entry: %w", checkpoint.KindOf(body), err)
	}
	in.t.observe(s)
	in.spread()
	return nil
}

// spread tells the readers and the lister what the state has become.
func (in *ingest) spread() {
	s := in.w.State()
	var tasks []shardTask
	for _, sh := range s.Shards {
		if !s.Readable(sh) {
			continue
		}
		t := shardTask{feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, pos: sh.Pos, clock: sh.Clock, closed: sh.Closed}
		if !sh.Horizon {
			t.since = sh.Through
		}
		tasks = append(tasks, t)
	}
	in.lister.learn(s)
	select { // only the newest view counts
	case <-in.open:
	default:
	}
	in.open <- tasks
}

// beat says that we live and how far the open shards have been read.
func (in *ingest) beat(ctx context.Context) error {
	s := in.w.State()
	b := &checkpoint.Beat{Date: in.t.now(), Listed: in.lister.listed(), Through: in.idle.low(s)}
	_, err := in.w.Append(ctx, b, nil)
	in.t.observe(s)
	if err != nil && !errors.Is(err, queue.ErrFull) {
		return fmt.Errorf("append beat: %w", err)
	}
	return nil
}

// marks appends how far the sinks are, if that passed any change (Rule 1).
func (in *ingest) marks(ctx context.Context) error {
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	for _, a := range in.sinks {
		if at, moved := a.prefix.Load().take(); moved {
			m.Sinks[a.sink] = at
		}
	}
	if len(m.Sinks) == 0 {
		return nil
	}
	if _, err := in.w.Append(ctx, m, nil); err != nil {
		return fmt.Errorf("append marks: %w", err)
	}
	s := in.w.State()
	if h := s.Halted; h != nil && s.Marks[h.Sink].Seq >= h.Seq {
		in.t.log.Info("the halt is over", zap.String("sink", h.Sink))
		if _, err := in.w.Append(ctx, &checkpoint.Control{Clear: true, By: "owner", At: in.t.now()}, nil); err != nil {
			return fmt.Errorf("append control: %w", err)
		}
	}
	in.t.observe(s)
	return nil
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
		in.t.log.Warn("the log is nearly full", zap.Bool("reading_pauses", p.Pause), zap.Float64("used", p.Fraction))
	}
	in.t.pressure = p
	in.t.observe(in.w.State())
	return in.t.letters.refresh(ctx)
}

// finish drains: what is in the log is applied, for most of the time that there is, then the marks and a
// snapshot are written and the log is let go. Nobody reads any more; what was read and not stored is read
// again after the next start.
func (in *ingest) finish(ctx context.Context) error {
	for len(in.pages) > 0 {
		(<-in.pages).Release()
	}
	for _, a := range in.sinks {
		a.drain(in.w.State().LastFrame)
	}
	enough := time.NewTimer(in.t.p.o.Periods.Shutdown * 4 / 5)
	defer enough.Stop()
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	for late := false; !late && !in.drained(); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-enough.C:
			in.t.log.Warn("the log is not drained in time; the rest is applied after the next start")
			late = true
		case <-tick.C:
		case f := <-in.findings:
			f.done <- in.append(ctx, f.body)
		}
	}
	if err := in.marks(ctx); err != nil {
		return err
	}
	if err := in.w.Release(ctx); err != nil {
		return fmt.Errorf("release log: %w", err)
	}
	in.t.observe(in.w.State())
	in.t.log.Info("released the log", zap.Bool("drained", in.drained()))
	return nil
}

// drainTick is how often the drain looks whether it is done.
const drainTick = 20 * time.Millisecond

func (in *ingest) drained() bool {
	for _, a := range in.sinks {
		if !a.isDrained() {
			return false
		}
	}
	return true
}
