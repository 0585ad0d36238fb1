package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

const hour = 3600 * 1000

// page makes the head of a page of n records in what follows the state of a shard.
func page(s *State, id string, n int, done bool) PageHead {
	sh := s.Shards[id]
	p := PageHead{Feed: change.Feed{Stream: sh.Stream, Shard: id}, From: sh.Pos, To: sh.Pos, ClockFrom: sh.Clock,
		Clock: sh.Clock, Done: done, Date: s.Date + 1000, Records: n}
	if n > 0 {
		p.To, p.Clock, p.Newest = change.Position{After: sequenceNumber(int(sh.Clock) + n)}, sh.Clock+change.Version(n),
			s.Date
	}
	return p
}

func frame(pages ...PageHead) *Frame { return &Frame{Pages: pages} }

// end reads a shard to its end.
func (w *writer) end(t *testing.T, id string) { t.Helper(); w.must(t, frame(page(w.s, id, 1, true))) }

func seen(lineage ...string) (all []ShardSeen) {
	for _, l := range lineage {
		id, parent, _ := strings.Cut(l, "<")
		all = append(all, ShardSeen{ID: id, Parent: parent})
	}
	return all
}

// ended returns shards as a listing shows them that have an end.
func ended(lineage ...string) (all []ShardSeen) {
	all = seen(lineage...)
	for i := range all {
		all[i].Closed = true
	}
	return all
}

func phases(s *State) string {
	var all []string
	for id, sh := range s.Shards {
		all = append(all, id+":"+sh.Phase.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Rule 3.
func TestChildWaitsForItsParentsEnd(t *testing.T) {
	w := owned(t, seen("c<b", "b<a", "a", "d<a")...)
	for _, step := range []struct{ end, want string }{
		{"a", "a:finished b:open c:waiting d:open"},
		{"b", "a:finished b:finished c:open d:open"},
	} {
		w.end(t, step.end)
		if got := phases(w.s); got != step.want {
			t.Fatalf("after the end of %s: %s", step.end, got)
		}
	}
}

func TestChildSeenAfterItsParentsEndIsReadFromItsHorizon(t *testing.T) {
	w := owned(t)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Shards: seen("a")})
	w.s.Shards["a"].Clock = 500
	w.s.Reindex()
	w.end(t, "a")
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Shards: seen("b<a")})
	if b := w.s.Shards["b"]; !w.s.Readable(b) || b.Pos != (change.Position{}) || b.Clock != 501 {
		t.Fatalf("%+v", b)
	}
}

// Attack 11: a start time is for the shards of the start alone.
func TestStartTimeIsForTheFirstListingOnly(t *testing.T) {
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", At: 7000, Date: 9000, Shards: seen("a", "b<a")},
		&Graph{Stream: "arn", Date: 9500, Shards: seen("c<b")})
	for id, want := range map[string]change.Millis{"a": 7000, "b": 7000, "c": 0} {
		if got := w.s.Shards[id].Pos.At; got != want {
			t.Errorf("%s starts at %d, want %d", id, got, want)
		}
	}
}

// Attack 9: not listed is not gone.
func TestMissingParentHoldsItsChild(t *testing.T) {
	w := owned(t, seen("b<a", "c<a")...)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 1, Complete: true, Shards: seen("b<a", "c<a")})
	if d := cmp.Diff([]string{"a"}, w.s.MissingParents()); d != "" || w.s.Readable(w.s.Shards["b"]) {
		t.Fatal(d, phases(w.s))
	}
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 2, Complete: true, Shards: seen("b<a", "c<a"), Gone: []string{"a"}})
	if got := phases(w.s); got != "a:finished b:open c:open" || w.s.OpenGaps() != 0 {
		t.Fatalf("%s, %d gaps", got, w.s.OpenGaps())
	}
}

func TestUnreadShardThatIsGoneIsAGap(t *testing.T) {
	w := owned(t, seen("a", "b<a")...)
	w.must(t, frame(page(w.s, "a", 2, false)))
	pos, through := w.s.Shards["a"].Pos, w.s.Shards["a"].Watermark
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 30*hour, Complete: true, Shards: seen("b<a"), Gone: []string{"a"}})
	if len(w.s.Gaps) != 1 || w.s.Gaps[0].From != pos || w.s.Gaps[0].Since != through || w.s.Gaps[0].Until != w.s.Date ||
		!w.s.Readable(w.s.Shards["b"]) {
		t.Fatalf("%+v %s", w.s.Gaps, phases(w.s))
	}
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Gone: []string{"a"}})
	if len(w.s.Gaps) != 1 {
		t.Fatalf("the same loss counts %d times", len(w.s.Gaps))
	}
}

// A shard that opened and ended during an outage of the reader was never listed: its changes are
// lost as well.
func TestShardThatCameAndWentUnseenIsAGap(t *testing.T) {
	w := owned(t, seen("a")...)
	w.end(t, "a")
	later := w.s.Date + 30*hour
	w.must(t, &Graph{Stream: "arn", Date: later, Complete: true, Shards: seen("c<b")})
	w.must(t, &Graph{Stream: "arn", Date: later + 1, Complete: true, Shards: seen("c<b"), Gone: []string{"b"}})
	if len(w.s.Gaps) != 1 || w.s.Gaps[0].Feed.Shard != "b" || w.s.Gaps[0].Until < later {
		t.Fatalf("%+v", w.s.Gaps)
	}
}

// Rule 3: a gap closes a shard before its turn; what comes after it still waits for what comes
// before it.
func TestGapBeforeItsTurnDoesNotLetChildrenOvertake(t *testing.T) {
	for name, lost := range map[string]any{
		"gap":  &Gap{Feed: change.Feed{Stream: "arn", Shard: "b"}, Ends: true},
		"gone": &Graph{Stream: "arn", Date: 2_000_000, Gone: []string{"c", "b"}},
	} {
		w := owned(t, seen("a", "b<a", "c<b", "d<c")...)
		w.s.Shards["a"].Clock = 900
		w.s.Reindex()
		w.must(t, lost)
		w.must(t, &Graph{Stream: "arn", Date: 2_000_001, Shards: seen("e<b")})
		for _, id := range []string{"d", "e"} {
			if sh := w.s.Shards[id]; sh.Phase.Reading() || w.s.Drained("arn") {
				t.Fatalf("%s: %s is open before a was read", name, id)
			}
		}
		w.end(t, "a")
		if e := w.s.Shards["e"]; !w.s.Readable(e) || e.Clock != 901 {
			t.Fatalf("%s: %s, clock %d", name, phases(w.s), e.Clock)
		}
	}
}

func TestRotationsAreForgottenTwoDaysAfterTheyVanish(t *testing.T) {
	w := owned(t, seen("s0")...)
	for i := 1; i <= 100; i++ {
		child := fmt.Sprintf("s%d<s%d", i, i-1)
		w.must(t, &Graph{Stream: "arn", Date: w.s.Date + 4*hour, Complete: true, Shards: seen(child)})
		w.end(t, fmt.Sprintf("s%d", i-1))
	}
	if n := len(w.s.Shards); n > 15 {
		t.Fatalf("%d shards after 100 rotations", n)
	}
	if sh := w.s.Shards["s100"]; sh.Clock < 100 || w.s.HighestVersion() != sh.Clock {
		t.Fatalf("clock %d, top %d", sh.Clock, w.s.HighestVersion())
	}
}

// An inconsistent listing may leave a shard out for hours and show it again: it must not be read
// twice.
func TestShardThatVanishedForADayIsNotReadTwice(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.s.Shards["a"].Clock = 900
	w.s.Reindex()
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Shards: ended("a")})
	w.end(t, "a")
	date := w.s.Date
	w.must(t,
		&Graph{Stream: "arn", Date: date + 1*hour, Complete: true, Shards: seen("b")},
		&Graph{Stream: "arn", Date: date + 40*hour, Complete: true, Shards: seen("a", "b")},
		&Graph{Stream: "arn", Date: date + 60*hour, Complete: true, Shards: seen("b")},
		&Graph{Stream: "arn", Date: date + 107*hour, Complete: true, Shards: seen("b")},
		&Graph{Stream: "arn", Date: date + 109*hour, Shards: seen("b")}) // not complete: proves nothing
	if sh := w.s.Shards["a"]; sh == nil || sh.Phase != PhaseFinished {
		t.Fatal(phases(w.s))
	}
	w.must(t, &Graph{Stream: "arn", Date: date + 110*hour, Complete: true, Shards: seen("b")})
	if w.s.Shards["a"] != nil {
		t.Fatal("never forgotten")
	}
	if top := w.s.HighestVersion(); top != 901 {
		t.Fatalf("its version is forgotten too: top clock %d", top)
	}
}

// Attack 8: a table's new stream is a boundary inside its life.
func TestNewStreamStartsAboveAllVersions(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.s.Shards["a"].Clock = 77_000_000 // a burst ran ahead
	w.s.Reindex()
	w.end(t, "a")
	next := &Start{Stream: "new", Date: w.s.Date, Shards: seen("x", "b")}
	if w.s.CheckNext(next) == nil {
		t.Fatal("started although the old stream is not disabled")
	}
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Disabled: true})
	if w.s.CheckNext(next) == nil {
		t.Fatal("started although the old stream is not read to its end")
	}
	w.end(t, "b")
	w.must(t, next)
	for _, id := range []string{"x", "b"} { // b: the service reused a name
		if sh := w.s.Shards[id]; !w.s.Readable(sh) || sh.Clock < 77_000_001 || sh.Stream != "new" || sh.Pos.After != "" {
			t.Fatalf("%+v", sh)
		}
	}
	if w.s.CheckNext(&Start{Stream: "new"}) == nil {
		t.Fatal("a stream started twice")
	}
	late := &Graph{Stream: "arn", Date: w.s.Date, Complete: true, Shards: seen("a", "z<a")}
	if len(DiffListing(w.s, late, ListingPartBytes)) > 0 {
		t.Fatal("a late listing of the old stream is worth an entry")
	}
	if w.must(t, late); w.s.Shards["z"] != nil || w.s.Shards["x"].AbsentSince != 0 {
		t.Fatalf("a late listing of the old stream counts: %s", phases(w.s))
	}
	w.must(t, &Graph{Stream: "new", Date: w.s.Date + hour, Complete: true, Shards: seen("x", "b")},
		&Graph{Stream: "new", Date: w.s.Date + 50*hour, Complete: true, Shards: seen("x", "b")})
	if got := phases(w.s); got != "b:open x:open" {
		t.Fatalf("the old stream's shards stay for ever: %s", got)
	}
	if top := w.s.HighestVersion(); top < 77_000_001 {
		t.Fatalf("top clock %d", top)
	}
}

// TestEndOfAStreamIsTakenBack: an answer that shows the stream taking records is stored, also as a
// difference, and the shards that end later have children again.
func TestEndOfAStreamIsTakenBack(t *testing.T) {
	w := owned(t, seen("a", "b")...)
	w.must(t, &Graph{Stream: "arn", Date: w.s.Date, Disabled: true})
	w.end(t, "a")
	if w.s.AwaitsChildren() {
		t.Fatal("children are awaited in a stream that is disabled")
	}
	enabled := &Graph{Stream: "arn", Date: w.s.Date + 1, Complete: true, Enabled: true, Shards: seen("a", "b")}
	parts := DiffListing(w.s, enabled, ListingPartBytes)
	if len(parts) == 0 {
		t.Fatal("an answer that takes the end back is worth no entry")
	}
	for _, part := range parts {
		w.must(t, part)
	}
	w.end(t, "b")
	if w.s.LiveStream().Disabled || w.s.Drained("arn") || !w.s.AwaitsChildren() {
		t.Errorf("disabled %v, drained %v, children awaited %v", w.s.LiveStream().Disabled, w.s.Drained("arn"),
			w.s.AwaitsChildren())
	}
	if len(DiffListing(w.s, enabled, ListingPartBytes)) > 0 {
		t.Error("it is taken back twice")
	}
	if w.s.CheckNext(&Start{Stream: "new", Date: w.s.Date, Shards: seen("x")}) == nil {
		t.Error("another stream starts beside it")
	}
}

func TestListingThatTellsNothingNewIsNoEntry(t *testing.T) {
	w := owned(t, seen("a", "b<a")...)
	w.end(t, "a")
	base := Graph{Stream: "arn", Date: w.s.Date + 1, Complete: true, Shards: seen("a", "b<a")}
	with := func(f func(*Graph)) *Graph { g := base; g.Shards = slices.Clone(base.Shards); f(&g); return &g }
	for name, c := range map[string]struct {
		g    *Graph
		want bool
	}{
		"same":             {&base, false},
		"part":             {with(func(g *Graph) { g.Complete, g.Shards = false, seen("a") }), false},
		"a child":          {with(func(g *Graph) { g.Shards = seen("a", "b<a", "c<b") }), true},
		"an end":           {with(func(g *Graph) { g.Shards[1].Closed = true }), true},
		"disabled":         {with(func(g *Graph) { g.Disabled = true }), true},
		"enabled":          {with(func(g *Graph) { g.Enabled = true }), false},
		"gone":             {with(func(g *Graph) { g.Gone = []string{"a"} }), true},
		"finished, absent": {with(func(g *Graph) { g.Shards = seen("b<a") }), true},
	} {
		if got := len(DiffListing(w.s, c.g, ListingPartBytes)) > 0; got != c.want {
			t.Errorf("%s: changed is %t", name, got)
		}
	}
	open, closed, waiting, done := w.s.ShardCounts()
	if d := cmp.Diff([]int{1, 0, 0, 1}, []int{open, closed, waiting, done}); d != "" {
		t.Error(d)
	}
}

func TestWholeSinceTheParentsLastSignOfLife(t *testing.T) {
	w := owned(t, seen("a")...)
	date := w.s.Date
	p := page(w.s, "a", 1, false)
	w.must(t, frame(p), &Graph{Stream: "arn", Date: date + hour, Shards: seen("b<a")})
	late := page(w.s, "a", 0, true)
	late.Date = date + 30*hour // read to its end a day later: empty, but the child may be trimmed already
	w.must(t, frame(late))
	if got := w.s.CompleteUntil(w.s.Shards["b"]); got >= date+2*hour || got < date {
		t.Fatalf("whole since %d, started at %d", got, date)
	}
}

// What is lost of a shard counts as never promised only if all of it is older than the pipeline.
func TestLossBeforeTheStart(t *testing.T) {
	date := change.Millis(1_790_000_000_000)
	for _, at := range []change.Millis{0, date - hour, date} {
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		w.must(t, &Start{Stream: "arn", At: at, Date: date,
			Shards: []ShardSeen{{ID: "over", Closed: true}, {ID: "read", Closed: true}, {ID: "idle"}}})
		w.must(t, frame(page(w.s, "read", 1, false)), &Graph{Stream: "arn", Date: date + 10,
			Shards: []ShardSeen{{ID: "late", Closed: true}}})
		for id, before := range map[string]bool{"over": true, "read": false, "idle": false, "late": false} {
			if got := w.s.LostBeforeStart(w.s.Shards[id], date+hour/2); got != before {
				t.Errorf("from %d: %s soon after the start: %v", at, id, got)
			}
		}
		if got := w.s.LostBeforeStart(w.s.Shards["over"], date+20*hour); got != (at == date) {
			t.Errorf("from %d: a day after the start: %v", at, got)
		}
	}
}
