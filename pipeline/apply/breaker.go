package apply

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// refusedLimit is how many changes of a table Bigtable may refuse in a row, without taking one,
// before the sink halts: then the table, a limit or the service is to blame, and not the changes.
// If it is ten times lower, a bulk load of items that are too wide halts its table; if it is ten
// times higher, an operator has ten thousand letters to retry.
const refusedLimit = 1000

// breaker counts what Bigtable refuses in a row, each change after a second question. The mutex of
// DeadLetters covers it.
//
// A change that is a dead letter already does not count again when it is replayed. Neither do
// changes that are refused here, before Bigtable is asked: by the mapping, by a limit of this
// package, or because an earlier change of their item is a dead letter.
type breaker struct {
	inRow int // refusals since the last write that Bigtable took
}

// newBreaker returns the breaker of a life. It is open at once if the sink was halted by it before:
// another life must not make another thousand letters. Resume ends the halt, and lets the next
// thousand become letters.
func newBreaker(halts map[string]*checkpoint.Halt) breaker {
	if h := halts[checkpoint.SinkBigtable]; h != nil && h.Code == outcome.CodeRefusedAll {
		return breaker{inRow: refusedLimit}
	}
	return breaker{}
}

// refused notes a refusal, and returns whether the sink must halt in place of storing a dead
// letter.
func (b *breaker) refused(code string) bool {
	if code != bigtable.CodeService {
		return false
	}
	b.inRow++
	return b.inRow > refusedLimit
}

// took notes that Bigtable took a write: it does not refuse everything.
func (b *breaker) took() { b.inRow = 0 }

// halt returns the sink's halt before the change at an entry.
func (b *breaker) halt(seq uint64, why outcome.Outcome) *outcome.HaltError {
	return &outcome.HaltError{
		Code: outcome.CodeRefusedAll, Entry: seq, Held: true,
		Reason: fmt.Sprintf("Bigtable has refused %d changes in a row and taken none, so the changes are not at fault: %s; "+
			"no more dead letters are made, and it goes on by itself once a change is taken", refusedLimit, why.Reason),
	}
}

// continueHalted takes over whether the sink is halted because Bigtable refuses everything.
func (l *DeadLetters) continueHalted(s *checkpoint.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaks = newBreaker(s.AllHalts())
}

// holds reports whether a dead letter of an item is known. The mutex is held.
func (l *DeadLetters) holds(hash uint64, id string) bool {
	x := l.items[hash]
	return x != nil && slices.ContainsFunc(x.letters, func(r letterRef) bool { return r.id == id })
}

// noteTaken notes that Bigtable took a write of an item that was read.
func (l *DeadLetters) noteTaken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaks.took()
}
