package checkpoint

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// Rules 2 and 5: position, clock and data of a page are one entry, and it follows the one before.
func TestPageThatDoesNotFollowIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*PageHead){
		"read twice":            func(p *PageHead) { p.From, p.ClockFrom = change.Position{}, 0 },
		"read twice in part":    func(p *PageHead) { p.From.After = sequenceNumber(2) },
		"page missing between":  func(p *PageHead) { p.From.After = sequenceNumber(90) },
		"clock of another life": func(p *PageHead) { p.ClockFrom++ },
		"clock goes back":       func(p *PageHead) { p.Clock = p.ClockFrom - 1 },
		"two share a version":   func(p *PageHead) { p.Clock = p.ClockFrom + 1 },
		"goes back":             func(p *PageHead) { p.To.After = sequenceNumber(1) },
		"stands still":          func(p *PageHead) { p.To = p.From },
		"goes back by nothing":  func(p *PageHead) { p.Records, p.To.After = 0, sequenceNumber(1) },
		"forgets its position":  func(p *PageHead) { p.Records, p.To = 0, change.Position{} },
		"less than nothing":     func(p *PageHead) { p.Records = -1 },
		"never listed":          func(p *PageHead) { p.Feed.Shard = "z" },
		"other stream":          func(p *PageHead) { p.Feed.Stream = "z" },
		"child of open parent":  func(p *PageHead) { p.Feed.Shard, p.From, p.ClockFrom = "b", change.Position{}, 0 },
	} {
		w := owned(t, seen("a", "b<a")...)
		w.must(t, frame(page(w.s, "a", 3, false)))
		p := page(w.s, "a", 2, false)
		spoil(&p)
		corrupt := (*CorruptError)(nil)
		if err := w.s.CheckNext(frame(p)); !errors.As(err, &corrupt) || corrupt.Seq != w.s.Seq+1 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.s.Apply(w.s.Seq+1, w.message(t, frame(p), nil)); !errors.As(err, &corrupt) {
			t.Errorf("%s: folds with %v", name, err)
		}
	}
}

func TestPagesOfOneFrameFollowEachOther(t *testing.T) {
	w := owned(t, seen("a", "b<a", "c")...)
	first := page(w.s, "a", 3, false)
	second := first
	second.From, second.ClockFrom, second.To.After, second.Clock, second.Done = first.To, first.Clock,
		sequenceNumber(50), first.Clock+3, true
	behind := second
	behind.From, behind.ClockFrom, behind.To.After, behind.Clock = second.To, second.Clock, sequenceNumber(60),
		second.Clock+3
	child := PageHead{Feed: change.Feed{Stream: "arn", Shard: "b"}, ClockFrom: second.Clock, Clock: second.Clock}
	for name, f := range map[string]*Frame{
		"twice": frame(first, first), "swapped": frame(second, first), "after the end": frame(first, second, behind),
		"child in the frame that ends its parent": frame(first, second, child),
	} {
		if w.s.CheckNext(f) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	w.must(t, frame(first, page(w.s, "c", 1, false), second))
	if sh := w.s.Shards["a"]; sh.Phase != PhaseFinished || sh.Clock != 6 || w.s.Changes != 7 || w.s.LastFrame != w.s.Seq {
		t.Fatalf("%+v, %d changes", sh, w.s.Changes)
	}
	w.must(t, frame(child))
}

// Rule 1.
func TestMarkNeverGoesBackNorAhead(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, frame(page(w.s, "a", 1, false)), &Beat{}, &Beat{})
	mark := func(seq uint64) *Marks { return &Marks{Sinks: map[string]Mark{"s": {Seq: seq}}} }
	w.must(t, mark(3), mark(3), mark(4))
	for _, seq := range []uint64{0, 3, w.s.Seq + 1, 1 << 60} {
		if w.s.CheckNext(mark(seq)) == nil {
			t.Errorf("mark %d is taken at %d", seq, w.s.Seq)
		}
	}
	w.must(t, &Marks{Sinks: map[string]Mark{"other": {Seq: 1}}})
	if w.s.LowMark() != 1 {
		t.Fatalf("low mark %d", w.s.LowMark())
	}
	w.must(t, &Marks{Retired: []string{"other"}})
	if w.s.LowMark() != 4 || len(w.s.Marks) != 1 {
		t.Fatalf("low mark %d", w.s.LowMark())
	}
}

func TestEntriesOfNothingKnownAreRefused(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, &Release{})
	w, err := claim(t, w.l, w.s, "b", 2)
	if err != nil {
		t.Fatal(err)
	}
	w.s.Life = 3
	for name, body := range map[string]any{
		"listing of another stream": &Graph{Stream: "z"},
		"shard without a name":      &Graph{Stream: "arn", Shards: seen("")},
		"shard that is its parent":  &Graph{Stream: "arn", Shards: seen("x<x")},
		"gap in an unknown shard":   &Gap{Feed: change.Feed{Stream: "arn", Shard: "z"}},
		"gap of another stream":     &Gap{Feed: change.Feed{Stream: "z", Shard: "a"}},
		"claim of an earlier life":  &Claim{Life: 2},
		"start over":                &Start{Stream: "arn"},
	} {
		if w.s.CheckNext(body) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Rule 8: a gap stays until an operator accepts it, and its range covers all lost changes.
func TestGapHoldsItsShardUntilItIsAccepted(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, frame(page(w.s, "a", 2, false)))
	sh := w.s.Shards["a"]
	feed := change.Feed{Stream: "arn", Shard: "a"}
	inHand := change.Position{After: sequenceNumber(70)} // read, but never stored
	w.must(t, &Gap{Feed: feed, From: inHand, Since: sh.Watermark + hour, Until: w.s.Date + 2*hour})
	if g := w.s.Gaps[0]; g.From != sh.Pos || g.Since != sh.Watermark {
		t.Fatalf("the gap hides what was read and not stored: %+v", g)
	}
	if w.s.Readable(sh) || !w.s.Readable(w.s.Shards["b"]) || w.s.OpenGaps() != 1 ||
		w.s.CheckNext(frame(page(w.s, "a", 1, false))) == nil {
		t.Fatalf("%+v", sh)
	}
	clock := sh.Clock
	w.must(t, &Beat{Date: w.s.Date + 40*hour}, &Control{Resume: true}) // an outage of 40 hours
	if got := w.s.Gaps[0].Until; got != w.s.Date {
		t.Fatalf("the gap reaches up to %d, it was accepted at %d", got, w.s.Date)
	}
	if !w.s.Readable(sh) || sh.Pos != (change.Position{}) || !sh.Loss.AtTrimHorizon || sh.Clock != clock ||
		w.s.OpenGaps() != 0 || len(w.s.Gaps) != 1 {
		t.Fatalf("%+v", sh)
	}
	if got := w.s.CompleteUntil(sh); got != w.s.Gaps[0].Until || got < w.s.Date {
		t.Fatalf("whole since %d: the accepted gap would be found again, or the next one would not", got)
	}
	w.must(t, frame(page(w.s, "a", 1, false)), &Gap{Feed: feed, From: w.s.Shards["a"].Pos, Accepted: true})
	if !w.s.Readable(sh) || w.s.OpenGaps() != 0 || sh.Pos != (change.Position{}) {
		t.Fatalf("an accepted gap holds its shard: %+v", sh)
	}
	w.end(t, "a")
	w.must(t, &Gap{Feed: feed}, &Gap{Feed: change.Feed{Stream: "arn"}, Found: w.s.Date + 5})
	if sh.Loss.Pending || w.s.OpenGaps() != 2 {
		t.Fatalf("%+v", sh)
	}
}

func TestHaltsAndPausesComeAndGo(t *testing.T) {
	yes, no := true, false
	w := owned(t)
	for i, c := range []struct {
		c      *Control
		paused bool
		halted bool
	}{
		{&Control{Pause: &yes}, true, false},
		{&Control{Halt: &Halt{Sink: "s", Reason: "x"}}, true, true},
		{&Control{Pause: &no}, false, true},
		{&Control{Clear: true}, false, false},
		{&Control{Pause: &yes, Halt: &Halt{}}, true, true},
		{&Control{Resume: true}, false, false},
	} {
		if w.must(t, c.c); w.s.Paused != c.paused || (len(w.s.AllHalts()) > 0) != c.halted {
			t.Fatalf("step %d: paused %t, halts %v", i, w.s.Paused, w.s.AllHalts())
		}
	}
}

// halts are the reasons by sink.
func (w *writer) halts() map[string]string {
	all := map[string]string{}
	for sink, h := range w.s.AllHalts() {
		all[sink] = h.Reason
	}
	return all
}

func TestEndOfOneHaltLeavesTheOthers(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, &Control{Halt: &Halt{Sink: "archive", Reason: "away"}},
		&Control{Halt: &Halt{Sink: "bigtable", Reason: "denied"}},
		&Control{Halt: &Halt{Sink: "archive", Reason: "full"}})
	for _, step := range []struct {
		clear string
		left  map[string]string
	}{
		{"pipeline", map[string]string{"archive": "full", "bigtable": "denied"}},
		{"bigtable", map[string]string{"archive": "full"}},
		{"archive", map[string]string{}},
	} {
		if c := w.s.ClearEntry(step.clear); c != nil {
			w.must(t, c)
		}
		if d := cmp.Diff(step.left, w.halts()); d != "" {
			t.Fatalf("after the end of %s: %s", step.clear, d)
		}
		sameState(t, "folded", w.s, w.l.fold(t))
	}
}

// The first claim of a life says whose log it is: a later owner cannot rename it, but can see that
// it is not his.
func TestLaterClaimDoesNotChangeWhoseLogItIs(t *testing.T) {
	w := owned(t, seen("a")...)
	next, err := claim(t, w.l, w.l.fold(t), "b", 2)
	if err != nil {
		t.Fatal(err)
	}
	if id := next.s.Identity; id == nil || id.Table != "a" || next.s.Owner != "b" {
		t.Fatalf("%+v of %s", id, next.s.Owner)
	}
	next.epoch++
	next.must(t, &Claim{Owner: "c", Life: 1, Identity: &Identity{Table: "c"}})
	if next.s.Identity.Table != "c" || next.s.Life != 1 {
		t.Fatalf("%+v in life %d", next.s.Identity, next.s.Life)
	}
}

// A message of a log that other hands wrote into: nothing of it counts, all of it is counted
// (attacks 1, 28, 39).
func TestForeignMessagesFoldAsNothing(t *testing.T) {
	w := owned(t, seen("a")...)
	stale := *w
	stale.s = w.l.fold(t)
	old := w.l.msgs[0]
	rival, err := claim(t, w.l, w.l.fold(t), "b", 9)
	if err != nil {
		t.Fatal(err)
	}
	before := func() *writer { x := *w; x.s = rival.s; return &x }() // the right chain, the wrong owner
	forger := &writer{s: rival.s, epoch: rival.epoch, nonce: Nonce{1}}
	future := &writer{s: rival.s, epoch: rival.epoch + 2}
	for name, msg := range map[string][]byte{
		"noise":                   []byte("hello"),
		"nothing":                 {},
		"an entry once more":      old,
		"broken body":             slices.Concat(rival.message(t, &Beat{}, nil)[:40], []byte("{{{{{{{{{{{{")),
		"unknown kind":            func() []byte { m := rival.message(t, &Beat{}, nil); m[len(magic)+1] = '?'; return m }(),
		"a stale owner's":         stale.message(t, &Beat{Date: 1 << 50}, nil),
		"the last owner's":        before.message(t, &Beat{Date: 1 << 50}, nil),
		"another nonce":           forger.message(t, &Beat{Date: 1 << 50}, nil),
		"claim of the same epoch": rival.message(t, &Claim{Owner: "x"}, nil),
		"claim of a later epoch":  future.message(t, &Claim{Owner: "x"}, nil),
		"control off the chain":   stale.message(t, &Control{Resume: true}, nil),
	} {
		want := foldOf(t, w.l.msgs)
		got := foldOf(t, w.l.msgs)
		e, err := got.Apply(got.Seq+1, msg)
		if e != nil || err != nil || got.Foreign != want.Foreign+1 || got.Seq != want.Seq+1 {
			t.Errorf("%s: %v, %v, %d foreign", name, e, err, got.Foreign)
		}
		want.Seq, want.Foreign = got.Seq, got.Foreign
		sameState(t, name, want, got)
	}
}

func TestNobodyWritesBeforeAClaimOrAfterARelease(t *testing.T) {
	w := &writer{l: new(memLog), s: NewState()}
	if e, _ := NewState().Apply(1, w.message(t, &Start{Stream: "arn"}, nil)); e != nil {
		t.Fatal("an entry before the first claim counts")
	}
	o := owned(t, seen("a")...)
	o.must(t, &Release{})
	s := o.l.fold(t)
	if e, _ := s.Apply(s.Seq+1, o.message(t, &Beat{}, nil)); e != nil || s.Foreign != 1 {
		t.Fatal("an entry after the release counts")
	}
	if _, err := claim(t, o.l, o.l.fold(t), "b", 2); err != nil {
		t.Fatal(err)
	}
}

// Attack 28: the store lost its tail, a rival filled it up to the same number, and the server takes
// what the stale writer expects.
func TestStaleWriterOnARolledBackLogStoresNothing(t *testing.T) {
	w := owned(t, seen("a")...)
	copied := slices.Clone(w.l.msgs)
	w.must(t, frame(page(w.s, "a", 2, false)))
	w.must(t, frame(page(w.s, "a", 2, false)))
	w.l.msgs = copied // the disk is restored
	rival, err := claim(t, w.l, w.l.fold(t), "b", 2)
	if err != nil {
		t.Fatal(err)
	}
	rival.must(t, frame(page(rival.s, "a", 1, false)))
	if w.l.last() != w.s.Seq {
		t.Fatalf("the log is at %d, the stale writer at %d: no attack", w.l.last(), w.s.Seq)
	}
	w.must(t, frame(page(w.s, "a", 3, false))) // the server took it
	s := w.l.fold(t)
	if s.Foreign != 1 || s.Changes != 1 || s.Owner != "b" {
		t.Fatalf("%d foreign, %d changes of %s", s.Foreign, s.Changes, s.Owner)
	}
	if err := rival.append(t, &Beat{}, nil); !errors.Is(err, errWrongLast) {
		t.Fatal(err)
	}
	rival.s = w.l.restored(t) // doubt: what is stored counts
	rival.must(t, frame(page(rival.s, "a", 1, false)))
}

// Attack 15: after a lost acknowledgement only what is stored says whose the entry is.
func TestTwoProcessesWithOneNameAreTold(t *testing.T) {
	l := new(memLog)
	a, _ := claim(t, l, NewState(), "pod", 1)
	b, err := claim(t, l, l.fold(t), "pod", 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.append(t, &Beat{}, nil); !errors.Is(err, errWrongLast) {
		t.Fatal(err)
	}
	if s := l.fold(t); s.Nonce == a.nonce || s.Nonce != b.nonce || s.Epoch != 2 {
		t.Fatalf("epoch %d, nonce %s", s.Epoch, s.Nonce)
	}
}

// Attack 35: a first start that died after any of its steps is taken up by the next one.
func TestFirstStartTakenUpAfterEveryStep(t *testing.T) {
	start := &Start{Stream: "arn", Date: 1, Shards: seen("a")}
	for steps := range 3 {
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		if steps > 0 {
			w.must(t, start)
		}
		if steps > 1 {
			w.must(t, frame(page(w.s, "a", 1, false)))
		}
		next, err := claim(t, w.l, w.l.restored(t), "b", 2)
		if err != nil {
			t.Fatal(err)
		}
		if next.s.LiveStream() == nil {
			next.must(t, start)
		}
		if sh := next.s.Shards["a"]; !next.s.Readable(sh) || sh.Clock != change.Version(steps/2) {
			t.Fatalf("after %d steps: %+v", steps, sh)
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	w := owned(t, seen("a")...)
	err := w.s.CheckNext(frame(PageHead{Feed: change.Feed{Stream: "arn", Shard: "a"}, ClockFrom: 5}))
	if err == nil || !strings.Contains(err.Error(), "log entry 3: page of shard a starts at") {
		t.Fatal(err)
	}
	if got := w.s.Shards["a"].String(); got != `a open after ""` {
		t.Fatal(got)
	}
}
