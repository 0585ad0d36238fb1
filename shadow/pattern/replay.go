package pattern

import "maps"

// Replay counts what became of the reads of one pattern that were to be replayed: the reads are
// Replayed and the sum of Skipped. A read of which an item differed at first waits until that item is
// settled, and is counted as replayed.
type Replay struct {
	Replayed  int64            `json:"replayed"`
	Skipped   map[Reason]int64 `json:"skipped,omitempty"`
	Differed  int64            `json:"differed,omitempty"` // items that the first look did not find equal
	Equal     int64            `json:"equal,omitempty"`    // of them: they were equal when they were settled
	Undecided map[Reason]int64 `json:"undecided,omitempty"`
	// Mismatches are items, by what differs. The rest of Differed waits.
	Mismatches map[string]int64 `json:"mismatches,omitempty"`
	Rows       Histogram        `json:"rows"`   // that one read returned
	Micros     Histogram        `json:"micros"` // of one read in Bigtable
}

// Wrong returns how many items are mismatches.
func (r *Replay) Wrong() (n int64) {
	for _, k := range r.Mismatches {
		n += k
	}
	return n
}

// Waiting returns how many items are not settled yet.
func (r *Replay) Waiting() int64 { return r.Differed - r.Equal - r.Wrong() - sum(r.Undecided) }

// Left returns how many reads were skipped.
func (r *Replay) Left() int64 { return sum(r.Skipped) }

func sum(m map[Reason]int64) (n int64) {
	for _, k := range m {
		n += k
	}
	return n
}

// Skip counts reads that are not replayed.
func (r *Replay) Skip(why Reason, n int64) { r.Skipped = with(r.Skipped, why, n) }

// Leave counts items about which nothing was decided.
func (r *Replay) Leave(why Reason, n int64) { r.Undecided = with(r.Undecided, why, n) }

// Wrongly counts mismatches.
func (r *Replay) Wrongly(kind string, n int64) { r.Mismatches = with(r.Mismatches, kind, n) }

func with[K comparable](m map[K]int64, key K, n int64) map[K]int64 {
	if m == nil {
		m = map[K]int64{}
	}
	m[key] += n
	return m
}

func (r *Replay) merge(o *Replay) {
	r.Replayed += o.Replayed
	r.Differed += o.Differed
	r.Equal += o.Equal
	for why, n := range o.Skipped {
		r.Skip(why, n)
	}
	for why, n := range o.Undecided {
		r.Undecided = with(r.Undecided, why, n)
	}
	for kind, n := range o.Mismatches {
		r.Mismatches = with(r.Mismatches, kind, n)
	}
	r.Rows.Merge(&o.Rows)
	r.Micros.Merge(&o.Micros)
}

func (r *Replay) clone() *Replay {
	if r == nil {
		return nil
	}
	out := *r
	out.Skipped, out.Undecided, out.Mismatches = maps.Clone(r.Skipped), maps.Clone(r.Undecided), maps.Clone(r.Mismatches)
	out.Rows, out.Micros = r.Rows.clone(), r.Micros.clone()
	return &out
}
