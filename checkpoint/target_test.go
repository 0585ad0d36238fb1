package checkpoint

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// target is Bigtable as far as copies and resyncs can tell: a row per item, written only at a
// higher version.
type target struct {
	rows   [items]row
	issued change.Version // highest version that any process ever gave to a record
}

// row is what a reader sees of an item: its commit, which may be a delete, and the version of the
// guard.
type row struct {
	n       int
	version change.Version
}

// put writes what a commit left of an item, unless the row's version is as high. Whoever reads the
// row all the time never sees it go back.
func (b *target) put(t testing.TB, what string, item, n int, v change.Version) {
	t.Helper()
	r := &b.rows[item]
	if v <= r.version {
		return
	}
	if n < r.n {
		t.Fatalf("%s takes the row of item %d from commit %d, version %d, back to %d, %d", what, item, r.n, r.version, n, v)
	}
	*r = row{n, v}
}

// worldCommit is one change of an item, with or without a record of it.
type worldCommit struct {
	n    int
	at   change.Millis
	gone bool // the item was deleted
}

// resync makes the row of an item true as of a commit. A row that is not there and should not be
// gets no guard.
func (w *world) resync(t testing.TB, item, n int, v change.Version) {
	t.Helper()
	if w.target.rows[item].version == 0 && w.deleted(item, n) {
		return
	}
	w.target.put(t, "the resync", item, n, v)
}

// equal says whether the row of an item is as a commit left it.
func (w *world) equal(item, n int) bool {
	r := w.target.rows[item]
	return r.n == n || r.version == 0 && w.deleted(item, n)
}

// deleted says whether a commit of an item is its deletion.
func (w *world) deleted(item, n int) bool {
	for _, h := range w.history[item] {
		if h.n == n {
			return h.gone
		}
	}
	return false
}

// newest returns the newest commit of an item.
func (w *world) newest(item int) worldCommit { return w.history[item][len(w.history[item])-1] }

// newestUntil returns the newest commit of an item whose record is not younger than a time.
func (w *world) newestUntil(item int, through change.Millis) (c worldCommit) {
	for _, h := range w.history[item] {
		if h.at-h.at%1000 <= through {
			c = h
		}
	}
	return c
}

// apply lets a process's sink write what the log's frames hold up to an entry, and no record from
// before its life.
func (p *process) apply(upTo uint64) {
	p.Helper()
	s := NewState()
	for i, m := range p.l.msgs {
		e, err := s.Apply(uint64(i+1), m)
		if err != nil {
			p.Fatal(err)
		}
		if e == nil || e.Kind != KindFrame || s.Seq <= p.applied || s.Seq > upTo {
			continue
		}
		rest := recsOf(p, e)
		for _, pg := range e.Body.(*Frame).Pages {
			life := s.LifeOf(pg.Feed.Stream)
			for _, r := range rest[:pg.Records] {
				if life.Applies(r.Version) {
					p.w.target.put(p, "the stream", r.Item, r.N, r.Version)
				}
			}
			rest = rest[pg.Records:]
		}
	}
}

// whole says whether the state calls Bigtable complete: then nothing that it claims to have applied
// may be missing.
func whole(s *State) bool {
	for i := range s.Gaps {
		if len(s.Gaps[i].Waived) > 0 {
			return false // somebody knows better
		}
	}
	return s.LiveStream() != nil && s.DiffersSince() == 0 && s.OpenGaps() == 0 && s.Resync == nil && !s.CopyPending() &&
		s.CopyRunning() == nil
}

// holds checks that Bigtable holds what the state claims: of every item the newest change up to a
// time, or a later one. The time is one of the stream that the log reads.
func holds(t *testing.T, w *world, s *State, through change.Millis) {
	t.Helper()
	if !whole(s) {
		return
	}
	for _, st := range w.streams {
		if st.arn == s.LiveStream().ARN && st.disabled {
			through = min(through, st.ended-1000) // later changes are in no stream, or in one that the log does not know yet
		}
	}
	for item := range items {
		c := w.newestUntil(item, through)
		if s.Backfill == "" && s.LastResync == nil && s.Life == 0 && c.at < s.Streams[0].Date {
			continue // older than a stream without a backfill
		}
		if row := w.target.rows[item]; row.n < c.n && (!c.gone || row.n != 0) {
			t.Fatalf("complete through %d, but the row of item %d has commit %d, version %d, and not %d of %d\n%s", through,
				item, row.n, row.version, c.n, c.at, stateJSON(s))
		}
	}
}
