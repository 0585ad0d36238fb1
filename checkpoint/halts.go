package checkpoint

import (
	"maps"

	"github.com/tailrace-cdc/replicator/change"
)

// Names of the sinks: in marks, metrics and dead letters. Copies and resyncs write to Bigtable.
const (
	SinkBigtable = "bigtable"
	SinkArchive  = "archive"
	// SinkPipeline stands in a halt for the table's pipeline itself.
	SinkPipeline = "pipeline"
)

// OwnerSeen returns the newest time of the service's clock at which an owner stored something; 0
// when there is none. A halt counts: the owner stores it, also when no beat fits into the log.
func (s *State) OwnerSeen() change.Millis {
	seen := s.Date
	for _, h := range s.AllHalts() {
		seen = max(seen, h.At)
	}
	return seen
}

// AllHalts returns the halts in force by sink; the halt of the pipeline itself has the key
// SinkPipeline.
func (s *State) AllHalts() map[string]*Halt { return maps.Clone(s.Halts) }

// ClearEntry returns the control entry that ends the halt of a sink; nil when the sink is not
// halted.
func (s *State) ClearEntry(sink string) *Control {
	if s.Halts[sink] == nil {
		return nil
	}
	return &Control{Clear: true, ClearSink: sink}
}

// addHalt notes why a sink stopped.
func (s *State) addHalt(h *Halt) {
	if s.Halts == nil {
		s.Halts = map[string]*Halt{}
	}
	s.Halts[h.Sink] = h
}

// clearHalts ends the halt of one sink, or all halts when the name is empty.
func (s *State) clearHalts(sink string) {
	if sink == "" {
		s.Halts = nil
		return
	}
	delete(s.Halts, sink)
}

// Pausing is since when a table is paused, and who asked for it.
type Pausing struct {
	At change.Millis `json:"at,omitempty"`
	By string        `json:"by,omitempty"`
}

// pause pauses the table or ends that. A table that is paused again is paused since the first time.
func (s *State) pause(paused bool, c *Control) {
	switch {
	case !paused:
		s.Pausing = Pausing{}
	case !s.Paused:
		s.Pausing = Pausing{At: max(c.At, s.Date), By: c.By}
	}
	s.Paused = paused
}
