package checkpoint

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// Watermark pairs a time with an entry: everything created up to Time was read when Seq was the
// newest entry with changes. A sink with a mark at or past Seq has therefore applied everything up
// to Time.
type Watermark struct {
	Seq  uint64        `json:"seq"`
	Time change.Millis `json:"through"`
}

// maxWatermarks bounds the list. A longer list, because the sinks are far behind, loses every
// second watermark.
const maxWatermarks = 512

// noteWatermark adds the read watermark as of now, if it has risen.
func (s *State) noteWatermark() {
	w := Watermark{Seq: s.LastFrame, Time: s.ReadWatermark()}
	n := len(s.Watermarks)
	switch {
	case w.Time == 0 || n > 0 && s.Watermarks[n-1].Time >= w.Time:
		return
	case n > 0 && s.Watermarks[n-1].Seq == w.Seq:
		s.Watermarks[n-1] = w // no changes were stored in between
	default:
		s.Watermarks = append(s.Watermarks, w)
	}
	if len(s.Watermarks) > maxWatermarks {
		kept := s.Watermarks[:1]
		for i := 2; i < len(s.Watermarks); i += 2 {
			kept = append(kept, s.Watermarks[i])
		}
		s.Watermarks = kept
	}
	s.dropPassedWatermarks()
}

// lowerWatermarks lowers every watermark to the read watermark. The read watermark falls when a
// listing shows a child of a parent that ended earlier: the child's changes are as old as the time
// at which the parent was last listed as open.
func (s *State) lowerWatermarks() {
	read := s.ReadWatermark()
	if read == 0 {
		s.Watermarks = nil
	}
	for i := range s.Watermarks {
		s.Watermarks[i].Time = min(s.Watermarks[i].Time, read)
	}
}

// dropPassedWatermarks keeps the newest watermark that all sinks have passed, and those after it.
func (s *State) dropPassedWatermarks() {
	passed := 0
	for i, w := range s.Watermarks {
		if s.allSinksPassed(w.Seq) {
			passed = i
		}
	}
	s.Watermarks = slices.Delete(s.Watermarks, 0, passed)
}

// allSinksPassed reports whether every sink has applied everything up to seq.
func (s *State) allSinksPassed(seq uint64) bool {
	for _, m := range s.Marks {
		if m.Seq < seq {
			return false
		}
	}
	return len(s.Marks) > 0
}

// AppliedWatermark returns the time up to which every change is durable at every sink, as far as
// empty reads show; 0 when that is not known yet.
func (s *State) AppliedWatermark() change.Millis {
	if len(s.Watermarks) == 0 || !s.allSinksPassed(s.Watermarks[0].Seq) {
		return 0
	}
	return s.Watermarks[0].Time
}

// AppliedAt returns the time up to which a sink with a mark has applied every change, as far as
// empty reads show; 0 when that is not known.
func (s *State) AppliedAt(mark uint64) (through change.Millis) {
	for _, w := range s.Watermarks {
		if w.Seq <= mark {
			through = max(through, w.Time)
		}
	}
	return through
}

// ProvenWatermark returns the time up to which heartbeats prove that every change is durable at
// every sink; 0 for none.
func (s *State) ProvenWatermark() change.Millis { return s.Proof.Applied(s.allSinksPassed) }

// childListingDelay is how long listings may leave out the children of a shard that ended.
const childListingDelay = 60_000

// ReadWatermark returns the time up to which every change in the live stream was read; 0 when
// unknown. It rests on empty reads. Beyond Listed, the begin of the newest complete listing, it is
// valid only if no shard has split since: a caller that needs certainty requests a listing, and
// waits until both have passed the time. Once a disabled stream was read to its end, the result is
// the last time at which the stream is known to have taken writes.
func (s *State) ReadWatermark() change.Millis {
	if s.LiveStream() == nil {
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
	last := change.Millis(0)
	for _, sh := range s.Shards {
		if sh.Phase.Finished() {
			last = max(last, sh.LastAlive)
		}
	}
	return last
}

// ReadWatermarkBesideGaps is ReadWatermark without the shards that stand before a gap that is not
// accepted, and without their descendants. It scans all shards.
func (s *State) ReadWatermarkBesideGaps() change.Millis {
	skip := map[string]bool{}
	for _, id := range s.GappedShards() {
		s.addDescendants(skip, id)
	}
	low := s.Listed
	for id, sh := range s.Shards {
		if skip[id] {
			continue
		}
		if bounds, at := s.watermarkBound(sh); bounds != nil {
			low = min(low, at)
		}
	}
	return low
}

// addDescendants adds a shard and everything that descends from it.
func (s *State) addDescendants(to map[string]bool, id string) {
	if to[id] {
		return
	}
	to[id] = true
	for _, child := range s.index.children[id] {
		s.addDescendants(to, child.ID)
	}
}
