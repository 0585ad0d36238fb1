package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// TestIdlenessIsKnownOnlyBehindTheFramesBeforeIt: an empty page proves that everything before it
// was read, and that counts (Rule 10) when everything before it is stored. A full log stores
// nothing.
func TestIdlenessIsKnownOnlyBehindTheFramesBeforeIt(t *testing.T) {
	ctx := t.Context()
	const limit, date = 4 << 20, int64(1_790_000_000_000)
	q, _, w := claimedLog(t, limit)
	feeds := []change.Feed{{Stream: "arn", Shard: "ends"}, {Stream: "arn", Shard: "idle"}}
	start := &checkpoint.Start{Stream: "arn", Date: change.Millis(date), Shards: []checkpoint.ShardSeen{{ID: "ends"},
		{ID: "idle"}}}
	if _, err := w.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	for range 9 { // 90 % of the log
		long := &checkpoint.Halt{Sink: "test", Reason: strings.Repeat("x", limit/10)}
		if _, err := w.Append(ctx, &checkpoint.Control{Halt: long}, nil); err != nil {
			t.Fatal(err)
		}
	}
	in := &writer{o: &Options{MaxPayload: q.MaxPayload()}, log: w, watermarks: newWatermarks(), handoff: newHandoff(0),
		progress: &progress{}}
	in.watermarks.add(w.State().Shards["idle"])
	pages := []*source.Page{{Page: change.Page{Feed: feeds[0], Date: change.Millis(date + 60_000), Done: true}},
		{Page: change.Page{Feed: feeds[1], Date: change.Millis(date + 60_000)}}}
	for _, p := range pages {
		in.take(arrival{page: p})
	}
	if err := in.store(ctx); !errors.Is(err, queue.ErrFull) {
		t.Fatalf("a log of %d bytes took a frame at 90 %%: %v", limit, err)
	}
	if t0 := in.watermarks.lowest(); t0 != 0 {
		t.Errorf("the idle shard counts as read through %d, although the page before that proof is not stored", t0)
	}
}

// TestMarkBeyondTheWritersStateIsAnUnknownOutcome: a sink reads the log by itself, and sees a
// control entry of another process before the writer's next append is refused for it. That is no
// broken log.
func TestMarkBeyondTheWritersStateIsAnUnknownOutcome(t *testing.T) {
	ctx := t.Context()
	_, l, w := claimedLog(t, 1<<30)
	known := w.State().Seq
	foreign, err := l.AppendControl(ctx, &checkpoint.Control{Clear: true, By: "other"})
	if err != nil || foreign <= known {
		t.Fatalf("control at %d behind %d: %v", foreign, known, err)
	}
	err = (&writer{o: &Options{}, log: w, sinks: []Sink{ackedSink{foreign, known}}}).storeMarks(ctx)
	corrupt := (*checkpoint.CorruptError)(nil)
	if !errors.Is(err, queue.ErrOutcomeUnknown) || outcome.OfTable(ctx, err).Action != outcome.Again ||
		errors.As(err, &corrupt) {
		t.Errorf("error %v, want doubt", err)
	}
	if err := w.Recover(ctx); err != nil || w.State().Seq != foreign {
		t.Errorf("after the doubt the writer knows %d, want %d: %v", w.State().Seq, foreign, err)
	}
}

// TestProofIsLookedAtOnceAllIsRead: the page that was missing ends it, and no tick. While the sink
// is behind it is looked at soon.
func TestProofIsLookedAtOnceAllIsRead(t *testing.T) {
	ctx := t.Context()
	const begin = change.Millis(1_790_000_000_000)
	q, l, log := claimedLog(t, 1<<30)
	start := &checkpoint.Start{Stream: "arn", Date: begin, Shards: []checkpoint.ShardSeen{{ID: "a"}, {ID: "b"}}}
	if _, err := log.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	src := quietSource(t)
	o := &Options{
		Life: &life.Life{Logger: zaptest.NewLogger(t)}, Source: src, MaxPayload: q.MaxPayload(), Row: knownRow{},
		Observe: func(*checkpoint.State, queue.Pressure) {}, Beating: func(bool) {}, Periods: Periods{Mark: time.Hour},
	}
	h, v := newHandoff(time.Second), newProver(zaptest.NewLogger(t))
	w := newWriter(o, log, newLister(o, l, h, v), queue.Pressure{})
	w.publish(log.State(), log.State().TakeReadabilityChanges())
	w.lister.summary.listed = begin + 60_000
	for i, changes := range []uint64{0, 9} {
		w.sinks = []Sink{ackedSink{mark: 1}}
		log.State().LastFrame = changes
		through := begin + change.Millis(30_000*(i+1))
		p := v.add(through)
		for _, shard := range []string{"a", "b"} {
			if len(p.met) > 0 || w.soon != nil {
				t.Fatal("proved before all is read")
			}
			page := change.Page{Feed: change.Feed{Stream: "arn", Shard: shard}, Date: checkpoint.ReadFrom(through)}
			w.take(arrival{page: &source.Page{Page: page}})
			if err := w.store(ctx); err != nil {
				t.Fatal(err)
			}
			if err := w.lookOnceRead(ctx); err != nil {
				t.Fatal(err)
			}
		}
		met := false
		select {
		case <-p.met:
			met = true
		default:
		}
		if behind := changes > 0; met == behind || (w.soon != nil) != behind {
			t.Errorf("with a sink that is behind %t: met %t, looked at soon %t", behind, met, w.soon != nil)
		}
	}
}

// knownRow agrees with the log.
type knownRow struct{ Row }

func (knownRow) Agrees() bool { return true }

// ackedSink is a sink with a mark, behind the newest entry with changes that it has passed.
type ackedSink struct{ mark, changes uint64 }

func (s ackedSink) Name() string { return "bigtable" }

func (s ackedSink) Acked() (checkpoint.Mark, uint64) { return checkpoint.Mark{Seq: s.mark}, s.changes }

func (ackedSink) Drain(uint64) {}

func (ackedSink) Drained() bool { return false }

// TestBeatSpeaksOfShardsThatAFullLogKeptBack: Rule 10. The first frame of a batch ends a shard, and
// a full log does not take the second. The child is open in the state then, and nothing of it is
// read.
func TestBeatSpeaksOfShardsThatAFullLogKeptBack(t *testing.T) {
	ctx := t.Context()
	const limit, date = 4 << 20, change.Millis(1_790_000_000_000)
	q, l, log := claimedLog(t, limit)
	begin := []checkpoint.ShardSeen{{ID: "ends", Closed: true}, {ID: "idle"}, {ID: "child", Parent: "ends"}}
	start := &checkpoint.Start{Stream: "arn", Date: date, Shards: begin}
	if _, err := log.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	half := &checkpoint.Control{Halt: &checkpoint.Halt{Sink: "test", Reason: strings.Repeat("x", limit/2)}}
	if _, err := log.Append(ctx, half, nil); err != nil {
		t.Fatal(err)
	}
	o := &Options{
		Life: &life.Life{Logger: zaptest.NewLogger(t)}, Source: quietSource(t), MaxPayload: q.MaxPayload(), Row: knownRow{},
		Observe: func(*checkpoint.State, queue.Pressure) {}, Beating: func(bool) {},
	}
	w := newWriter(o, log, newLister(o, l, newHandoff(0), newProver(zaptest.NewLogger(t))), queue.Pressure{})
	w.publishChanges()
	large := make([]byte, limit*7/20) // more than 80 % with the half, less than 90 %
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	to := change.Position{After: "1"}
	ends := change.Page{
		Feed: change.Feed{Stream: "arn", Shard: "ends"}, To: to, Clock: 1, Date: date, Done: true,
		Records: []change.Record{{SequenceNumber: []byte(to.After), Raw: large}},
	}
	more := ends
	more.Feed.Shard, more.Done = "idle", false
	w.current = &batch{}
	for _, p := range []*change.Page{&ends, &more} {
		frames, err := frame.Pack([]*change.Page{p}, w.frameSize())
		if err != nil {
			t.Fatal(err)
		}
		w.current.frames = append(w.current.frames, frames...)
	}
	w.watermarks.raise(&change.Page{Feed: more.Feed, Date: date + 60_000})
	if err := w.flush(ctx); !errors.Is(err, queue.ErrFull) || len(w.current.frames) != 1 {
		t.Fatalf("%d frames are left: %v", len(w.current.frames), err)
	}
	before := log.State().Seq
	if err := w.beat(ctx); err != nil || log.State().Seq != before+1 {
		t.Fatalf("%d entries of a beat: %v", log.State().Seq-before, err)
	}
	child := log.State().Shards["child"]
	if !child.Phase.Reading() || child.Watermark >= checkpoint.ReadFrom(date) {
		t.Errorf("the child is open: %t, and read through %d ms", child.Phase.Reading(), child.Watermark-date)
	}
}

// TestFullLogTakesNothingFromTheReaders: Rules 2 and 9. What it did not take waits, and nothing
// behind it is taken: not once a frame was refused, and not where the write loop begins at a full
// log.
func TestFullLogTakesNothingFromTheReaders(t *testing.T) {
	const limit, pages = 4 << 20, 20
	for name, percent := range map[string]int{"fills up": 78, "is full": 81} {
		t.Run(name, func(t *testing.T) {
			log := logOf(t, limit, limit*percent/100)
			w := chainWriter(t, log)
			w.o.MaxPayload, w.o.Periods = 72<<10, Periods{Beat: time.Hour, Mark: 2 * roomForCommands, Trim: time.Hour}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer time.AfterFunc(time.Minute, func() { cancel(errors.New("the log is not full")) }).Stop()
			ticks := 0
			w.sinks = []Sink{observingSink{func() {
				if w.blocked() || w.pressure.Pause {
					ticks++
				}
				if ticks > 3 {
					cancel(errEnough)
				}
			}}}
			all, random := pagesOf(pages), rand.NewChaCha8([32]byte{})
			for _, p := range all {
				_, _ = random.Read(p.Records[0].Raw)
			}
			w.arrive(all...)
			if err := w.run(ctx); !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			stored, left := int(log.State().Changes), len(w.handoff.arrivals)
			if percent > 80 && left < pages || left < pages/4 || stored == 0 && percent < 80 {
				t.Errorf("of %d pages %d are stored, and %d wait", pages, stored, left)
			}
		})
	}
}

// TestFullLogTakesTheFrameOnceThereIsRoom: Rule 9. It waits in hand, and the mark that comes with the
// tick lets the log be trimmed.
func TestFullLogTakesTheFrameOnceThereIsRoom(t *testing.T) {
	ctx := t.Context()
	const limit = 4 << 20
	log := logOf(t, limit, limit*81/100)
	w := chainWriter(t, log)
	w.o.MaxPayload, w.sinks = 72<<10, []Sink{ackedSink{mark: 1}}
	if err := w.begin(ctx); err != nil {
		t.Fatal(err)
	}
	w.arrive(pagesOf(3)...)
	w.collect()
	if err := w.tolerateFull(w.store(ctx)); err != nil || !w.blocked() {
		t.Fatalf("a log at 81 %% took a frame: %v", err)
	}
	if err := w.tolerateFull(w.tick(ctx)); err != nil || !w.blocked() {
		t.Fatalf("it took the frame although nothing is applied: %v", err)
	}
	s := log.State()
	w.sinks = []Sink{markedSink{checkpoint.Mark{Seq: s.Seq, Hash: s.Hash}}}
	if err := w.tick(ctx); err != nil || w.blocked() || log.State().Changes != 3 {
		t.Errorf("%d of 3 changes are stored: %v", log.State().Changes, err)
	}
}

// markedSink has applied the log up to a mark.
type markedSink struct{ mark checkpoint.Mark }

func (markedSink) Name() string { return checkpoint.SinkBigtable }

func (s markedSink) Acked() (checkpoint.Mark, uint64) { return s.mark, s.mark.Seq }

func (markedSink) Drain(uint64) {}

func (markedSink) Drained() bool { return false }

// logOf returns a log of one shard with so many bytes of its limit in use.
func logOf(t *testing.T, limit int64, used int) *queue.Writer {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "p", Dir: t.TempDir(), MaxBytes: limit},
		zaptest.NewLogger(t), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	l, err := q.CreateLog(t.Context(), "Orders", "token")
	if err != nil {
		t.Fatal(err)
	}
	log, err := l.Claim(t.Context(), queue.ClaimOptions{Owner: "me"})
	if err != nil {
		t.Fatal(err)
	}
	start := &checkpoint.Start{Stream: "arn", Date: 1, Shards: []checkpoint.ShardSeen{{ID: "shard"}}}
	if _, err := log.Append(t.Context(), start, nil); err != nil {
		t.Fatal(err)
	}
	const large = 32 << 10
	halt := &checkpoint.Control{Halt: &checkpoint.Halt{Sink: "test", Reason: strings.Repeat("x", large)}}
	for p, err := log.Pressure(t.Context()); p.Bytes+large/2 < uint64(used); p, err = log.Pressure(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), halt, nil); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// observingSink calls a function whenever the write loop asks for its mark.
type observingSink struct{ observe func() }

func (observingSink) Name() string { return checkpoint.SinkBigtable }

func (s observingSink) Acked() (mark checkpoint.Mark, changes uint64) {
	s.observe()
	return mark, 0
}

func (observingSink) Drain(uint64) {}

func (observingSink) Drained() bool { return true }
