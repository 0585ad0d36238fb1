package continuous

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Pass is the progress of a direction. It is stored: it holds no keys of items.
type Pass struct {
	Finished int64         `json:"finished"`      // passes
	Began    change.Millis `json:"began"`         // this pass; 0: between two
	Before   change.Millis `json:"before"`        // begin of the last finished pass
	Compared int64         `json:"compared"`      // in this pass: items, or rows
	Kept     int64         `json:"kept"`          // in this pass: cells that may remain without their item
	Last     int64         `json:"last"`          // Compared of the last finished pass
	LastKept int64         `json:"last_kept"`     // Kept of the last finished pass
	Segment  int           `json:"segment"`       // of the items: the one that is being read
	Total    int           `json:"total"`         // of the items: segments
	Row      []byte        `json:"row,omitempty"` // of the rows: the last one that was compared
	Expected int64         `json:"expected"`      // how many there are about, for the share
}

// Anew returns the pass as it was before it began.
func (d Pass) Anew() Pass {
	return Pass{Finished: d.Finished, Before: d.Before, Last: d.Last, LastKept: d.LastKept, Total: d.Total}
}

// direction is a pass with the state that is only in memory.
type direction struct {
	Pass
	spent float64   // units since the start, for the turns
	from  time.Time // when a pass may begin
}

func (d *direction) due(now time.Time) bool { return d.Began != 0 || !now.Before(d.from) }

// begin begins a pass unless one is under way. A direction that waited does not catch up with the
// other one.
func (d *direction) begin(o Options, now time.Time, other *direction) {
	if d.Began != 0 {
		return
	}
	d.Began, d.from = o.Now(), now.Add(o.Every)
	d.Expected = o.Tables[0].Items
	if d.Last > 0 {
		d.Expected = d.Last
	}
	d.spent = max(d.spent, other.spent)
}

// finish ends the pass.
func (d *direction) finish() {
	d.Pass = Pass{
		Finished: d.Finished + 1, Before: d.Began, Last: d.Compared, LastKept: d.Kept, Total: d.Total, Expected: d.Expected,
	}
}

// share returns the share of its side that the pass has read, from 0 to 1. The total is known only
// once a pass has finished.
func (d *Pass) share() float64 {
	if d.Began == 0 {
		return min(float64(d.Finished), 1)
	}
	seen := 0.0
	if d.Expected > 0 {
		seen = float64(d.Compared) / float64(d.Expected)
	}
	if d.Total > 1 {
		seen = max(seen, float64(d.Segment)/float64(d.Total))
	}
	return min(seen, almost)
}

// almost is the share of a pass that has seen all that was expected and is not finished.
const almost = 0.99
