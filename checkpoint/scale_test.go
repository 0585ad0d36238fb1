package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// generations lists shards that were rotated: the first has no parents, the last is open.
func generations(gens, width int) (all []ShardSeen) {
	name := func(g, i int) string { return fmt.Sprintf("shardId-%020d-%08d", 1_790_000_000_000+g, i) }
	for g := range gens {
		for i := range width {
			x := ShardSeen{ID: name(g, i), Closed: g < gens-1}
			if g > 0 {
				x.Parent = name(g-1, i)
			}
			all = append(all, x)
		}
	}
	return all
}

// A server that takes 1 MiB, 1,600 open shards and six generations before them: one entry would not
// fit.
func TestStartOfManyShardsComesInParts(t *testing.T) {
	for _, size := range []struct{ gens, width int }{{7, 1_600}, {8, 10_000}} {
		start := &Start{Stream: "arn", Mode: "latest", At: 5, Date: 1_790_000_000_000, Floor: 3,
			Shards: generations(size.gens, size.width)}
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		parts := SplitStart(start, ListingPartBytes)
		for i, part := range parts {
			if w.s.LiveStream() != nil {
				t.Fatalf("part %d of %d: started", i, len(parts))
			}
			w.must(t, part)
			if n := len(w.l.msgs[len(w.l.msgs)-1]); n > ListingPartBytes {
				t.Errorf("part %d takes %d bytes", i, n)
			}
		}
		one, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		one.must(t, start)
		one.s.Streams[0].Seq, one.s.Seq, one.s.Hash, one.s.BytesSinceSnapshot = w.s.Streams[0].Seq, w.s.Seq, w.s.Hash,
			w.s.BytesSinceSnapshot
		if d := cmp.Diff(stateJSON(one.s), stateJSON(w.s)); d != "" {
			t.Errorf("in one entry (-), in parts (+): %s", d)
		}
		if _, _, waiting, _ := w.s.ShardCounts(); w.s.Starting != nil || len(w.s.Shards) != size.gens*size.width ||
			waiting != (size.gens-1)*size.width {
			t.Errorf("%d shards, %d wait", len(w.s.Shards), waiting)
		}
	}
}

// Whoever claims the log next does not know what the rest of the listing was: it begins again with
// its own.
func TestTornStartBeginsAgain(t *testing.T) {
	l := new(memLog)
	w, err := claim(t, l, NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	parts := SplitStart(&Start{Stream: "arn", Date: 1000, Shards: seen("a", "b<a", "c", "d")}, 60)
	if len(parts) != 4 {
		t.Fatalf("%d parts", len(parts))
	}
	w.must(t, parts[0], &Beat{Date: 1001}, parts[1])
	if err := w.snapshot(t, 100); err != nil {
		t.Fatal(err)
	}
	w.must(t, parts[2])
	for what, body := range map[string]*Start{
		"the same again": parts[2], "none before": {Stream: "arn", Date: 1000, Part: 4, Parts: 4},
		"another date":   {Stream: "arn", Date: 1001, Part: 3, Parts: 4, Shards: seen("d")},
		"another stream": {Stream: "other", Date: 1000, Part: 3, Parts: 4, Shards: seen("d")},
		"of none":        {Stream: "arn", Date: 1000, Part: -1, Parts: 4},
	} {
		if err := w.s.CheckNext(body); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	restored := l.restored(t)
	sameState(t, "restored", w.s, restored)
	if restored.Starting == nil || len(restored.Starting.Shards) != 3 || restored.LiveStream() != nil {
		t.Errorf("%+v", restored.Starting)
	}
	next, err := claim(t, l, restored, "b", 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.s.CheckNext(parts[3]); !errors.As(err, new(*CorruptError)) {
		t.Errorf("the last part by the next owner: %v", err)
	}
	again := SplitStart(&Start{Stream: "arn", Date: 2000, Shards: seen("x", "y", "z")}, 60)
	next.must(t, again[0], again[1])
	next.must(t, again[0], again[1], again[2]) // its own listing failed in between
	if d := cmp.Diff("x:open y:open z:open", phases(next.s)); d != "" || next.s.LiveStream().Date != 2000 {
		t.Error(d)
	}
	sameState(t, "folded", l.fold(t), l.restored(t))
}

// A listing of a day's shards at every rotation would be megabytes; what it says is one shard.
func TestListingHoldsOnlyWhatIsNew(t *testing.T) {
	w := owned(t, generations(4, 100)...)
	all := generations(4, 100)
	full := &Graph{Stream: "arn", Date: w.s.Date + 1000, Complete: true, Shards: all}
	if parts := DiffListing(w.s, full, ListingPartBytes); len(parts) != 0 {
		t.Fatalf("a listing that says nothing new is worth %d entries", len(parts))
	}
	child := ShardSeen{ID: "child", Parent: all[399].ID}
	full.Shards = append(slices.Clone(all), child)
	parts := DiffListing(w.s, full, ListingPartBytes)
	if len(parts) != 1 || !parts[0].Complete || len(parts[0].Shards) != 1 || parts[0].Shards[0] != child {
		t.Fatalf("%d entries: %+v", len(parts), parts)
	}
	w.must(t, parts[0])
	if p := w.s.Shards[child.Parent]; !p.Phase.Closed() || w.s.Listed != full.Date {
		t.Errorf("parent %+v", p)
	}
	if parts := DiffListing(w.s, full, ListingPartBytes); len(parts) != 0 {
		t.Errorf("the same listing again is worth %d entries", len(parts))
	}
}

// A look for children shows a part of the shards: it shows that one is closed, and nothing about
// those that it leaves out.
func TestPartialListingTellsNothingOfTheOthers(t *testing.T) {
	w := owned(t, seen("a", "b<a", "c")...)
	w.end(t, "a")
	part := &Graph{Stream: "arn", Date: w.s.Date + 1000, Shards: []ShardSeen{{ID: "b", Parent: "a", Closed: true}}}
	entries := DiffListing(w.s, part, ListingPartBytes)
	for _, e := range entries {
		w.must(t, e)
	}
	if a, b := w.s.Shards["a"], w.s.Shards["b"]; len(entries) != 1 || entries[0].Complete || !b.Phase.Closed() ||
		a.AbsentSince != 0 {
		t.Errorf("%d entries, a %+v, b %+v", len(entries), a, b)
	}
	if again := DiffListing(w.s, part, ListingPartBytes); len(again) != 0 {
		t.Errorf("the same again is worth %d entries", len(again))
	}
}

// Killed between two entries of a listing, the log must not say that it knows all that was listed.
func TestListingIsCompleteWithItsLastEntry(t *testing.T) {
	w := owned(t, seen("a")...)
	before := w.s.Listed
	g := &Graph{Stream: "arn", Date: w.s.Date + 1000, Complete: true, Disabled: true,
		Shards: seen("a", "b<a", "c<a", "d<b")}
	entries := DiffListing(w.s, g, 60)
	if len(entries) < 3 {
		t.Fatalf("%d entries", len(entries))
	}
	for i, e := range entries {
		if w.s.Listed != before || w.s.LiveStream().Disabled {
			t.Errorf("complete before entry %d of %d", i, len(entries))
		}
		w.must(t, e)
	}
	if w.s.Listed != g.Date || !w.s.LiveStream().Disabled {
		t.Errorf("listed at %d, stream %+v", w.s.Listed, w.s.LiveStream())
	}
}

// A listing may show a child, and only the next one its parent, as if that were open.
func TestParentThatIsListedAfterItsChildIsClosed(t *testing.T) {
	w := owned(t, seen("b<a")...)
	for _, part := range DiffListing(w.s, &Graph{Stream: "arn", Date: w.s.Date + 1000, Shards: seen("b<a", "a")},
		ListingPartBytes) {
		w.must(t, part)
	}
	if a := w.s.Shards["a"]; !a.Phase.Closed() || !w.s.Readable(a) || w.s.Shards["b"].Phase != PhaseWaiting {
		t.Errorf("parent %+v, child %s", a, w.s.Shards["b"])
	}
}

// Shards that vanish from listings are marked by name, and forgotten later as if the listings
// themselves were stored.
func TestVanishedShardsAreForgottenFromDeltas(t *testing.T) {
	w := owned(t, seen("a", "b<a", "c<b")...)
	w.end(t, "a")
	w.end(t, "b")
	date := w.s.Date + hour
	list := func(at change.Millis, lineage ...string) int {
		parts := DiffListing(w.s, &Graph{Stream: "arn", Date: at, Complete: true, Shards: seen(lineage...)}, 40)
		for _, p := range parts {
			w.must(t, p)
		}
		return len(parts)
	}
	if n := list(date, "c<b"); n != 1 || w.s.Shards["a"].AbsentSince != date || w.s.Shards["b"].AbsentSince != date {
		t.Errorf("%d entries, a %+v", n, w.s.Shards["a"])
	}
	list(date+hour, "b<a", "c<b") // an inconsistent listing shows it again
	if w.s.Shards["b"].AbsentSince != 0 {
		t.Errorf("b %+v", w.s.Shards["b"])
	}
	list(date+2*hour, "c<b")
	if n := list(date+47*hour, "c<b"); n != 0 {
		t.Errorf("%d entries before anything is forgotten", n)
	}
	list(date+48*hour, "c<b")
	if w.s.Shards["a"] != nil || w.s.Shards["b"] == nil {
		t.Errorf("after 48 hours: %s", phases(w.s))
	}
	list(date+50*hour, "c<b")
	if d := cmp.Diff("c:open", phases(w.s)); d != "" {
		t.Error(d)
	}
}

// rotated is the state of a table with 10,000 open shards after 72 hours of rotations, each of
// which lives four hours: 180,000 shards, all but the newest read to their end.
func rotated(b *testing.B) (w *writer, open []ShardSeen) {
	b.Helper()
	const gens, width = 18, 10_000
	w, err := claim(b, new(memLog), NewState(), "a", 1)
	if err != nil {
		b.Fatal(err)
	}
	all := generations(gens, width)
	for _, part := range SplitStart(&Start{Stream: "arn", Date: 1_790_000_000_000, Shards: all}, ListingPartBytes) {
		w.must(b, part)
	}
	for _, x := range all[:(gens-1)*width] {
		w.s.applyEntry(w.s.Seq, &Entry{Body: frame(page(w.s, x.ID, 1, true))})
	}
	w.s.TakeReadabilityChanges()
	return w, all[(gens-1)*width:]
}

// BenchmarkShardEnd is what the write loop does at the end of one of 180,000 shards and for its
// child: fold the two entries, and ask what it asks after each. Goal: 20 µs.
func BenchmarkShardEnd(b *testing.B) {
	w, parents := rotated(b)
	s := w.s
	ask := func() int64 {
		open, closed, waiting, done := s.ShardCounts()
		n := int64(s.ReadWatermark()) + int64(s.HighestVersion()) + int64(s.AppliedWatermark())
		n += int64(s.LowMark()) + int64(open+closed+waiting+done)
		if s.Drained("arn") || s.AwaitsChildren() {
			n++
		}
		return n + int64(len(s.MissingParents())+len(s.GappedShards())+len(s.TakeReadabilityChanges()))
	}
	i := 0
	for b.Loop() {
		end := parents[i%len(parents)]
		child := ShardSeen{ID: fmt.Sprint("shardId-child-", i), Parent: end.ID}
		f := frame(page(s, end.ID, 1, true))
		if err := s.CheckNext(f); err != nil {
			b.Fatal(err)
		}
		s.applyEntry(s.Seq, &Entry{Body: f})
		ask()
		for _, g := range DiffListing(s, &Graph{Stream: "arn", Date: s.Date, Shards: []ShardSeen{child}}, ListingPartBytes) {
			if err := s.CheckNext(g); err != nil {
				b.Fatal(err)
			}
			s.applyEntry(s.Seq, &Entry{Body: g})
		}
		ask()
		parents[i%len(parents)] = child
		i++
	}
	b.ReportMetric(float64(len(s.Shards)), "shards")
}

// BenchmarkWatermark is a page of one of 180,000 shards, and the question up to when all of them
// are read. Goal: 1 ms.
func BenchmarkWatermark(b *testing.B) {
	w, open := rotated(b)
	s := w.s
	i, sum := 0, change.Millis(0)
	for b.Loop() {
		s.applyEntry(s.Seq, &Entry{Body: frame(page(s, open[i%len(open)].ID, 1, false))})
		sum += s.ReadWatermark() + s.AppliedWatermark()
		i++
	}
	if sum == 0 {
		b.Error("nothing is read")
	}
}

// BenchmarkRestore reads a snapshot of 180,000 shards back. Goal: 2 s.
func BenchmarkRestore(b *testing.B) {
	w, _ := rotated(b)
	parts, err := w.s.Snapshot(1 << 20)
	if err != nil {
		b.Fatal(err)
	}
	first, before, size := w.s.Seq+1, len(w.l.msgs), 0
	if err := w.appendParts(b, parts); err != nil {
		b.Fatal(err)
	}
	for _, p := range parts {
		size += len(p.Data)
	}
	for b.Loop() {
		if _, err := Restore(first, w.l.msgs[before:]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
}

// BenchmarkBeatOfManyShards is a beat of 10,000 open shards among 180,000, as it comes every few
// seconds.
func BenchmarkBeatOfManyShards(b *testing.B) {
	w, _ := rotated(b)
	s := w.s
	beat := &Beat{Date: s.Date, Listed: s.Date, Watermark: s.Date}
	for b.Loop() {
		beat.Date, beat.Listed, beat.Watermark = beat.Date+5000, beat.Listed+5000, beat.Watermark+5000
		s.applyEntry(s.Seq, &Entry{Body: beat})
	}
}
