package checkpoint

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

var (
	simSeeds = flag.Uint64("sim.seeds", 8, "histories to simulate; at most 5 with -short")
	simSeed  = flag.Uint64("sim.seed", 0, "simulate only this history")
)

// TestHistories simulates several instances that read a restless table into one log: they claim it
// from each other, die, go on with an old view, lose the log's tail, meet foreign messages, sleep
// for days. Whatever happens, the log must add up (Rules 1 to 5 and 8).
func TestHistories(t *testing.T) {
	if *simSeed != 0 {
		simulate(t, *simSeed)
		return
	}
	seeds := *simSeeds
	if testing.Short() {
		seeds = min(seeds, 5)
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulate(t, seed) })
	}
}

// simulate runs one history. In every second one the processes are of a build that is newer than
// the one that has begun the log; in every fourth nobody raises the log.
func simulate(t *testing.T, seed uint64) {
	l := &memLog{calm: seed%3 == 0, kept: seed%4 == 1}
	if seed%2 == 1 {
		newer(t)
		l.format = newestFormat
	}
	w, ps := history(t, seed, l)
	drain(t, w, l, ps[0])
	inspect(t, w, l)
	account(t, w, l)
	finishCopies(t, w, l, ps[0])
	inspect(t, w, l)
	equal(t, w, l, ps[0])
	restoreEverywhere(t, l)
	refusedByOlder(t, l)
	if l.kept || seed%2 == 0 {
		readableByOlder(t, l.msgs)
	}
}

// history lets things happen to a new table and its log.
func history(t *testing.T, seed uint64, l *memLog) (w *world, ps []*process) {
	w = newWorld(seed)
	for _, name := range []byte("abc") {
		ps = append(ps, &process{T: t, w: w, l: l, name: name})
	}
	for range 400 {
		step(w, l, ps)
		if w.IntN(20) == 0 {
			inspect(t, w, l)
		}
	}
	return w, ps
}

// step lets one thing happen.
func step(w *world, l *memLog, ps []*process) {
	w.now += change.Millis(w.Int64N(1500))
	switch x := w.IntN(100); {
	case x < 25:
		w.commit()
	case x < 28:
		w.split()
	case l.calm && x != 35: // nothing is lost, so what the copy missed is not made good by a resync
		act(w, ps[w.IntN(len(ps))])
	case x == 28:
		w.now += change.Millis(w.Int64N(4 * 3600 * 1000))
	case x == 29 && w.IntN(4) == 0:
		w.now += change.Millis(w.Int64N(80 * 3600 * 1000)) // a long weekend
	case x == 30 && w.IntN(4) == 0 && !w.live().disabled:
		w.disable()
		w.now += change.Millis(w.Int64N(5000))
	case x == 31 && w.live().disabled:
		w.enable()
	case x == 32:
		ps[0].resume()
	case x == 35:
		ps[0].order()
	case x == 36 && w.IntN(6) == 0:
		w.recover(ps[0].T, l, w.IntN(2) == 0)
	case x == 37 || x == 38:
		ps[0].fence()
	case x == 33:
		l.msgs = append(l.msgs, stray(w, l))
	case x == 34 && w.IntN(4) == 0 && len(l.msgs) > 4:
		l.msgs = l.msgs[:len(l.msgs)-1-w.IntN(4)] // the store lost its tail
	default:
		act(w, ps[w.IntN(len(ps))])
	}
}

// act lets one process do a step on its own, perhaps outdated, state.
func act(w *world, p *process) {
	if p.wr == nil {
		if s := p.l.restored(p); s.Epoch == 0 || s.Released || w.IntN(12) == 0 {
			p.claim()
		}
		return
	}
	switch x := w.IntN(100); {
	case x < 12:
		p.list(w.IntN(3) > 0)
	case x < 40:
		p.read()
	case x < 54:
		p.frame()
	case x < 60:
		p.beat()
	case x < 65:
		p.mark()
	case x < 68:
		p.took(p.wr.snapshot(p, 1+w.IntN(400)))
	case x == 95:
		p.release()
	case x == 96 && !p.l.kept:
		p.took(p.wr.upgrade(p, 1+w.IntN(400)))
	case x == 97:
		p.halt()
	case x == 98:
		p.wr = nil // it dies
		p.forget()
	default:
		p.besides()
	}
}

// besides is what an owner does beside the stream.
func (p *process) besides() {
	switch x := p.w.IntN(10); {
	case x < 4:
		p.copy()
	case x == 4:
		p.markCopy()
	case x < 8:
		p.resync()
	default:
		p.catchUp()
	}
}

// stray is a message that no correct writer sends: noise, an old entry again, half an entry, a
// forged one.
func stray(w *world, l *memLog) []byte {
	old := l.msgs[max(0, len(l.msgs)-1-w.IntN(5)):]
	switch {
	case len(old) == 0 || w.IntN(3) == 0:
		return []byte("hello")
	case w.IntN(2) == 0:
		return old[0][:w.IntN(len(old[0])+1)]
	}
	return old[0]
}

// inspect holds the log as it is now to the rules.
func inspect(t *testing.T, w *world, l *memLog) {
	t.Helper()
	s := l.fold(t)
	for _, sh := range s.Shards {
		if sh.Phase.Waiting() {
			continue
		}
		// Rule 3: whatever was read, or may be, has a parent that is finished, and so on up to the
		// root.
		for at := sh; ; {
			p := s.Shards[at.Parent]
			if p == nil || sh.Phase == PhaseEarly {
				break
			}
			if !p.Phase.Finished() {
				t.Fatalf("shard %s, while its forebear %s is %s", sh, p, p.Phase)
			}
			at = p
		}
	}
	stored := recordsOf(t, l, l.last())
	known := knownTo(l)
	// A shard that split since the newest listing may go on answering with empty pages, and a
	// listing may leave its children out for some seconds.
	listed := s.Listed - 6000
	claimed(t, w, s, "read", min(s.ReadWatermark(), listed), known, stored)
	if m := s.Marks[SinkBigtable]; m.Seq > 0 {
		claimed(t, w, s, "applied", min(s.AppliedWatermark(), listed), known, recordsOf(t, l, m.Seq))
		holds(t, w, s, min(s.AppliedWatermark(), listed))
	}
}

// claimed checks what the state says about itself: everything that was created up to through is
// there, or in a gap (Rules 1 and 10).
func claimed(t *testing.T, w *world, s *State, what string, through change.Millis, known map[string]bool,
	stored map[int]uint64) {
	t.Helper()
	for _, sh := range w.shards {
		for _, r := range sh.recs {
			if _, ok := stored[r.N]; !ok && r.Created <= through && !excused(w, s, known, sh, r) &&
				sh.stream == s.LiveStream().ARN {
				t.Fatalf("%s through %d, but record %d of %s, created at %d, is not\n%s", what, through, r.N, sh.id, r.Created,
					stateJSON(s))
			}
		}
	}
}

// excused says whether a record need not be in the log: it is older than the start, or was trimmed
// before it, or a gap covers it: one of its shard, of the whole table, or any if the log never
// heard of its shard.
func excused(w *world, s *State, known map[string]bool, sh *worldShard, r worldRec) bool {
	if len(s.Streams) == 0 {
		return true
	}
	first := s.Streams[0]
	if r.Created < first.At || sh.stream < first.ARN || sh.stream == first.ARN && r.Created < first.Date &&
		r.Created < w.now-retention {
		return true
	}
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return g.Since <= r.Created && r.Created <= g.Until && (g.Feed.Shard == sh.id || g.Feed.Shard == "" || !known[sh.id])
	})
}

// knownTo returns the shards that the log lists.
func knownTo(l *memLog) map[string]bool {
	known, s := map[string]bool{}, NewState()
	for i, m := range l.msgs {
		if e, _ := s.Apply(uint64(i+1), m); e == nil {
			continue
		}
		for id := range s.Shards {
			known[id] = true
		}
	}
	return known
}

// recordsOf returns the records that the log's entries hold up to a sequence, and checks Rule 5: no
// record twice, each item's changes in order, with versions that grow.
func recordsOf(t *testing.T, l *memLog, upTo uint64) map[int]uint64 {
	t.Helper()
	s := NewState()
	at, newest, version := map[int]uint64{}, map[int]int{}, map[int]change.Version{}
	for i, m := range l.msgs {
		e, err := s.Apply(uint64(i+1), m)
		if err != nil {
			t.Fatal(err)
		}
		if e == nil || e.Kind != KindFrame || s.Seq > upTo {
			continue
		}
		recs := recsOf(t, e)
		for _, pg := range e.Body.(*Frame).Pages {
			inLife(t, s.LifeOf(pg.Feed.Stream), l.floor, recs[:pg.Records])
			recs = recs[pg.Records:]
		}
		for _, r := range recsOf(t, e) {
			if was, ok := at[r.N]; ok {
				t.Fatalf("record %d of %s stands in entry %d and in %d", r.N, r.Shard, was, s.Seq)
			}
			if at[r.N] = s.Seq; r.N < newest[r.Item] || r.Version <= version[r.Item] {
				t.Fatalf("entry %d: item %d goes from record %d, version %d, to %d, %d", s.Seq, r.Item, newest[r.Item],
					version[r.Item], r.N, r.Version)
			}
			newest[r.Item], version[r.Item] = r.N, r.Version
		}
	}
	return at
}

// inLife checks Rule 5 behind a lost log: what is older than the life is not applied, and nothing
// of the life left out. Between the floor and the start may lie hours, in which no life read
// anything.
func inLife(t *testing.T, life change.Life, floor change.Version, recs []simRec) {
	t.Helper()
	for _, r := range recs {
		if life.Applies(r.Version) && r.Version <= floor {
			t.Fatalf("record %d of %s has version %d, and the life's floor is %d", r.N, r.Shard, r.Version, floor)
		}
		old, young := change.Version(r.Created) <= life.Floor && r.Created < life.After, r.Created >= life.After
		if life.After > 0 && (old && life.Applies(r.Version) || young && !life.Applies(r.Version)) {
			t.Fatalf("record %d of %s, created %d after the life began, has version floor + %d", r.N, r.Shard,
				r.Created-life.After, r.Version-life.Floor)
		}
	}
}

// drain lets the last process read everything that there is.
func drain(t *testing.T, w *world, l *memLog, p *process) {
	if s := l.fold(t); s.Fence != nil {
		(&writer{l: l, s: s}).must(t, &Control{Fence: &FenceOrder{ID: s.Fence.ID, Undo: true}})
	}
	p.claim()
	for quiet := 0; quiet < 30; quiet++ {
		w.now += 7000
		before := recordsOf(t, l, l.last())
		if p.wr == nil || p.wr.s.OpenGaps() > 0 {
			p.resume()
			p.claim()
		}
		p.list(true)
		for range 60 {
			if p.wr == nil {
				break
			}
			w.now += 7 // which shard is next depends on it
			p.read()
			if len(p.pages) > 0 {
				p.frame()
				quiet = 0
			}
		}
		if len(recordsOf(t, l, l.last())) > len(before) {
			quiet = 0
		}
	}
	p.beat()
}

// account holds the log against the world: what is in neither the log nor a gap was lost in silence
// (Rule 8).
func account(t *testing.T, w *world, l *memLog) {
	t.Helper()
	s, stored, known := l.fold(t), recordsOf(t, l, l.last()), knownTo(l)
	for _, sh := range w.shards {
		for _, r := range sh.recs {
			if _, ok := stored[r.N]; !ok && !excused(w, s, known, sh, r) {
				t.Fatalf("record %d of %s, created at %d, is neither in the log nor in a gap\nshard %+v\ngaps %+v", r.N, sh.id,
					r.Created, s.Shards[sh.id], s.Gaps)
			}
		}
	}
	for _, sh := range s.Shards {
		if live := s.LiveStream(); sh.Phase.Waiting() && sh.Stream == live.ARN {
			t.Fatalf("%s waits for ever", sh)
		}
	}
}

// restoreEverywhere checks that every snapshot and what follows it add up to the same state, at
// every cut, and that no entry drops what a table still needs.
func restoreEverywhere(t *testing.T, l *memLog) {
	t.Helper()
	full := NewState()
	var restored []*State
	for i, m := range l.msgs {
		before := needsOf(full)
		e, err := full.Apply(uint64(i+1), m)
		if err != nil {
			t.Fatal(err)
		}
		before.keptBy(t, full, e)
		for _, s := range restored {
			if _, err := s.Apply(uint64(i+1), m); err != nil {
				t.Fatal(err)
			}
		}
		if full.SnapshotLast == uint64(i+1) {
			first := int(full.SnapshotFirst)
			s, err := Restore(uint64(first), l.msgs[first-1:i+1])
			if err != nil {
				t.Fatalf("snapshot at %d: %v", first, err)
			}
			for j := first; j <= i+1; j++ {
				if _, err := s.Apply(uint64(j), l.msgs[j-1]); err != nil {
					t.Fatal(err)
				}
			}
			restored = append(restored, s)
		}
		for _, s := range restored {
			sameState(t, fmt.Sprintf("entry %d", i+1), full, s)
			if s.TopClock() != full.TopClock() {
				t.Fatalf("entry %d: highest version %d, restored %d", i+1, full.TopClock(), s.TopClock())
			}
		}
	}
}
