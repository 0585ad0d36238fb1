package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// recheck looks again at cells of the target that had no known owner, once the target has every
// change up to the first look: what a change on its way has removed by then, or has taken as its
// item's, is not foreign. All members are needed.
type recheck struct {
	Tables []guarded.Table
	Target guarded.Target
	Prove  func(ctx context.Context, t change.Millis) error // blocks until the target has every change up to t
	Now    func() change.Millis                             // the service's clock
	Lead   func() change.Millis                             // how far above it versions may be

	// Still receives the cells that have no known owner now either.
	Still func(*Open) error
	// Owned receives the items that own a cell by now.
	Owned func(kind Kind, of guarded.Item, row []byte)
	// Untold receives cells whose owner cannot be determined; a cell may come several times.
	Untold func(*Open)
}

// rowsAtOnce is how many rows are read at once.
const rowsAtOnce = 100

// rechecking is a recheck at work.
type rechecking struct {
	recheck
	compare *guarded.Comparison
	listed  map[cellPlace]int // cells of the rows that are read next
	rows    map[string]bool
	more    map[Kind]int64
}

// at looks at the cells that each yields, which were seen before a time. It returns how many more
// of each kind there are than were listed; fewer is negative.
func (l recheck) at(
	ctx context.Context, seen change.Millis, each func(func(*Open) error) error,
) (more map[Kind]int64, err error) {
	x := &rechecking{recheck: l, listed: map[cellPlace]int{}, rows: map[string]bool{}, more: map[Kind]int64{}}
	x.compare = guarded.NewComparison(guarded.NewGuards(l.Target, l.Tables), guarded.FamiliesOf(l.Tables), 0, 0, x)
	proven := false
	look := func() error {
		if !proven && len(x.rows) > 0 {
			if err := l.Prove(ctx, seen); err != nil {
				return fmt.Errorf("prove what is applied: %w", err)
			}
			proven = true
		}
		return x.readRows(ctx)
	}
	err = each(func(o *Open) error {
		if o.Kind == guarded.Unowned {
			x.Untold(o)
			return nil
		}
		if len(x.rows) == rowsAtOnce && !x.rows[string(o.Row)] {
			if err := look(); err != nil {
				return err
			}
		}
		x.more[o.Kind]--
		x.rows[string(o.Row)] = true
		x.listed[placeOf(o)]++
		return nil
	})
	if err == nil {
		err = look()
	}
	return x.more, err
}

// readRows reads the rows of the listed cells. A column may have several cells, and be listed as
// often.
func (x *rechecking) readRows(ctx context.Context) error {
	now := x.Now()
	x.compare.At(now, change.Version(now+x.Lead()))
	err := x.Target.Lookup(ctx, slices.Sorted(maps.Keys(x.rows)), func(row *guarded.Row) error {
		return x.compare.Again(row, func(h *guarded.Held) bool {
			at := cellPlace{string(row.Key), h.Family, string(h.Qualifier)}
			x.listed[at]--
			return x.listed[at] >= 0
		})
	})
	clear(x.rows)
	clear(x.listed)
	return err
}

// Candidate implements guarded.Findings.
func (x *rechecking) Candidate(kind Kind, of guarded.Item, row []byte) error {
	x.Owned(kind, of, row)
	return nil
}

// Kept implements guarded.Findings.
func (x *rechecking) Kept([]byte, *guarded.Held) {}

// Foreign implements guarded.Findings.
func (x *rechecking) Foreign(row []byte, h *guarded.Held, pipeline string) error {
	return x.still(openOfCell(guarded.Foreign, row, h, pipeline))
}

// Unproven implements guarded.Findings.
func (x *rechecking) Unproven(kind Kind, row []byte, h *guarded.Held) error {
	if kind == guarded.Unowned {
		o := openOfCell(kind, row, h, "")
		x.Untold(&o)
		return nil
	}
	return x.still(openOfCell(kind, row, h, ""))
}

// still hands on a cell that has no known owner.
func (x *rechecking) still(o Open) error {
	x.more[o.Kind]++
	return x.Still(&o)
}
