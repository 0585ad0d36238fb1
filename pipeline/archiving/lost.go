package archiving

import (
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint/expired"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// Head returns what the table's log is to know of the archive: the end of its manifests, and an entry of its stream
// behind everything that Store has returned for. End is 0 while nothing is known.
func (a *Archiver) Head() expired.Head {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// know notes what the stream has.
func (a *Archiver) know(s *ledger.State) {
	head := expired.Head{N: s.Head.N, Hash: s.Head.Hash, End: s.Seq, Open: expired.Hour(openHour(s))}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = head
}

// openHour returns the first hour of which events may be in the stream alone.
func openHour(s *ledger.State) layout.Hour {
	hour := s.Closed
	for key := range s.Parts {
		hour = min(hour, key.Hour)
	}
	for i := range s.Intents {
		hour = min(hour, s.Intents[i].Hour)
	}
	return hour
}

// lost returns what is missing in the stream because it is not the one that the table's log knows, or lost its end; nil
// when it has everything.
func (a *Archiver) lost(s *ledger.State) *ledger.Lost {
	known := a.Head()
	l := &ledger.Lost{ID: ledger.StreamLost(a.o.Epoch), Until: layout.HourOf(a.o.Now().Time())}
	switch {
	case s.Seq < known.End:
		l.Why, l.Since = "the archive's stream lacks entries that the table's log knows", layout.Hour(known.Open)
	case s.Seq == 0 && a.o.Recovered:
		l.Why = "the archive's stream was lost with the table's log"
	default:
		return nil
	}
	a.o.Logger.Error("the archive's stream was lost, or its end: hours of the archive are incomplete",
		zap.String("id", l.ID), zap.String("why", l.Why), zap.Stringer("since", l.Since), zap.Stringer("until", l.Until))
	return l
}
