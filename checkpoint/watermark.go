package checkpoint

import "slices"

// Horizon says that everything created up to Through had been read when Seq was the newest entry with changes.
// A sink whose mark is at or past Seq has applied everything up to Through.
type Horizon struct {
	Seq     uint64 `json:"seq"`
	Through int64  `json:"through"`
}

// maxHorizons bounds the list: of many horizons that no sink has passed yet, every second one will do.
const maxHorizons = 512

func (s *State) horizon() {
	h := Horizon{Seq: s.LastFrame, Through: s.Through()}
	n := len(s.Horizons)
	switch {
	case h.Through == 0 || n > 0 && s.Horizons[n-1].Through >= h.Through:
		return
	case n > 0 && s.Horizons[n-1].Seq == h.Seq:
		s.Horizons[n-1] = h // nothing came in between
	default:
		s.Horizons = append(s.Horizons, h)
	}
	if len(s.Horizons) > maxHorizons {
		kept := s.Horizons[:1]
		for i := 2; i < len(s.Horizons); i += 2 {
			kept = append(kept, s.Horizons[i])
		}
		s.Horizons = kept
	}
	s.dropHorizons()
}

// clip takes back what horizons said too much: a listing showed a child whose parent had ended before, and whose
// changes are as old as the parent's last sign of life.
func (s *State) clip() {
	through := s.Through()
	if through == 0 {
		s.Horizons = nil
	}
	for i := range s.Horizons {
		s.Horizons[i].Through = min(s.Horizons[i].Through, through)
	}
}

// dropHorizons keeps the newest horizon that all sinks have passed, and those after it.
func (s *State) dropHorizons() {
	passed := 0
	for i, h := range s.Horizons {
		if s.passed(h.Seq) {
			passed = i
		}
	}
	s.Horizons = slices.Delete(s.Horizons, 0, passed)
}

// passed says whether every sink has applied everything up to seq.
func (s *State) passed(seq uint64) bool {
	for _, m := range s.Marks {
		if m.Seq < seq {
			return false
		}
	}
	return len(s.Marks) > 0
}

// AppliedThrough returns the time up to which every change is durable at every sink, as far as empty reads
// show; 0 when that is not known yet. Unix ms on the service's clock.
func (s *State) AppliedThrough() int64 {
	if len(s.Horizons) == 0 || !s.passed(s.Horizons[0].Seq) {
		return 0
	}
	return s.Horizons[0].Through
}

// childrenLate is how long the children of a shard that ended may stay out of the listings.
const childrenLate = 60_000

// Through returns the time up to which everything that the live stream took was read; 0 when unknown. It is as good
// as empty reads are, and after Listed, the newest complete listing, only if no shard has split since: who must
// know asks for a listing and waits for both. After a disabled stream was read to its end that is the last time at which it is known to have lived.
func (s *State) Through() int64 {
	if s.Live() == nil {
		return 0
	}
	x := &s.index
	switch open, others := x.open.all, x.others.all; {
	case len(open) > 0 && len(others) > 0:
		return min(open[0].key, others[0].key)
	case len(open) > 0:
		return open[0].key
	case len(others) > 0:
		return others[0].key
	}
	last := int64(0)
	for _, sh := range s.Shards {
		if sh.Phase == Finished {
			last = max(last, sh.Alive)
		}
	}
	return last
}
