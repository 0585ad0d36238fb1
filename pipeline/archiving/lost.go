package archiving

import (
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// Head returns what the table's log stores of the archive: the end of its manifests, and an entry
// of its stream behind everything that Store has returned for. End is 0 before the stream is
// folded.
func (a *Archiver) Head() checkpoint.ArchiveHead {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// noteHead keeps the ends of the stream and of its manifests for Head.
func (a *Archiver) noteHead(s *ledger.State) {
	head := checkpoint.ArchiveHead{N: s.Head.N, Hash: s.Head.Hash, End: s.Seq, Open: checkpoint.Hour(openHour(s))}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = head
}

// openHour returns the first hour with events that may be in the stream alone.
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

// lost returns the hours with events that the stream may have lost: it ends before the entry that
// the table's log has, it is new, or the log itself was lost. It returns nil when the stream is
// complete.
func (a *Archiver) lost(s *ledger.State) *ledger.Lost {
	known := a.Head()
	l := &ledger.Lost{ID: ledger.StreamLost(a.o.Epoch), Until: layout.HourOf(a.o.Now().Time())}
	message := "the archive's stream was lost, or its end: hours of the archive are incomplete"
	switch {
	case s.Seq < known.End:
		l.Why, l.Since = "the archive's stream lacks entries that the table's log knows", layout.Hour(known.Open)
	case s.Seq == 0 && a.o.Recovered:
		l.Why = "the archive's stream was lost with the table's log"
	case a.o.Recovered && s.Claim.Life < a.o.Life:
		// What was not archived is read again, but DynamoDB keeps it for a day only.
		l.ID, l.Why, l.Since = ledger.LogLost(a.o.Epoch), "the table's log was lost", s.Closed
		message = "the table's log was lost: hours of the archive are incomplete"
	default:
		return nil
	}
	a.o.Logger.Error(message,
		zap.String("id", l.ID), zap.String("why", l.Why), zap.Stringer("since", l.Since), zap.Stringer("until", l.Until))
	return l
}
