package pair

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

const (
	// pageUnits estimates the cost of a page before its reply states it: 1 MB read strongly is 256.
	pageUnits = 64
	// itemUnits estimates the cost of reading an item by its key.
	itemUnits = 1
	// readPatience is how long DynamoDB may refuse a read before the command ends.
	readPatience = 5 * time.Minute
)

// Index returns the index of a source table; -1 where it does not write the target.
func (p *Pair) Index(table string) int {
	return slices.IndexFunc(p.Tables, func(t *catalog.Table) bool { return t.Source == table })
}

// Now returns the time of DynamoDB's clock.
func (p *Pair) Now() change.Millis {
	if now, heard := p.source.Now(); heard {
		return now
	}
	return change.MillisOf(time.Now())
}

// Ask returns the time of DynamoDB's clock by a reply of this moment. Now may be behind it: our own
// clock stands still while the machine is suspended.
//
// Rule 13: it requests the time again while that time is uncertain. A proof of what was written
// before a wrong time would leave out what was written since.
func (p *Pair) Ask(ctx context.Context) (change.Millis, error) {
	for {
		err := p.read(ctx, 0, 0, func() (float64, error) {
			_, err := p.source.Table(ctx, p.Tables[0].Source)
			return 0, err
		})
		if err != nil || p.source.Certain() == nil {
			return p.Now(), err
		}
		if err := failure.Pause(ctx, askPeriod); err != nil {
			return 0, err
		}
	}
}

// askPeriod is the time between two questions for the time while it is uncertain.
const askPeriod = time.Second

// Page reads a page of a table, given by its index, within its read budget.
func (p *Pair) Page(ctx context.Context, table int, r source.ScanRequest) (pg *source.ItemPage, err error) {
	err = p.read(ctx, table, pageUnits, func() (units float64, err error) {
		if pg, err = p.source.ScanPage(ctx, r); err != nil {
			return 0, err
		}
		return pg.Units, nil
	})
	return pg, err
}

// ReadItems reads items of a table strongly, by their canonical keys, within its read budget.
func (p *Pair) ReadItems(ctx context.Context, table string, keys [][]byte) (batch *source.ItemBatch, err error) {
	err = p.read(ctx, p.Index(table), float64(len(keys)*itemUnits), func() (units float64, err error) {
		if batch, err = p.source.ReadItems(ctx, table, keys); err != nil {
			return 0, err
		}
		return batch.Units, nil
	})
	return batch, err
}

// LimitReads has reads of each table take at most so many read capacity units a second. It is called
// before anything is read.
func (p *Pair) LimitReads(units float64) {
	for i := range p.budgets {
		p.budgets[i] = source.NewBudget(units)
	}
}

// read makes a call within the read budget of a table, again and again while the service is
// throttled or away.
func (p *Pair) read(ctx context.Context, table int, estimate float64, call func() (units float64, err error)) error {
	budget, began := p.budgets[table], time.Now()
	for tries := 1; ; tries++ {
		if err := budget.Take(ctx, estimate); err != nil {
			return err
		}
		units, err := call()
		budget.Settle(estimate, units)
		if err == nil || ctx.Err() != nil {
			return err
		}
		class := source.Classify(err)
		if class != failure.Transient && class != failure.Throttled || time.Since(began) > readPatience {
			return source.Explain(fmt.Errorf("read %s: %w", p.Tables[table].Source, err))
		}
		if err := failure.Pause(ctx, failure.Backoff(tries)); err != nil {
			return err
		}
	}
}
