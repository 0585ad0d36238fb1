package checkpoint

import "maps"

// HaltsOf returns why sinks stopped, by sink; what stops the pipeline itself has a name among them. A log of format 1
// holds the newest halt only.
func (s *State) HaltsOf() map[string]*Halt {
	all := maps.Clone(s.Halts)
	if s.Halted != nil {
		all = map[string]*Halt{s.Halted.Sink: s.Halted}
	}
	return all
}

// Cleared returns the entry that says that a sink's halt is over; nil where it has none.
func (s *State) Cleared(sink string) *Control {
	switch {
	case s.Halted != nil && s.Halted.Sink == sink:
		return &Control{Clear: true}
	case s.Halts[sink] != nil:
		return &Control{Clear: true, Of: sink}
	}
	return nil
}

func (s *State) halt(h *Halt) {
	if s.Format < 2 {
		s.Halted = h
		return
	}
	if s.Halts == nil {
		s.Halts = map[string]*Halt{}
	}
	s.Halts[h.Sink] = h
}

// clear ends the halt of one sink, or, without a name, all of them.
func (s *State) clear(sink string) {
	if sink == "" {
		s.Halted, s.Halts = nil, nil
		return
	}
	delete(s.Halts, sink)
}
