package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
)

// TableLog is the log of one table and its state.
type TableLog struct {
	Log     *queue.Log // nil: there is none yet
	State   *checkpoint.State
	Letters int // dead letters
}

// requestEvery is how many looks pass between two requests: about a second, at Period.
const requestEvery = 4

// Reason is an obstacle of one table that waiting does not overcome.
type Reason struct {
	protocol.Loss
	Table string `json:"table"`
}

// Reached is how far a wait has come at its last look.
type Reached struct {
	Met bool // everything that was written before the goal is in Bigtable
	// Blocked is true when only the Reasons stand before the goal: waiting longer does not help.
	Blocked bool
	Reasons []Reason
}

// Err returns the error of a wait that is blocked, with exit code 4; nil when it is not.
func (r Reached) Err() error {
	if !r.Blocked {
		return nil
	}
	var parts, hints []string
	for _, x := range r.Reasons {
		d := describe[x.Code]
		what := d.one
		if x.Count > 1 {
			what = d.several
		}
		parts = append(parts, fmt.Sprintf("%s: %d %s", x.Table, x.Count, what))
		if !slices.Contains(hints, d.hint) {
			hints = append(hints, d.hint)
		}
	}
	return failure.With(failure.Different, strings.Join(hints, "; "),
		fmt.Errorf("not everything is in Bigtable: %s", strings.Join(parts, ", ")))
}

// describe has the text and the remedy of each obstacle.
var describe = map[protocol.Obstacle]struct{ one, several, hint string }{
	protocol.ObstacleGaps: {"gap lost changes before they were read", "gaps lost changes before they were read",
		"`replicator gaps list` shows the gaps, `replicator repair --gaps` brings the rows back"},
	protocol.ObstacleLetters: {"dead letter", "dead letters",
		"`replicator dlq list` shows why they were refused, `replicator dlq retry` tries them again"},
	protocol.ObstacleHeld: {"sink is halted before a refused change", "sinks are halted before a refused change",
		"`replicator status` shows the change that is refused"},
	protocol.ObstacleFence: {"change was written behind the fence", "changes were written behind the fence",
		"Bigtable does not get them while the fence stands: stop the writer; " +
			"`replicator cutover --undo` takes the fence away"},
}

// Wait decides for a number of tables when everything that was written before a moment, the goal,
// is in Bigtable: protocol.Goal for each.
type Wait struct {
	goals []protocol.Goal
	names []string
	looks int
}

// NewWait returns a Wait for what was written before goal, a time of the service. accept names what
// does not count.
func NewWait(goal time.Time, tables []config.Table, accept protocol.Accept) *Wait {
	w := &Wait{}
	for i := range tables {
		w.names = append(w.names, tables[i].Source)
		w.goals = append(w.goals, protocol.Goal{
			Through: change.Millis(goal.UnixMilli()), Accept: accept, Heals: tables[i].OnGap == "heal",
		})
	}
	return w
}

// Look returns how far the wait has come, given the logs of all tables in the order of the tables.
// It counts the dead letters that concern changes from before the goal.
func (w *Wait) Look(ctx context.Context, all []TableLog) (Reached, error) {
	r := Reached{Met: true}
	waiting := false
	for i, l := range all {
		letters, err := l.lettersBefore(ctx, w.goals[i].Through)
		if err != nil {
			return Reached{}, err
		}
		a := w.goals[i].Look(l.State, letters)
		r.Met = r.Met && a.Met()
		waiting = waiting || !a.Met() && !a.Blocked()
		for _, loss := range a.Losses {
			r.Reasons = append(r.Reasons, Reason{Loss: loss, Table: w.names[i]})
		}
	}
	r.Blocked = !r.Met && !waiting
	return r, nil
}

// countedLetters is up to how many dead letters are looked at one by one, at about 30 µs each. Of
// more than that, all count.
const countedLetters = 1000

// lettersBefore counts the dead letters of changes from before a time of the service. A letter
// counts, too, if its change has no time, because it is an item of a copy or cannot be read.
func (l *TableLog) lettersBefore(ctx context.Context, at change.Millis) (n int, err error) {
	if l.Letters == 0 || l.Letters > countedLetters || l.Log == nil {
		return l.Letters, nil
	}
	letters, err := l.Log.ExistingDeadLetters(ctx)
	if err != nil || letters == nil {
		return 0, err
	}
	for letter, err := range letters.All(ctx) {
		if err != nil {
			return 0, err
		}
		if mayBeBefore(letter.Created, at) {
			n++
		}
	}
	return n, nil
}

// mayBeBefore reports whether a change may have been made before a time of the service.
//
// Rule 10: one host of DynamoDB sets the creation time of a change, and another one answered with
// the time. If a change counts although it was made up to five seconds after the time, the only
// cost is a look at its dead letter.
func mayBeBefore(created, at change.Millis) bool { return created < at+change.CreatedLate }

// RequestProgress requests a listing and a beat from the owners of the logs, at every fourth call.
func (w *Wait) RequestProgress(all []TableLog) {
	w.looks++
	if w.looks%requestEvery != 1 {
		return
	}
	for _, s := range all {
		if s.Log != nil {
			_ = s.Log.RequestBeat() // if this fails, the next listing comes on its timer
		}
	}
}
