package explain

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

const (
	maxCells = 100  // of an item that differ
	maxValue = 1024 // bytes of each of their values
)

// settling compares items with their rows.
type settling struct {
	pair *pair.Pair
	data bool
	say  func(string)
}

// look compares items with their rows at once, without a proof that Bigtable has every change: what
// is equal is equal, and what differs may be on its way.
func (x *settling) look(ctx context.Context, items []verify.Candidate) ([]verify.Verdict, error) {
	s := x.settler()
	return s.Look(ctx, items)
}

// prove compares items with their rows behind a proof. unproven is why there is none; zero where
// there is one.
func (x *settling) prove(
	ctx context.Context, items []verify.Candidate,
) (v []verify.Verdict, unproven obstacle, err error) {
	why := func(err error) obstacle {
		_, next := failure.Of(err)
		return obstacle{err.Error(), next}
	}
	if err := x.pair.Ready(ctx); err != nil {
		return nil, why(err), ctx.Err()
	}
	x.say("Waiting for the proof that Bigtable has every change up to now.")
	s := x.settler()
	x.pair.KeepLead(&s)
	v, err = s.Settle(ctx, items)
	if err != nil && ctx.Err() == nil {
		return nil, why(err), nil
	}
	return v, obstacle{}, err
}

func (x *settling) settler() verify.Settler {
	s := x.pair.Settler()
	s.Cells = maxCells
	if x.data {
		s.Values = maxValue
	}
	return s
}

// describe names a differing cell and its difference, with values if there are any.
func describe(n *names, d *verify.CellDifference) string {
	entry := transform.Entry{Text: d.Entry, To: d.Columns, ByAttributes: d.ByAttributes}
	column := fmt.Sprintf("cell %s:%s", d.Family, n.column(d.Row, d.Family, d.Qualifier, entry))
	have, want := n.data && d.Have != nil, n.data && d.Want != nil
	row, _ := n.row(d.Row)
	switch d.Kind {
	case verify.MissingRow:
		return "row " + row + " is missing"
	case verify.Stale:
		return "row " + row + " still holds the item, which should not be in it"
	case verify.NoGuard:
		return "row " + row + " lacks the item's guard, so that a late change may overwrite it"
	case verify.FutureGuard:
		return fmt.Sprintf("the guard in row %s has version %d, which is in the future, so that no change can write the row",
			row, d.Guard)
	case verify.MissingCell:
		if want {
			return fmt.Sprintf("%s is missing, the item says %s", column, n.value(d.Want.Value))
		}
		return column + " is missing"
	case verify.ExtraCell:
		return column + " should not be there"
	case verify.Value:
		if have && want {
			return fmt.Sprintf("%s is %s, the item says %s", column, n.value(d.Have.Value), n.value(d.Want.Value))
		}
		return column + " differs"
	case verify.ExtraRow, verify.Foreign, verify.Sealed, verify.Unowned, verify.Refusal: // never of an item's cell
	}
	return column + " differs"
}
