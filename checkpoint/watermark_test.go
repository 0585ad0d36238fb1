package checkpoint

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

const sink = "bigtable"

func mark(seq uint64) *Marks { return &Marks{Sinks: map[string]Mark{sink: {Seq: seq}}} }

// A sink that has applied everything stays so while nothing but beats comes, and does not lose what
// it knew when the next change arrives.
func TestAppliedThroughDoesNotFallBackWhenAnIdleTableWakes(t *testing.T) {
	w := owned(t, seen("a")...)
	date := w.s.Date
	w.must(t, &Beat{Date: date, Watermark: date})
	if got := w.s.AppliedWatermark(); got != 0 {
		t.Fatalf("without a sink: applied through %d", got)
	}
	w.must(t, mark(0), frame(page(w.s, "a", 1, false)))
	at := w.s.Seq
	w.must(t, mark(at))
	for i := range change.Millis(5) {
		w.must(t, &Beat{Date: date + i*1000, Watermark: date + i*1000})
	}
	want := date + 4000
	if got := w.s.AppliedWatermark(); got != want {
		t.Fatalf("idle: applied through %d, want %d", got, want)
	}
	w.must(t, frame(page(w.s, "a", 1, false)))
	if got := w.s.AppliedWatermark(); got != want {
		t.Fatalf("woken: applied through %d, want %d", got, want)
	}
	w.must(t, &Beat{Date: date + 9000, Watermark: date + 9000})
	if got := w.s.AppliedWatermark(); got != want {
		t.Fatalf("the change is not applied yet: through %d, want %d", got, want)
	}
	w.must(t, mark(w.s.LastFrame))
	if got := w.s.AppliedWatermark(); got != date+9000 {
		t.Fatalf("applied through %d", got)
	}
	w.must(t, &Marks{Sinks: map[string]Mark{"archive": {}}})
	if got := w.s.AppliedWatermark(); got != 0 {
		t.Fatalf("a new sink has nothing, applied through %d", got)
	}
}

// Attack 37: an idle hour is beats only, and a sink that stands still for 50 hours costs bounded
// memory.
func TestWatermarksOfAStalledSinkAreBounded(t *testing.T) {
	w := owned(t, seen("a")...)
	date := w.s.Date
	w.must(t, mark(0))
	for i := range change.Millis(2000) {
		w.must(t, frame(page(w.s, "a", 1, false)), &Beat{Date: date + i*1000, Watermark: date + i*1000})
	}
	n := len(w.s.Watermarks)
	if n > maxWatermarks {
		t.Fatalf("%d watermarks", n)
	}
	for i := range change.Millis(10) {
		w.must(t, &Beat{Date: date + 1999_000 + i, Watermark: date + 1999_000 + i})
	}
	if len(w.s.Watermarks) != n {
		t.Fatalf("%d watermarks after %d, and nothing but beats in between", len(w.s.Watermarks), n)
	}
	if got := w.s.AppliedWatermark(); got != 0 {
		t.Fatalf("applied through %d", got)
	}
	half := w.s.Watermarks[len(w.s.Watermarks)/2]
	w.must(t, mark(half.Seq))
	if got := w.s.AppliedWatermark(); got != half.Time {
		t.Fatalf("applied through %d, want %d", got, half.Time)
	}
	w.must(t, mark(w.s.LastFrame))
	if got := w.s.AppliedWatermark(); got != date+1999_009 || len(w.s.Watermarks) != 1 {
		t.Fatalf("applied through %d, %d watermarks", got, len(w.s.Watermarks))
	}
	for i := range change.Millis(1000) {
		w.must(t, &Beat{Date: date + i*1e6, Watermark: date + i*1e6})
	}
	if n := len(w.s.Watermarks); n != 1 {
		t.Fatalf("%d watermarks of an idle table", n)
	}
}

// Attack 17: unread changes count, also those of shards that are not listed yet.
func TestThroughIsNoBetterThanTheLeastKnownShard(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	date := w.s.Date
	check := func(what string, want change.Millis) {
		t.Helper()
		if got := w.s.ReadWatermark(); got != want {
			t.Fatalf("%s: through %+d, want %+d", what, got-date, want-date)
		}
	}
	check("nothing read", 0)
	w.must(t, &Graph{Stream: "arn", Date: date + 1000, Shards: seen("c<a")},
		&Beat{Date: date + 10_000, Listed: date + 9000, Watermark: date + 8000})
	check("the open parent's empty reads say nothing about a child that waits", openUntil(date))
	delete(w.s.Shards, "c") // as if it were not listed yet
	w.s.Shards["a"].Phase = PhaseOpen
	w.s.Reindex()
	w.must(t, &Beat{Date: date + 10_000, Listed: date, Watermark: date + 8000})
	check("beat", date+8000)
	p := page(w.s, "a", 1, true)
	p.Newest, p.Date = date+9000, date+20_000
	w.must(t, frame(p), &Beat{Date: date + 60_000, Listed: date + 10_000, Watermark: date + 50_000})
	check("a ended, its children are not listed yet", date+8000)
	w.must(t, &Graph{Stream: "arn", Date: date + 61_000, Shards: seen("c<a")})
	check("child listed, not read", date+8000)
	w.must(t, &Beat{Date: date + 62_000, Listed: date + 10_000, Watermark: date + 61_000})
	check("child read", date+61_000)

	late := page(w.s, "b", 0, true)
	late.Date = date + 90_000
	w.must(t, frame(late), &Beat{Date: date + 91_000, Listed: date + 10_000, Watermark: date + 90_000})
	check("b's end came as an empty page: its children are as old as b's last sign of life", openUntil(date+10_000))
	w.must(t, &Beat{Date: date + 92_000 + childListingDelay, Listed: date + 91_000 + childListingDelay,
		Watermark: date + 92_000})
	check("no children a minute later: there are none", date+92_000)
}

// Rule 10: who waits until everything is applied asks for a listing first; what was said before
// that listing, when a split was not known yet, must not count.
func TestListingThatShowsASplitTakesBackWhatWasSaidBefore(t *testing.T) {
	w := owned(t, seen("a")...)
	date := w.s.Date
	w.must(t, mark(0), &Beat{Date: date + 30_000, Listed: date + 9000, Watermark: date + 20_000})
	if got := w.s.AppliedWatermark(); got != date+20_000 {
		t.Fatalf("applied through %+d", got-date)
	}
	w.must(t, &Graph{Stream: "arn", Date: date + 31_000, Complete: true, Shards: seen("a", "b<a")})
	if got := w.s.AppliedWatermark(); got != openUntil(date+9000) {
		t.Fatalf("applied through %+d, but b is not read", got-date)
	}
	w.must(t, &Graph{Stream: "arn", Date: date + 32_000, Shards: seen("d<c")})
	if got := w.s.AppliedWatermark(); got != 0 {
		t.Fatalf("applied through %+d, but nothing is known of what d comes after", got-date)
	}
}

// TestListingMayShowAnEndedShardOpen: the shard ended 1.9 s before the listing that shows it open,
// and the first change of its child was created in a second that had begun 0.9 s earlier.
func TestListingMayShowAnEndedShardOpen(t *testing.T) {
	w := owned(t, seen("a")...)
	listed := w.s.Date - w.s.Date%1000 + 60_800
	ended := listed - 1900
	created := ended - ended%1000
	w.must(t, mark(0), &Beat{Date: listed + 30_000, Listed: listed, Watermark: listed + 20_000},
		&Graph{Stream: "arn", Date: listed + 31_000, Complete: true, Shards: seen("a", "b<a")})
	if got := w.s.AppliedWatermark(); got >= created {
		t.Fatalf("applied through %d, and a change created at %d is not read", got, created)
	}
}

func TestThroughOfADrainedStreamIsItsLastSignOfLife(t *testing.T) {
	w := owned(t, seen("a")...)
	date := w.s.Date
	w.must(t, &Beat{Date: date + hour, Listed: date + hour, Watermark: date + hour},
		&Graph{Stream: "arn", Date: date + 5*hour, Disabled: true})
	p := page(w.s, "a", 0, true)
	p.Date = date + 6*hour
	w.must(t, frame(p), &Beat{Date: date + 7*hour})
	if got, want := w.s.ReadWatermark(), openUntil(date+hour); got != want || !w.s.Drained("arn") {
		t.Fatalf("through %d, want %d: what was written since then may be in no stream", got, want)
	}
	if NewState().ReadWatermark() != 0 || NewState().AppliedWatermark() != 0 {
		t.Fatal("an empty log knows")
	}
}

// Attack 2: ten idle days.
func TestIdleTableKeepsItsStateThroughSnapshotsAlone(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, frame(page(w.s, "a", 5, false)), mark(2))
	date := w.s.Date
	for i := range change.Millis(2400) {
		w.must(t, &Beat{Date: date + i*hour/10, Watermark: date + i*hour/10})
		if i%500 == 0 {
			if err := w.snapshot(t, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	sh := *w.s.Shards["a"]
	first := w.s.SnapshotFirst
	s, err := Restore(first, w.l.msgs[first-1:w.s.SnapshotLast])
	if err != nil {
		t.Fatal(err)
	}
	if s.Seq != first-1 {
		t.Fatalf("restored at %d, the snapshot begins at %d", s.Seq, first)
	}
	for seq := first; seq <= w.s.Seq; seq++ { // all before it is trimmed
		if _, err := s.Apply(seq, w.l.msgs[seq-1]); err != nil {
			t.Fatal(err)
		}
	}
	sameState(t, "restored", w.s, s)
	got := *s.Shards["a"]
	if got.inIndex, sh.inIndex = (indexState{}), (indexState{}); got != sh || got.Pos.After == "" {
		t.Fatalf("%+v", got)
	}
}

func TestSnapshotsComeByVolume(t *testing.T) {
	s := NewState()
	for _, c := range []struct {
		since int64
		last  int
		want  bool
	}{{minSnapshotVolume - 1, 0, false}, {minSnapshotVolume, 0, true}, {minSnapshotVolume, minSnapshotVolume, false},
		{4 * minSnapshotVolume, minSnapshotVolume, true}} {
		if s.BytesSinceSnapshot = c.since; s.SnapshotDue(c.last) != c.want {
			t.Errorf("%d bytes after a snapshot of %d: %t", c.since, c.last, !c.want)
		}
	}
	if _, err := s.Snapshot(0); err == nil {
		t.Error("parts of no bytes")
	}
}

// What cannot be restored must not be trimmed below.
func TestInterruptedSnapshotIsNone(t *testing.T) {
	for name, between := range map[string]func(w *writer){
		"operator": func(w *writer) { w.must(t, &Control{Clear: true}) },
		"stray": func(w *writer) {
			w.l.msgs = append(w.l.msgs, []byte("x"))
			if _, err := w.s.Apply(w.l.last(), []byte("x")); err != nil {
				t.Fatal(err)
			}
		},
		"another first part": func(w *writer) { w.must(t, &Snapshot{Part: 0, Parts: 3, Format: Format}) },
	} {
		w := owned(t, seen("a", "b", "c")...)
		parts, err := w.s.Snapshot(60)
		if err != nil || len(parts) < 3 {
			t.Fatal(len(parts), err)
		}
		first := w.s.Seq + 1
		for i, p := range parts {
			if i == 1 {
				between(w)
			}
			if i > 0 {
				p.Body.First = first
			}
			if err := w.append(t, p.Body, p.Data); err != nil {
				t.Fatal(err)
			}
		}
		if w.s.SnapshotFirst != 0 {
			t.Errorf("%s: a snapshot at %d", name, w.s.SnapshotFirst)
		}
		if err := w.snapshot(t, 60); err != nil || w.s.SnapshotFirst == 0 {
			t.Errorf("%s: no snapshot afterwards, %v", name, err)
		}
	}
}

func TestPartsOfDifferentSnapshotsAreNotRestored(t *testing.T) {
	w := owned(t, seen("a", "b", "c")...)
	var at []uint64
	for range 2 {
		at = append(at, w.s.Seq+1)
		if err := w.snapshot(t, 60); err != nil {
			t.Fatal(err)
		}
	}
	one, two := w.l.msgs[at[0]-1:at[1]-1], w.l.msgs[at[1]-1:]
	if s, err := Restore(at[1], two); err != nil || s.Epoch != 1 {
		t.Fatal(err)
	}
	for name, msgs := range map[string][][]byte{
		"mixed": append([][]byte{two[0]}, one[1:]...), "cut": two[:len(two)-1], "no first": two[1:], "none": nil,
		"noise": {[]byte("x")}, "no snapshot": {w.l.msgs[0]},
	} {
		if _, err := Restore(at[1], msgs); err == nil {
			t.Errorf("%s is restored", name)
		}
	}
	// A snapshot by a writer that does not own the log.
	parts, _ := w.s.Snapshot(1 << 20)
	forger := &writer{s: w.s, epoch: w.epoch, nonce: Nonce{7}}
	if _, err := Restore(w.s.Seq+1, [][]byte{forger.message(t, parts[0].Body, parts[0].Data)}); err == nil {
		t.Error("forged snapshot is restored")
	}
}

// TestShardBeforeAGapHoldsBackNoOther: what beats show of the other shards must reach the log while
// a gap is open, or a wait for everything beside the gap would never end. The shard itself is not
// read, so no beat raises it.
func TestShardBeforeAGapHoldsBackNoOther(t *testing.T) {
	w := owned(t, seen("a", "b", "c", "d")...)
	w.must(t, &Beat{Date: w.s.Date + 1000, Listed: w.s.Date, Watermark: w.s.Date})
	before, low := w.s.ReadWatermark(), w.s.Date
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "c"}, From: w.s.Shards["c"].Pos, Since: before, Until: w.s.Date,
		Found: w.s.Date, Reason: "trimmed"})
	for i := range change.Millis(3) {
		low = w.s.Date + 10_000
		w.must(t, &Beat{Date: low + 1000, Listed: low, Watermark: low})
		if all, beside := w.s.ReadWatermark(), w.s.ReadWatermarkBesideGaps(); all != before || beside != low {
			t.Fatalf("beat %d: read through %d, beside the gap through %d; want %d and %d", i, all, beside, before, low)
		}
	}
	w.must(t, &Control{Resume: true})
	w.must(t, &Beat{Date: low + 2000, Listed: low, Watermark: low + 500})
	if all := w.s.ReadWatermark(); all != low+500 {
		t.Errorf("accepted: read through %d, want %d", all, low+500)
	}
}
