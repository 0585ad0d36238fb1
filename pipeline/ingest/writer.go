package ingest

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
)

// writer is the write loop. Its goroutine alone appends to the log and owns the state that the log
// adds up to (Rule 2), and every field below: the readers, the lister and the sinks reach it
// through the handoff.
type writer struct {
	o       *Options
	log     *queue.Writer
	sinks   []Sink
	handoff *handoff
	lister  *lister
	prover  *prover

	watermarks *watermarks
	pressure   queue.Pressure // at the last look
	full       bool           // the log did not take the last change
	progress   *progress

	looked change.Millis    // up to here the proofs were looked at as soon as everything was read
	soon   <-chan time.Time // receives when they are looked at again, because a sink is behind

	current *batch  // is being stored; what a full log did not take yet stays here
	ahead   *batch  // was packed while the one before it waited for its acknowledgement
	failed  error   // of that packing
	taken   arrived // was taken from the readers after them, and is not packed
}

func newWriter(o *Options, log *queue.Writer, l *lister, pressure queue.Pressure) *writer {
	return &writer{
		o: o, log: log, handoff: l.handoff, lister: l, prover: l.prover, watermarks: newWatermarks(), pressure: pressure,
		progress: &progress{},
	}
}

// run stores what is handed over until a drain begins; nil then.
func (w *writer) run(ctx context.Context) error {
	p := w.o.Periods
	beat, mark, trim := time.NewTicker(p.Beat), time.NewTicker(p.Mark), time.NewTicker(p.Trim)
	defer beat.Stop()
	defer mark.Stop()
	defer trim.Stop()
	defer w.handoff.leave()
	defer w.dropInHand()
	if err := w.begin(ctx); err != nil {
		return err
	}
	var rest <-chan time.Time // no frame is appended before it; nil: none is held back
	for {
		arrivals, ready := w.intake(rest)
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.handoff.drained:
			return nil
		case first := <-arrivals:
			w.take(first)
			if err = w.store(ctx); err == nil {
				err = w.lookOnceRead(ctx)
			}
		case <-ready: // beats, marks and requests have their turn between two frames
			if err = w.store(ctx); err == nil {
				err = w.lookOnceRead(ctx)
			}
		case r := <-w.handoff.requests:
			if err = w.storeRequest(ctx, r); err == nil {
				err = w.lookOnceRead(ctx)
			}
		case <-w.soon:
			err = w.lookAtProofs(ctx)
		case <-w.lister.beatRequested():
			err = w.beat(ctx)
		case <-beat.C:
			err = w.beat(ctx)
		case <-mark.C:
			err = w.tick(ctx)
			rest = w.rest()
		case <-rest:
			rest = nil
		case <-trim.C:
			err = w.trim(ctx)
		}
		if err = w.tolerateFull(err); err != nil {
			return err
		}
	}
}

// intake returns where the next frame comes from: from the readers, or from what is in hand already,
// where ready can be received from. Both are nil while nothing is appended before rest.
//
// Rule 9: above the limit nothing is taken from the readers; their budget fills up and they pause.
func (w *writer) intake(rest <-chan time.Time) (arrivals <-chan arrival, ready <-chan struct{}) {
	pauses := w.pressure.Pause || w.blocked()
	switch w.progress.pauses.Store(pauses); {
	case pauses || rest != nil:
		return nil, nil
	case w.inHand():
		return nil, always
	}
	return w.handoff.arrivals, nil
}

// rest returns when the next frame may be appended behind a tick; nil: at once.
func (w *writer) rest() <-chan time.Time {
	if w.ahead == nil {
		return nil
	}
	return time.After(roomForCommands)
}

// roomForCommands is how long no frame is appended, once for each marks period, while a frame that was
// packed ahead waits: frames then follow each other without a break. A command must read the newest
// entry and append its own before another one comes. Ten times less would keep commands from a busy
// log, ten times more would cost a quarter of its throughput.
const roomForCommands = 25 * time.Millisecond

// always is a channel that can always be received from.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// blocked reports whether a full log did not take everything yet.
func (w *writer) blocked() bool { return w.current != nil }

// begin gives every sink a mark and passes the stored state to the readers.
func (w *writer) begin(ctx context.Context) error {
	s := w.log.State()
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	configured := map[string]bool{}
	for _, sink := range w.sinks {
		name := sink.Name()
		configured[name] = true
		if _, ok := s.Marks[name]; !ok {
			m.Sinks[name], _ = sink.Acked()
		}
	}
	for sink := range s.Marks {
		if !configured[sink] {
			m.Retired = append(m.Retired, sink)
			w.o.Logger.Warn("retire the mark of a sink that is not configured any more", zap.String("sink", sink))
		}
	}
	if len(m.Sinks)+len(m.Retired) > 0 {
		if _, err := w.log.Append(ctx, m, nil); err != nil {
			return fmt.Errorf("append first marks: %w", err)
		}
	}
	if err := w.clearPassedHalts(ctx); err != nil { // the previous owner may have been killed after the marks
		return err
	}
	if err := w.trim(ctx); err != nil {
		return err
	}
	s.TakeReadabilityChanges()
	w.publish(s, slices.Collect(maps.Values(s.Shards)))
	return nil
}

// tick stores the marks, looks at the proofs and, while the log is full, makes room and tries
// again.
func (w *writer) tick(ctx context.Context) error {
	if err := w.tolerateFull(w.storeMarks(ctx)); err != nil {
		return err
	}
	if err := w.lookAtProofs(ctx); err != nil {
		return err
	}
	if !w.blocked() {
		return nil
	}
	if err := w.trim(ctx); err != nil {
		return err
	}
	return w.flush(ctx)
}

// tolerateFull goes on without what a full log did not take: frames wait, beats and marks are sent
// again.
func (w *writer) tolerateFull(err error) error {
	if !errors.Is(err, queue.ErrFull) {
		w.full = w.full && w.blocked()
		return err
	}
	if !w.full {
		w.full = true
		w.o.Logger.Warn("the log takes no more changes, they wait", zap.Error(err))
	}
	return nil
}

// beat appends a beat: the owner is alive, and how far the open shards have been read.
//
// Rule 10: it speaks for every shard that is open in the state. One that is not published yet,
// because the log did not take all entries of a change, would count as read as far as the others.
func (w *writer) beat(ctx context.Context) error {
	w.publishChanges()
	s := w.log.State()
	b := &checkpoint.Beat{
		Date: w.o.now(), Listed: w.lister.lastListing(), Watermark: w.watermarks.lowest(), Invented: s.InventedMember(),
	}
	w.prove(b)
	_, err := w.log.Append(ctx, b, nil)
	w.lister.update(s) // the marks may have passed what a new stream waits for
	// A full log keeps its last tenth for entries that make room. Without beats the work goes on.
	if err != nil && !errors.Is(err, queue.ErrFull) {
		w.observe()
		return fmt.Errorf("append beat: %w", err)
	}
	return w.clearOwnHalt(ctx)
}

// lateHeartbeats is how many heartbeats of a shard may be missing before it counts as one without.
const lateHeartbeats = 3

// prove adds to a beat what heartbeats prove, and gives their planner the shards that need one.
func (w *writer) prove(b *checkpoint.Beat) {
	if w.o.Heartbeats == nil {
		return
	}
	late := lateHeartbeats*w.o.HeartbeatEvery + heartbeatWay
	proven, open, assumed := w.watermarks.proof(b.Date - change.Millis(late.Milliseconds()))
	b.Proven, b.Assumed = proven, assumed
	w.o.Heartbeats.Open(open)
}

// heartbeatWay is how long a heartbeat may take from its write to the log: idle shards are read
// once a second.
const heartbeatWay = 5 * time.Second

// archiveHead returns the archive's head for the log, with marks that are stored anyway or by
// itself. It is called when the marks were taken, so that the log holds the entries of the
// archive's stream that let them move.
func (w *writer) archiveHead(beside bool) *checkpoint.ArchiveHead {
	s := w.log.State()
	if w.o.ArchiveHead == nil {
		return nil
	}
	head := w.o.ArchiveHead()
	if head.End == 0 || !beside && !head.Moved(s.Expired.Head) || s.Expired.Head != nil && *s.Expired.Head == head {
		return nil
	}
	return &head
}

// storeMarks appends the sinks' marks if they passed any change since the stored marks (Rule 1). A
// mark that only passed beats and marks is not worth an entry: marks would cause marks for ever.
func (w *writer) storeMarks(ctx context.Context) error {
	s := w.log.State()
	m := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{}}
	for _, sink := range w.sinks {
		if mark, lastChanges := sink.Acked(); lastChanges > s.Marks[sink.Name()].Seq {
			m.Sinks[sink.Name()] = mark
		}
	}
	if head := w.archiveHead(len(m.Sinks) > 0); head != nil {
		m.Archive = head
	} else if len(m.Sinks) == 0 {
		return nil
	}
	for sink, mark := range m.Sinks {
		// Rule 4: a sink reads the log itself. An entry that it has read and the writer has not was
		// appended by another process, a control entry for instance, and the next append would be
		// refused.
		if mark.Seq > s.Seq {
			return fmt.Errorf("append marks: %w: sink %s has read entry %d, the writer knows %d",
				queue.ErrOutcomeUnknown, sink, mark.Seq, s.Seq)
		}
	}
	if _, err := w.log.Append(ctx, m, nil); err != nil {
		return fmt.Errorf("append marks: %w", err)
	}
	if err := w.clearPassedHalts(ctx); err != nil {
		return err
	}
	w.observe()
	return nil
}

// trim drops the entries below all marks from the log, and checks how full it is now.
func (w *writer) trim(ctx context.Context) error {
	if _, err := w.log.Trim(ctx, w.log.State().LowMark()+1); err != nil {
		return fmt.Errorf("trim log: %w", err)
	}
	p, err := w.log.Pressure(ctx)
	if err != nil {
		return fmt.Errorf("ask how full the log is: %w", err)
	}
	if p.Pause != w.pressure.Pause {
		if p.Pause {
			w.o.Logger.Warn("reading pauses", zap.String("reason", p.Reason), zap.Float64("used", p.Fraction))
		} else {
			w.o.Logger.Info("reading goes on", zap.Float64("used", p.Fraction))
		}
	}
	w.pressure = p
	w.observe()
	return nil
}

// lookOnceRead looks at the proofs when everything is read up to a time that one of them needs.
func (w *writer) lookOnceRead(ctx context.Context) error {
	through := w.prover.firstUnread(w.looked, w.lister.lastListing())
	if through == 0 || !w.watermarks.reached(through) {
		return nil
	}
	w.looked = through
	return w.lookAtProofs(ctx)
}

// looksPerMark is how often the proofs are looked at between two marks, while a sink is behind.
const looksPerMark = 20

// lookAtProofs ends the calls of Prove that are met, after a beat if that is all that they lack.
func (w *writer) lookAtProofs(ctx context.Context) error {
	w.soon = nil
	if w.prover.idle() {
		return nil
	}
	s := w.log.State()
	if w.prover.wantsBeat(s, w.lister.lastListing(), w.watermarks.lowest()) {
		if err := w.beat(ctx); err != nil {
			return err
		}
	}
	paused := ""
	if w.pressure.Pause {
		paused = w.pressure.Reason
	}
	for _, sink := range w.sinks {
		if sink.Name() == checkpoint.SinkBigtable {
			mark, _ := sink.Acked()
			w.prover.look(s, mark.Seq, paused)
		}
	}
	if w.prover.unapplied() {
		w.soon = time.After(w.o.Periods.Mark / looksPerMark)
	}
	return nil
}
