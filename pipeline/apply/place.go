package apply

import (
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
)

// passStep is what the goroutine that reads the log does now. It changes with each entry.
type passStep struct {
	doing atomic.Uint32
	at    atomic.Uint64 // the last entry that was read
}

// The steps.
const (
	stepNone   = iota // no pass runs, or it stands at a fence
	stepRead          // it waits for the next entry
	stepMemory        // it waits for the memory of an entry
	stepUnpack        // it hands the changes of an entry to the target
)

func (s *passStep) set(step uint32) { s.doing.Store(step) }

// read notes that the pass waits for the entry behind at.
func (s *passStep) read(at uint64) {
	s.at.Store(at)
	s.set(stepRead)
}

// When changes wait for memory although more of it would not bring more calls: crowdedLanes
// of four lanes have work, or the changes are so many for each lane with work that they belong to
// few items. Random items in memory fill nearly all lanes long before.
const (
	crowdedLanes    = 3
	changesPerLane  = 8
	lanesInCrowding = 4
)

// Place returns where the changes between the log and Bigtable wait, if they have waited for longer
// than limit.Late or the log holds more. last is its last entry with changes. Resyncs of items
// count when they wait for calls. It is cheap.
func (s *Sink) Place(now time.Time, last uint64) limit.Place {
	if s.retrying.Load() {
		return limit.AtRetry
	}
	l := s.currentLanes()
	if l == nil {
		return limit.Nowhere
	}
	changes, oldest := s.acks.Load().Backlog(now)
	step, behind := s.step.doing.Load(), s.step.at.Load() < last
	late := oldest > limit.Late || step != stepNone && behind
	workers := l.working.Load()
	switch {
	case workers == nil: // until the row of the table can be read in Bigtable
		return placeIf(late, limit.AtRetry)
	case !late && l.operations.Load() == 0:
		return limit.Nowhere
	}
	forCall, forMemory := workers.waits()
	busy := l.busy.Load()
	load := s.shared.bigtable.Load(s.o.Target)
	switch {
	case forCall, busy > 0 && load.Waiting > 0, busy > 0 && !late && load.Copying > 0:
		return limit.AtCall
	case forMemory:
		return limit.AtMemory
	case !late: // resyncs that wait for something else than calls
		return limit.Nowhere
	case step == stepMemory && busy*lanesInCrowding < crowdedLanes*int64(len(l.all)) &&
		int64(changes) < changesPerLane*max(busy, 1):
		return limit.AtMemory
	case step == stepMemory, l.full.Load():
		return limit.AtCall
	case step == stepUnpack:
		return limit.AtProcessor
	case behind:
		return limit.AtLog
	}
	return limit.AtCall
}

func placeIf(waits bool, p limit.Place) limit.Place {
	if !waits {
		return limit.Nowhere
	}
	return p
}

// Lanes returns in how many lanes changes are applied, each with a call at a time; 0 between two
// passes.
func (s *Sink) Lanes() int {
	if l := s.currentLanes(); l != nil {
		return len(l.all)
	}
	return 0
}

// currentLanes returns the lanes of the running pass; nil between two.
func (s *Sink) currentLanes() *lanes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes
}
