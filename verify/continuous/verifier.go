package continuous

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Verifier compares one table with its target, continuously. All methods but Run may be called by
// any goroutine.
type Verifier struct {
	o      Options
	table  string
	settle verify.Settler

	// Of the goroutine that walks.
	projector  *guarded.Projector
	comparison *guarded.Comparison
	found      *found
	unitsEach  float64 // of an item in the last page of a scan
	after      string  // in the segment that is being read

	mu       sync.Mutex // covers what follows
	items    direction
	rows     direction
	pending  map[string]*verify.Candidate // to be settled, by key
	settling map[string]*verify.Candidate // of the settling that is under way
	open     map[string]*openItem         // settled, and not equal
	cells    map[string]*openRow          // rows with cells whose owner is not known
	more     int64                        // differences of this pass that had no room in open
	last     change.Millis                // when the last difference was found
	waits    string                       // why nothing is compared now
}

// New returns a Verifier at the begin of its first passes.
func New(o Options) *Verifier {
	o = o.withDefaults()
	families := guarded.FamiliesOf(o.Tables)
	v := &Verifier{
		o: o, table: o.Tables[0].Program.Table().Source,
		projector: guarded.NewProjector(families, &o.Tables[0]), unitsEach: minUnits,
		pending: map[string]*verify.Candidate{}, open: map[string]*openItem{}, cells: map[string]*openRow{},
	}
	v.found = &found{v: v}
	v.items.Total = o.Segments
	if o.From != nil {
		v.restore(o.From)
	}
	v.settle = verify.Settler{
		Tables: o.Tables, Target: o.Target, ReadItems: v.readStrongly, Prove: v.prove, Now: o.Now,
		FirstPause: o.FirstPause, Cells: shownCells, Values: shownValues,
	}
	return v
}

const (
	// lookAgain is the pause before another look while there is nothing to do.
	lookAgain = time.Second
	// maxPending is how many candidates may wait: while there are more, no page is read.
	maxPending = 10_000
)

// Run compares until ctx ends or a call fails, and returns that error. Another call of Run goes on
// at the same place.
func (v *Verifier) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.walk(ctx) })
	g.Go(func() error { return v.settleAll(ctx) })
	return g.Wait()
}

// walk reads one page after the other.
func (v *Verifier) walk(ctx context.Context) error {
	for {
		step := v.next()
		var err error
		if step == nil {
			err = failure.Pause(ctx, lookAgain)
		} else {
			err = step(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// next returns what to read next: rows that wait for another look, else a page of the direction
// that has consumed less. nil: nothing now.
func (v *Verifier) next() func(context.Context) error {
	hold := v.o.Hold()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waits = hold
	if hold != "" || len(v.pending) >= maxPending {
		return nil
	}
	now := time.Now()
	if rows := v.dueRows(now); len(rows) > 0 {
		return func(ctx context.Context) error { return v.lookAgainAt(ctx, rows) }
	}
	items, rows := v.items.due(now), v.rows.due(now)
	switch {
	case items && (!rows || v.items.spent <= v.rows.spent):
		v.items.begin(v.o, now, &v.rows)
		return v.stepItems
	case rows:
		v.rows.begin(v.o, now, &v.items)
		return v.stepRows
	}
	return nil
}
