package checkpoint

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// answers are what the index answers without a scan of all shards.
type answers struct {
	Through                  change.Millis
	Top                      change.Version
	Open, Closed, Wait, Done int
	Missing, Gapped, Unread  []string
	Readable                 []string
	Barren                   bool
	Drained                  map[string]bool
	Children                 map[string][]string
}

func indexed(s *State) (a answers) {
	a.Through, a.Top, a.Missing, a.Gapped, a.Barren = s.ReadWatermark(), s.HighestVersion(), s.MissingParents(),
		s.GappedShards(), s.AwaitsChildren()
	a.Unread = s.UnreadOpenShards()
	a.Open, a.Closed, a.Wait, a.Done = s.ShardCounts()
	a.Drained, a.Children = map[string]bool{}, map[string][]string{}
	for _, st := range s.Streams {
		a.Drained[st.ARN] = s.Drained(st.ARN)
	}
	for parent, all := range s.index.children {
		for _, sh := range all {
			a.Children[parent] = append(a.Children[parent], sh.ID)
		}
		slices.Sort(a.Children[parent])
	}
	for _, sh := range s.Shards {
		if sh.inIndex.roles[roleReadable] {
			a.Readable = append(a.Readable, sh.ID)
		}
	}
	slices.Sort(a.Readable)
	return a
}

// rescanned gives the same answers by a look at every shard.
func rescanned(s *State) (a answers) {
	a.Top, a.Through = s.DroppedVersion, watermarkOf(s)
	a.Drained, a.Children = map[string]bool{}, map[string][]string{}
	live := s.LiveStream()
	for _, sh := range s.Shards {
		a.Top = max(a.Top, sh.Clock)
		switch {
		case sh.Phase.Finished():
			a.Done++
		case sh.Phase.Waiting():
			a.Wait++
		case sh.Phase.Closed():
			a.Closed++
		default:
			a.Open++
		}
		if sh.Phase.Waiting() && s.Shards[sh.Parent] == nil {
			a.Missing = append(a.Missing, sh.Parent)
		}
		if sh.Loss.Pending && live != nil && sh.Stream == live.ARN {
			a.Gapped = append(a.Gapped, sh.ID)
		}
		notRead := sh.Phase.Finished() && sh.SeenOpen || !sh.Phase.Closed() && sh.Loss.Pending
		if notRead && live != nil && sh.Stream == live.ARN {
			a.Unread = append(a.Unread, sh.ID)
		}
		if s.Readable(sh) {
			a.Readable = append(a.Readable, sh.ID)
		}
		if sh.Parent != "" {
			a.Children[sh.Parent] = append(a.Children[sh.Parent], sh.ID)
		}
	}
	for _, sh := range s.Shards {
		ended := live != nil && sh.Stream == live.ARN && sh.Phase.Finished() && sh.AbsentSince == 0
		a.Barren = a.Barren || ended && !live.Disabled && len(a.Children[sh.ID]) == 0
	}
	for _, st := range s.Streams {
		a.Drained[st.ARN] = st.Disabled
		for _, sh := range s.Shards {
			if sh.Stream == st.ARN && !sh.Phase.Finished() {
				a.Drained[st.ARN] = false
			}
		}
	}
	for _, all := range a.Children {
		slices.Sort(all)
	}
	slices.Sort(a.Gapped)
	slices.Sort(a.Unread)
	slices.Sort(a.Readable)
	slices.Sort(a.Missing)
	a.Missing = slices.Compact(a.Missing)
	return a
}

// watermarkOf is ReadWatermark as it is defined: the least of what each shard lets be said.
func watermarkOf(s *State) change.Millis {
	live := s.LiveStream()
	if live == nil {
		return 0
	}
	parents := map[string]bool{}
	for _, sh := range s.Shards {
		parents[sh.Parent] = true
	}
	low, last, any := change.Millis(0), change.Millis(0), false
	for _, sh := range s.Shards {
		t := sh.Watermark
		switch {
		case sh.Phase.Waiting():
			if p := s.Shards[sh.Parent]; p != nil && p.Phase.Waiting() {
				continue
			} else if p != nil {
				t = max(t, p.LastAlive)
			}
		case sh.Phase.Finished():
			if last = max(last, sh.LastAlive); sh.SeenOpen {
				break
			}
			if sh.Phase == PhaseEarly || live.Disabled || sh.Stream != live.ARN ||
				s.Listed >= sh.FinishedAt+childListingDelay || parents[sh.ID] {
				continue
			}
			t = sh.LastAlive
		}
		if !any || t < low {
			low, any = t, true
		}
	}
	if !any {
		return last
	}
	return low
}

// checkIndex compares the answers of the state with those of a scan of all shards.
func checkIndex(t testing.TB, s *State) {
	t.Helper()
	if want, got := rescanned(s), indexed(s); !reflect.DeepEqual(want, got) {
		t.Fatalf("entry %d: scan (-), index (+): %s\n%s", s.Seq, cmp.Diff(want, got), stateJSON(s))
	}
	for _, h := range []*shardHeap{&s.index.open, &s.index.others} {
		for i, b := range h.all {
			x := b.sh.inIndex
			if i > 0 && h.all[(i-1)/2].key > b.key || x.at != i || x.heap != h || s.Shards[b.sh.ID] != b.sh {
				t.Fatalf("entry %d: heap is out of order at %d: %s", s.Seq, i, b.sh)
			}
		}
	}
}

// follower keeps the readable shards up to date by TakeReadabilityChanges, as the write loop does.
type follower map[string]*Shard

func (f follower) follow(t testing.TB, s *State) {
	t.Helper()
	for _, sh := range s.TakeReadabilityChanges() {
		if s.Shards[sh.ID] == sh && s.Readable(sh) {
			f[sh.ID] = sh
		} else {
			delete(f, sh.ID)
		}
	}
	if want, got := rescanned(s).Readable, slices.Sorted(maps.Keys(f)); !slices.Equal(want, got) {
		t.Fatalf("entry %d: readable (-), followed (+): %s", s.Seq, cmp.Diff(want, got))
	}
}

// TestIndexTellsWhatARescanTells: histories with splits, late listings, gaps, disabled streams,
// forgotten shards.
func TestIndexTellsWhatARescanTells(t *testing.T) {
	for seed := uint64(100); seed < 100+*simSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w, l := newWorld(seed), &memLog{}
			ps := []*process{{T: t, w: w, l: l, name: 'a'}, {T: t, w: w, l: l, name: 'b'}}
			for range 400 {
				step(w, l, ps)
			}
			s, f := NewState(), follower{}
			for i, m := range l.msgs {
				if _, err := s.Apply(uint64(i+1), m); err != nil {
					t.Fatal(err)
				}
				checkIndex(t, s)
				if w.IntN(3) == 0 {
					f.follow(t, s)
				}
			}
			f.follow(t, s)
			restored := l.restored(t)
			checkIndex(t, restored)
			follower{}.follow(t, restored)
		})
	}
}

// The shards of a world come in families of one or two children. This test draws any family, any
// order of listings, and time that passes for none of them.
func TestIndexOfAnyFamily(t *testing.T) {
	for seed := range 10 * *simSeeds {
		r := rand.New(rand.NewPCG(seed, 3))
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		date := change.Millis(1_000_000)
		w.must(t, &Start{Stream: "arn", Date: date})
		name := func(i int) string { return fmt.Sprint("s", i) }
		f := follower{}
		for range 60 {
			date += change.Millis(r.Int64N(50_000))
			s := w.s
			var body any
			switch r.IntN(8) {
			case 0, 1, 2:
				g := &Graph{Stream: "arn", Date: date, Complete: r.IntN(3) > 0, Disabled: r.IntN(60) == 0}
				for range r.IntN(6) {
					i := 1 + r.IntN(12)
					x := ShardSeen{ID: name(i), Parent: name(i / 3), Closed: r.IntN(3) == 0}
					if i == 2 {
						x.Parent = ""
					}
					g.Shards = append(g.Shards, x)
				}
				if r.IntN(4) == 0 {
					g.Gone = append(g.Gone, name(r.IntN(12)))
				}
				for _, part := range DiffListing(s, g, 100) {
					w.must(t, part)
				}
			case 3:
				body = &Beat{Date: date, Listed: date - change.Millis(r.Int64N(200_000)),
					Watermark: date - change.Millis(r.Int64N(100_000))}
			case 4:
				date += change.Millis(r.Int64N(60 * 3600 * 1000))
			case 5:
				body = &Control{Resume: true}
			default:
				readable := rescanned(s).Readable
				if len(readable) == 0 {
					continue
				}
				id := readable[r.IntN(len(readable))]
				body = frame(page(s, id, r.IntN(3), r.IntN(2) == 0))
				if r.IntN(4) == 0 {
					body = &Gap{Feed: change.Feed{Stream: "arn", Shard: id}, Found: date, Ends: r.IntN(2) == 0,
						Accepted: r.IntN(3) == 0}
				}
			}
			if body != nil {
				w.must(t, body)
			}
			checkIndex(t, w.s)
			if r.IntN(3) == 0 {
				f.follow(t, w.s)
			}
			if r.IntN(10) == 0 {
				w.s.Reindex()
				checkIndex(t, w.s)
			}
		}
	}
}
