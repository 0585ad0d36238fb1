package checkpoint

import "maps"

// AllHalts returns the halts in force by sink; the halt of the pipeline itself has the key "pipeline". A log of format
// 1 holds the newest halt only.
func (s *State) AllHalts() map[string]*Halt {
	all := maps.Clone(s.Halts)
	if s.Halted != nil {
		all = map[string]*Halt{s.Halted.Sink: s.Halted}
	}
	return all
}

// ClearEntry returns the control entry that ends the halt of a sink; nil when the sink is not halted.
func (s *State) ClearEntry(sink string) *Control {
	switch {
	case s.Halted != nil && s.Halted.Sink == sink:
		return &Control{Clear: true}
	case s.Halts[sink] != nil:
		return &Control{Clear: true, ClearSink: sink}
	}
	return nil
}

// addHalt notes why a sink stopped. Format 1 keeps the newest halt only.
func (s *State) addHalt(h *Halt) {
	if s.Format < 2 {
		s.Halted = h
		return
	}
	if s.Halts == nil {
		s.Halts = map[string]*Halt{}
	}
	s.Halts[h.Sink] = h
}

// clearHalts ends the halt of one sink, or all halts when the name is empty.
func (s *State) clearHalts(sink string) {
	if sink == "" {
		s.Halted, s.Halts = nil, nil
		return
	}
	delete(s.Halts, sink)
}
