package checkpoint

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// copied returns a log with a copy of two parts that has begun.
func copied(t *testing.T) *writer {
	t.Helper()
	w := owned(t, ShardSeen{ID: "a"})
	w.must(t, &Copy{ID: "c1", Why: CopyBackfill, From: FromScan, Parts: 2, Began: w.s.Date + 2000, Items: 100})
	return w
}

func TestCopyGoesOnFromItsMarks(t *testing.T) {
	w := copied(t)
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{1: {After: "k", Items: 5, Bytes: 50}}, Date: w.s.Date + 1})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Items: 7, Done: true}}, Date: w.s.Date + 1})
	for what, s := range map[string]*State{"folded": w.l.fold(t), "restored": w.l.restored(t)} {
		c := s.CopyRunning()
		if c == nil || c.Marks[1].After != "k" || c.Total().Items != 12 || c.Done() {
			t.Fatalf("%s: %+v", what, c)
		}
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{1: {Items: 9, Done: true}}, Date: w.s.Date + 1})
	if w.s.CopyRunning() != nil || !w.s.Copy.Done() || w.s.Copy.Ended != w.s.Date {
		t.Errorf("%+v", w.s.Copy)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

func TestMarksOfACopyNeverGoBack(t *testing.T) {
	w := copied(t)
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Items: 7, Done: true}}})
	for what, m := range map[string]*CopyMarks{
		"items":        {ID: "c1", Parts: map[int]CopyMark{0: {Items: 6, Done: true}}},
		"done":         {ID: "c1", Parts: map[int]CopyMark{0: {Items: 8}}},
		"unknown part": {ID: "c1", Parts: map[int]CopyMark{2: {Items: 8}}},
		"unknown copy": {ID: "c2", Parts: map[int]CopyMark{0: {Items: 8}}},
	} {
		if err := w.s.CheckNext(m); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.s.CheckNext(&Copy{ID: "c2", Parts: 1}); !errors.As(err, new(*CorruptError)) {
		t.Errorf("second copy beside the first: %v", err)
	}
}

func TestCancelledCopyIsAGapUntilAResync(t *testing.T) {
	w := copied(t)
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {}, "archive": {}}}, &Control{Copy: &CopyOrder{"c1", CopyPause}})
	if !w.s.CopyRunning().Paused {
		t.Error("not paused")
	}
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyCancel}, At: w.s.Date + 5})
	if w.s.CopyRunning() != nil || w.s.DiffersSince() == 0 || w.s.OpenGaps() != 0 {
		t.Fatalf("copy %+v, gaps %+v", w.s.Copy, w.s.Gaps)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Items: 7, Done: true}, 1: {Items: 7, Done: true}}})
	if w.s.Copy.Done() {
		t.Error("a cancelled copy ended as complete")
	}
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1"}})
	if d := cmp.Diff([]string{w.s.Gaps[0].ID()}, w.s.Resync.Gaps); d != "" {
		t.Fatal(d)
	}
	w.must(t, &Healed{ID: "r1", Gaps: w.s.Resync.Gaps, Sinks: map[string]string{SinkBigtable: ""}, Date: w.s.Date + 9})
	if w.s.DiffersSince() != 0 || w.s.Resync != nil || w.s.LastResync == nil {
		t.Errorf("after the resync: %+v", w.s.Gaps)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// A gap is healed per sink: the archive lacks what was lost until it is healed or waived itself.
func TestGapIsHealedForTheSinksThatTheResyncNames(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	w.must(t, frame(page(w.s, "a", 1, false)))
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {}, "archive": {}}},
		&Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 10, Until: 20, Found: w.s.Date + 1, Reason: "trimmed"})
	g := &w.s.Gaps[0]
	id := g.ID()
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{id}}, At: w.s.Date + 2})
	if w.s.OpenGaps() != 0 || w.s.Resync.Above < w.s.HighestVersion() || g.Above == 0 {
		t.Fatalf("ordered: %+v, gap %+v", w.s.Resync, g)
	}
	w.must(t, &Healed{ID: "r0", Sinks: map[string]string{SinkBigtable: ""}})
	if w.s.Resync == nil {
		t.Fatal("the end of another resync ended this one")
	}
	w.must(t, &Healed{ID: "r1", Gaps: []string{id}, Sinks: map[string]string{SinkBigtable: "versions are missing"},
		Date: w.s.Date + 3})
	if d := cmp.Diff([]string{"archive"}, w.s.DifferingSinks(&w.s.Gaps[0])); d != "" {
		t.Error(d)
	}
	if w.s.Gaps[0].ID() != id {
		t.Error("healing changed the gap's id")
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// A gap that is accepted while a resync runs is healed by a new one: pages of the old one were read
// too early.
func TestLaterOrderBeginsTheResyncAgain(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"}, ShardSeen{ID: "b"})
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {}}},
		&Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 10, Found: w.s.Date + 1},
		&Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: 11, Found: w.s.Date + 2})
	first, second := w.s.Gaps[0].ID(), w.s.Gaps[1].ID()
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{first}}},
		&Control{Resync: &ResyncOrder{ID: "r2", Gaps: []string{second}}},
		&Healed{ID: "r1", Sinks: map[string]string{SinkBigtable: ""}})
	if w.s.Resync == nil || w.s.Resync.ID != "r2" || len(w.s.Resync.Gaps) != 2 || w.s.DiffersSince() == 0 {
		t.Errorf("%+v", w.s.Resync)
	}
}

// Rule 5: records that are older than the life keep versions below its floor.
func TestStartAfterALostLogBeginsBelowItsFloor(t *testing.T) {
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn-0", Date: 5000, Floor: 900_000, After: 4000, Recover: true,
		Shards: []ShardSeen{{ID: "a"}}})
	if sh := w.s.Shards["a"]; sh.Clock != 0 || w.s.TopClock() != 900_000 || w.s.Resync == nil || !w.s.Resync.Recover {
		t.Errorf("shard %+v, top %d, resync %+v", sh, w.s.TopClock(), w.s.Resync)
	}
	w.must(t, &Healed{ID: w.s.Resync.ID, Sinks: map[string]string{SinkBigtable: ""}})
	if w.s.Resync != nil {
		t.Error("still pending")
	}
}

func TestMappingIsSwitchedBehindTheDrain(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	from := w.s.Identity.Mapping
	w.must(t, &Control{Accept: &Accept{From: from, To: "new"}})
	if w.s.Accepting == nil || w.s.Identity.Mapping != from {
		t.Fatalf("%+v", w.s.Identity)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
	w.must(t, &Control{Accept: &Accept{From: "other", To: "newer", Done: true}})
	if w.s.Identity.Mapping != from {
		t.Error("the switch of another mapping counted")
	}
	w.must(t, &Control{Accept: &Accept{From: from, To: "new", Done: true}})
	if w.s.Accepting != nil || w.s.Identity.Mapping != "new" {
		t.Errorf("%+v", w.s.Identity)
	}
}

// TestCopyThatBeginsLaterMakesNoLag: after a recovery the copy for a mapping waits until the clock
// has passed the versions that were given out.
func TestCopyThatBeginsLaterMakesNoLag(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	date := w.s.Date
	w.must(t, &Copy{ID: "c1", Why: CopyMapping, From: FromScan, Parts: 2, Began: date + 600_000})
	if w.s.Date != date {
		t.Errorf("the state is of %d, %d ms ahead of what was seen", w.s.Date, w.s.Date-date)
	}
}

// AppliedBy asks one sink: a stalled archive does not keep a copy from going on.
func TestAppliedByAsksOneSink(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {}, "archive": {}}})
	w.must(t, frame(page(w.s, "a", 1, false)))
	w.must(t, &Beat{Date: w.s.Date + 10_000, Listed: w.s.Date, Watermark: w.s.Date + 5000})
	through := w.s.ReadWatermark()
	if got := w.s.AppliedBy(SinkBigtable); got >= through {
		t.Errorf("applied through %d before the mark moved", got)
	}
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {Seq: w.s.LastFrame}}})
	if got := w.s.AppliedBy(SinkBigtable); got != through || w.s.AppliedBy("archive") >= through {
		t.Errorf("bigtable %d, archive %d, read %d", got, w.s.AppliedBy("archive"), through)
	}
}

// TestCopiedItemsStayCopied, while another copy runs and after it was cancelled.
func TestCopiedItemsStayCopied(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	w.s.notCopied = 9
	begin := func(id string) {
		w.must(t, &Copy{ID: id, Why: CopyBackfill, From: FromScan, Parts: 1, Began: w.s.Date + 2000})
	}
	begin("c1")
	if n := w.s.NotCopied(); n != 9 {
		t.Errorf("%d items are not copied before the copy has ended", n)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Items: 9, Done: true}}})
	begin("c2")
	running := w.s.NotCopied()
	w.must(t, &Control{Copy: &CopyOrder{"c2", CopyCancel}})
	if n := w.s.NotCopied(); running != 0 || n != 0 {
		t.Errorf("%d items are not copied during another copy, %d after it was cancelled", running, n)
	}
}
