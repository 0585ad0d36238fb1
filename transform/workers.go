package transform

// Unfit is why workers outside the daemon cannot copy the items of a table; "" where they can. They
// have no log, no lanes and no dead letters, and read no row before they write it.
type Unfit string

// Why workers cannot copy.
const (
	// UnfitReads: what a copy writes to a row depends on what the row holds.
	UnfitReads Unfit = "reads_rows"
	// UnfitWipes: the removal of an item deletes the cells of others.
	UnfitWipes Unfit = "on_remove_row"
	// UnfitOutlives: cells remain without their item.
	UnfitOutlives Unfit = "outlives"
	// UnfitSecrets: the guards' values are sealed, or the mapping has secrets.
	UnfitSecrets Unfit = "secrets"
	// UnfitMoves: rows that an item had in an earlier life do not follow from its key.
	UnfitMoves Unfit = "rows_move"
)

// Unfit returns why workers cannot copy the items of the table. first is set where no earlier life
// wrote rows of the table.
func (p *Program) Unfit(first bool) Unfit {
	switch {
	case p.prog.ReadToResync:
		return UnfitReads
	case p.Wipes() != nil:
		return UnfitWipes
	case len(p.MayOutlive()) > 0:
		return UnfitOutlives
	case p.SealsKeys() || p.HasSecrets():
		return UnfitSecrets
	case !first && !p.KeysShowRows():
		return UnfitMoves
	}
	return ""
}

// HasSecrets reports whether the mapping has secrets, without which nothing can compile it. Workers
// compile the mappings of all tables of a target.
func (p *Program) HasSecrets() bool {
	return p.prog.Table.Mapping != nil && len(p.prog.Table.Mapping.Secrets) > 0
}

// Why returns the reason in words.
func (u Unfit) Why() string {
	return map[Unfit]string{
		UnfitReads: "rows are read before they are written (class D, a history, max_age), which workers do not",
		UnfitWipes: "on_remove: row deletes cells of other items, which workers cannot order",
		UnfitOutlives: "cells remain without their item (on_ttl_expiry: keep, on_remove: tombstone, removed: keep or " +
			"empty, aggregates), which workers cannot order",
		UnfitSecrets: "the mapping has secrets or personal data in keys, and workers get no secret",
		UnfitMoves:   "the rows that an item had in an earlier life do not follow from its key",
	}[u]
}
