package checkpoint

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

func gapIn(shard string, since change.Millis) *Gap {
	return &Gap{Feed: change.Feed{Stream: "arn", Shard: shard}, Since: since, Found: since + 1}
}

// An export that was asked for completes the copy under its id. What an operator paused meanwhile
// stays paused.
func TestCopyWhoseExportIsCompleteStaysPaused(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, &Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Began: 1},
		&CopyMarks{ID: "c1", Paused: "the export failed"}, &Control{Copy: &CopyOrder{"c1", CopyPause}})
	w.must(t, &Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Export: "file:///e", Parts: 2, Version: 7})
	if c := w.s.CopyRunning(); c == nil || !c.Paused || c.PausedWhy != "" || c.Parts != 2 {
		t.Errorf("%+v", c)
	}
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyResume}})
	if w.s.CopyRunning().Paused {
		t.Error("still paused")
	}
	for _, c := range []*Copy{{ID: "c1", Parts: 3}, {ID: "c2", Parts: 3}, {ID: "", Parts: 1}, {ID: "c1", Parts: -1}} {
		if err := w.s.CheckNext(c); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// A command that looked at the log while the first copy ran, and stored its order when that had
// ended, stops no other.
func TestOrderForACopyThatHasEndedDoesNotConcernTheNext(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, marksOf(SinkBigtable), &Copy{ID: "c1", Why: CopyBackfill, From: FromScan, Parts: 1, Began: 1},
		&CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Done: true}}, Date: 9},
		&Copy{ID: "c2", Why: CopyMapping, From: FromScan, Parts: 1, Began: 10})
	w.must(t, &Control{Copy: &CopyOrder{"c1", CopyPause}}, &Control{Copy: &CopyOrder{"", CopyPause}},
		&Control{Copy: &CopyOrder{"c1", CopyCancel}})
	if c := w.s.CopyRunning(); c == nil || c.Paused || len(w.s.Gaps) > 0 {
		t.Fatalf("%+v, gaps %+v", w.s.Copy, w.s.Gaps)
	}
	w.must(t, &Control{Copy: &CopyOrder{"c2", CopyPause}})
	if !w.s.CopyRunning().Paused {
		t.Error("not paused")
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// Cancelling an export that was asked for leaves a gap too, and the export that is complete later
// begins nothing.
func TestExportOfACancelledCopyBeginsNothing(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, marksOf(SinkBigtable), &Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Began: 1},
		&Control{Copy: &CopyOrder{"c1", CopyCancel}})
	if err := w.s.CheckNext(&Copy{ID: "c1", Parts: 2}); !errors.As(err, new(*CorruptError)) {
		t.Errorf("the export of a cancelled copy: %v", err)
	}
	w.must(t, &Copy{ID: "c2", Why: CopyMapping, From: FromScan, Parts: 1, Began: 2},
		&CopyMarks{ID: "c2", Parts: map[int]CopyMark{0: {Done: true}}, Date: 9})
	if w.s.DiffersSince() == 0 {
		t.Error("a later copy of another reason closed the gap of the cancelled one")
	}
}

// An owner that was asked twice under one id, because an acknowledgement was lost, ends only what
// it began with.
func TestResyncOrderedAgainUnderItsIdHealsOnlyWhatItNames(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, marksOf(SinkBigtable), gapIn("a", 10), gapIn("b", 20))
	first, second := w.s.Gaps[0].ID(), w.s.Gaps[1].ID()
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{first}}},
		&Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{second}}},
		&Healed{ID: "r1", Gaps: []string{first}, Sinks: map[string]string{SinkBigtable: ""}, Date: 30})
	if w.s.Resync == nil || w.s.Resync.ID != "r1" || w.s.Resync.Heals(first) || !w.s.Resync.Heals(second) {
		t.Fatalf("pending %+v", w.s.Resync)
	}
	if d := cmp.Diff([]string{SinkBigtable}, w.s.DifferingSinks(&w.s.Gaps[1])); d != "" {
		t.Fatal(d)
	}
	w.must(t, &Healed{ID: "r1", Gaps: []string{second}, Sinks: map[string]string{SinkBigtable: ""}, Date: 40})
	if w.s.Resync != nil || w.s.DiffersSince() != 0 {
		t.Errorf("pending %+v, differs since %d", w.s.Resync, w.s.DiffersSince())
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// An owner that orders the healing of the same gaps twice has ordered it once: the comparison does
// not begin again. Of other gaps it is another one, and so is an operator's.
func TestHealingOrderedTwiceIsOneResync(t *testing.T) {
	w := owned(t, seen("a", "b", "c")...)
	w.must(t, marksOf(SinkBigtable), gapIn("a", 10), gapIn("b", 20))
	first, second := w.s.Gaps[0].ID(), w.s.Gaps[1].ID()
	w.must(t, &Control{Resync: healOrder([]string{first}), At: 2_000_000})
	once := *w.s.Resync
	w.must(t, frame(page(w.s, "c", 3, false)), &Control{Resync: healOrder([]string{first}), At: 3_000_000})
	if d := cmp.Diff(once, *w.s.Resync); d != "" {
		t.Errorf("ordered again:\n%s", d)
	}
	w.must(t, &Control{Resync: healOrder([]string{first, second}), At: 4_000_000})
	if p := w.s.Resync; p.ID == once.ID || p.Asked <= once.Asked || !p.Heals(first) || !p.Heals(second) {
		t.Errorf("of more gaps: %+v", p)
	}
	w.must(t, &Control{Resync: &ResyncOrder{ID: "operator"}, At: 5_000_000})
	if w.s.Resync.ID != "operator" {
		t.Errorf("by an operator: %+v", w.s.Resync)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// A resync of the whole table that names unknown gaps heals none, and one that was waived meanwhile
// stays waived.
func TestResyncHealsNoGapThatItDoesNotKnow(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, marksOf(SinkBigtable), gapIn("a", 10_000), gapIn("b", 20_000),
		&Control{Resync: &ResyncOrder{ID: ""}})
	if w.s.Resync != nil {
		t.Fatalf("an order without an id: %+v", w.s.Resync)
	}
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r1", Gaps: []string{"unknown"}}})
	if w.s.Resync == nil || len(w.s.Resync.Gaps) > 0 || w.s.OpenGaps() != 2 {
		t.Fatalf("%+v, %d open", w.s.Resync, w.s.OpenGaps())
	}
	first, second := w.s.Gaps[0].ID(), w.s.Gaps[1].ID()
	w.must(t, &Control{Resync: &ResyncOrder{ID: "r2", Gaps: []string{first, second}}},
		&Control{Waive: &Waive{Gap: first, Sink: SinkBigtable}, By: "me"})
	if w.s.Resync == nil || w.s.DiffersSince() != 15_000 {
		t.Fatalf("waiving one ended the resync: %+v", w.s.Resync)
	}
	w.must(t, &Healed{ID: "r2", Gaps: []string{first, second, "unknown"}, Sinks: map[string]string{SinkBigtable: ""}})
	if g := w.s.Gaps[0]; w.s.Resync != nil || w.s.DiffersSince() != 0 || g.Waived[SinkBigtable].By != "me" {
		t.Errorf("%+v, gap %+v", w.s.Resync, g)
	}
}

// The oldest shards that a listing shows have parents that were trimmed. After a lost log their
// records of the time before are not applied: readers would see rows go back to what they were up
// to a day ago.
func TestChildOfATrimmedParentBeginsBelowTheFloorOfItsLife(t *testing.T) {
	const floor, t0 = 900_000_000, 700_000_000
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Date: t0, Floor: floor, After: t0, Recover: true, Shards: seen("old<gone", "other")},
		&Graph{Stream: "arn", Date: t0 + 1000, Complete: true, Shards: seen("old<gone", "other"), Gone: []string{"gone"}})
	sh, life := w.s.Shards["old"], w.s.LifeOf("arn")
	if !w.s.Readable(sh) {
		t.Fatalf("%s", sh)
	}
	clock := change.Clock(sh.Clock)
	for i, created := range []change.Millis{t0 - 50_000, t0 - 49_000, t0 - 1000} {
		if v := clock.NextIn(life, created); life.Applies(v) {
			t.Errorf("record %d from before the life is applied at version %d, its clock began at %d", i, v, sh.Clock)
		}
	}
	if v := clock.NextIn(life, t0); !life.Applies(v) {
		t.Errorf("the first record of the life is left out: version %d", v)
	}
}

// Rule 5: a shard whose child appeared after the start gave versions out in this life, perhaps.
func TestChildOfAShardLostAfterTheStartIsAboveAllVersions(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, frame(page(w.s, "a", 5, false)))
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 30*hour, Complete: true, Shards: seen("a", "c<b"),
		Gone: []string{"b"}})
	if c := w.s.Shards["c"]; c.Clock < w.s.Shards["a"].Clock || !w.s.Readable(c) {
		t.Errorf("%s begins at %d, the top is %d", c, c.Clock, w.s.TopClock())
	}
}

// A mapping that was drained for another one is not switched.
func TestSwitchThatWasReplacedChangesNothing(t *testing.T) {
	w := owned(t, seen("a")...)
	from := w.s.Identity.Mapping
	w.must(t, &Control{Accept: &Accept{From: from, To: "one", Done: true}})
	if w.s.Identity.Mapping != from {
		t.Error("switched without an order")
	}
	w.must(t, &Control{Accept: &Accept{From: from, To: "one"}}, &Control{Accept: &Accept{From: from, To: "two"}},
		&Control{Accept: &Accept{From: from, To: "one", Done: true}})
	if w.s.Identity.Mapping != from || w.s.Accepting == nil || w.s.Accepting.To != "two" {
		t.Errorf("mapping %q, accepting %+v", w.s.Identity.Mapping, w.s.Accepting)
	}
}

func TestPartsOfAStartAgreeOnTheBackfill(t *testing.T) {
	for what, change := range map[string]func(*Start){
		"backfill": func(b *Start) { b.Backfill = "" }, "recover": func(b *Start) { b.Recover = false },
		"after": func(b *Start) { b.After = 0 },
	} {
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		b := &Start{Stream: "arn", Date: 5, After: 5, Recover: true, Backfill: FromScan, Shards: seen("a", "b")}
		parts := SplitStart(b, 1)
		w.must(t, parts[0])
		change(parts[1])
		if err := w.s.CheckNext(parts[1]); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%s differs: %v", what, err)
		}
	}
	w := owned(t, seen("a")...)
	w.must(t, &Graph{Stream: "arn", Date: 2_000_000, Complete: true, Disabled: true, Shards: seen("a")})
	w.end(t, "a")
	if err := w.s.CheckNext(&Start{Stream: "arn-2", Date: 3_000_000, Recover: true}); !errors.As(err, new(*CorruptError)) {
		t.Errorf("recover in a log that has a stream: %v", err)
	}
}

// The highest version survives a restart although the shard that had it was replaced by one of
// another stream.
func TestHighestVersionSurvivesAReplacedShard(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, frame(page(w.s, "a", 5, true)), &Graph{Stream: "arn", Date: 2_000_000, Complete: true, Disabled: true})
	top := w.s.TopClock()
	w.must(t, &Start{Stream: "arn-2", Date: 3_000_000, After: 3_000_000, Shards: seen("a")})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	if a, b := w.s.HighestVersion(), w.l.restored(t).HighestVersion(); a < top || a != b {
		t.Errorf("%d, restored %d, it was %d", a, b, top)
	}
}

// A copy with the longest keys that DynamoDB has, all of bytes that JSON escapes, fits into what
// the log takes.
func TestMarksOfLongKeysFit(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, &Copy{ID: "c1", Why: CopyBackfill, From: FromScan, Parts: 64, Began: 1})
	key, err := json.Marshal(map[string]map[string]string{
		"pk": {"S": strings.Repeat("\x01", 2048)}, "sk": {"S": strings.Repeat("<", 1024)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for part := range 64 {
		w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{part: {After: string(key), Items: 1}}})
	}
	marks := &CopyMarks{ID: "c1", Parts: w.s.Copy.Marks}
	if size := len(encode(t, &Entry{Kind: KindCopyMarks, Body: marks})); size > 4<<20 {
		t.Errorf("marks of all parts: %d bytes", size)
	}
	if err := w.snapshot(t, 64<<10); err != nil {
		t.Fatal(err)
	}
	if n := w.s.SnapshotLast - w.s.SnapshotFirst + 1; n > 64 {
		t.Errorf("snapshot in %d parts of 64 KiB", n)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// healOrder is an order whose id is that of its gaps.
func healOrder(gaps []string) *ResyncOrder {
	return &ResyncOrder{ID: strings.Join(gaps, " "), Gaps: gaps}
}
