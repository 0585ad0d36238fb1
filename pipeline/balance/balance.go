package balance

import (
	"cmp"
	"slices"
	"time"
)

const (
	// logBase is what a log costs beside its changes, in changes per second: an idle table takes as
	// much of a processor as about ten changes a second (docs/tables.md).
	logBase = 10
	// loadThreshold is above how much of the mean a member has too much work.
	loadThreshold = 1.2
	// minGain is the part of the mean by which a move must lower the larger of the two loads.
	minGain = 0.05
	// moveInterval is the time between two moves in the whole group.
	moveInterval = 5 * time.Second
	// minStay is how long a log stays that was moved.
	minStay = 10 * time.Minute
)

// Member is a process of the group.
type Member struct {
	Name   string
	Unfit  bool // it ends, or does not reach a service: it gets no logs
	Logs   []Log
	Wanted map[string]bool // tables that it can take
	Moved  time.Duration   // since the last move that it took part in; negative: none yet
}

// Log is a log that a member owns.
type Log struct {
	Table string
	Epoch uint64
	Rate  float64       // changes per second
	Moved time.Duration // since it was moved there; negative: it was not
}

// Load is how much work a log is.
func (l *Log) Load() float64 { return logBase + l.Rate }

// Load is how much work a member has.
func (m *Member) Load() (sum float64) {
	for i := range m.Logs {
		sum += m.Logs[i].Load()
	}
	return sum
}

// Move is a log that one member should ask another one for.
type Move struct {
	From, To string // members
	Table    string
	Epoch    uint64
}

// NextMove returns the move that makes the work of the members more equal; false when none is worth
// its pause, or when the last one is too recent. The least loaded member that can take a log gets
// it from the most loaded member, if that has more than 1.2 times the mean. The chosen log is the
// one that lowers the larger of their two loads most, and by at least five percent of the mean.
func NextMove(members []Member) (best Move, ok bool) {
	fit := fitMembers(members)
	mean := 0.0
	for i := range fit {
		if d := fit[i].Moved; d >= 0 && d < moveInterval {
			return best, false
		}
		mean += fit[i].Load() / float64(len(fit))
	}
	slices.SortFunc(
		fit,
		func(a, b Member) int { return cmp.Or(cmp.Compare(a.Load(), b.Load()), cmp.Compare(a.Name, b.Name)) },
	)
	for i := range fit {
		to := &fit[i]
		for _, from := range slices.Backward(fit[i+1:]) {
			if from.Load() <= loadThreshold*mean {
				break
			}
			if table, epoch, found := lowering(&from, to, mean); found {
				return Move{From: from.Name, To: to.Name, Table: table, Epoch: epoch}, true
			}
		}
	}
	return best, false
}

// fitMembers returns the members that may get logs. The requesting member and the owner both
// compute with them.
func fitMembers(members []Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Unfit })
}

// lowering returns the log of from that, moved to to, lowers the larger of their loads most.
func lowering(from, to *Member, mean float64) (table string, epoch uint64, found bool) {
	least := from.Load() - minGain*mean
	for i := range from.Logs {
		l := &from.Logs[i]
		if !to.Wanted[l.Table] || l.Moved >= 0 && l.Moved < minStay {
			continue
		}
		larger := max(from.Load()-l.Load(), to.Load()+l.Load())
		if larger < least || larger == least && !found {
			least, table, epoch, found = larger, l.Table, l.Epoch, true
		}
	}
	return table, epoch, found
}

// Successors returns which member gets which log of a member that ends: the largest first, each to
// the member with the least work that can take it. Tables that no member can take have none.
func Successors(leaving string, members []Member) map[string]string {
	others, loads, logs := fitOthers(leaving, members)
	slices.SortFunc(
		logs,
		func(a, b Log) int { return cmp.Or(cmp.Compare(b.Load(), a.Load()), cmp.Compare(a.Table, b.Table)) },
	)
	to := map[string]string{}
	for i := range logs {
		least := -1
		for j := range others {
			if others[j].Wanted[logs[i].Table] && (least < 0 || loads[j] < loads[least]) {
				least = j
			}
		}
		if least >= 0 {
			to[logs[i].Table] = others[least].Name
			loads[least] += logs[i].Load()
		}
	}
	return to
}

// fitOthers returns the members that may get the logs of one, in the order of their names, with
// their loads.
func fitOthers(leaving string, members []Member) (others []Member, loads []float64, logs []Log) {
	for _, m := range members {
		if m.Name == leaving {
			logs = slices.Clone(m.Logs)
		} else if !m.Unfit {
			others = append(others, m)
		}
	}
	slices.SortFunc(others, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	for i := range others {
		loads = append(loads, others[i].Load())
	}
	return others, loads, logs
}

// First returns which member should claim each free log: in the order of their names, each goes to
// the member with the least work that can take it.
func First(free []string, members []Member) map[string]string {
	nobody := Member{}
	for _, table := range free {
		nobody.Logs = append(nobody.Logs, Log{Table: table})
	}
	return Successors("", append(slices.Clone(members), nobody))
}
