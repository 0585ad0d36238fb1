package guarded

import "github.com/tailrace-cdc/replicator/transform"

// Standing is what a cell counts as that no item explains: foreign, kept, an item's own, and so on.
type Standing struct {
	Code     StandingCode
	Owner    *Guard // of CellOwned, CellKept, CellKeptWhileAbsent, CellOfOtherTable; of CellMaybe one of several
	Why      string // of cells that are kept
	Pipeline string // of CellForeign: another one, to which the row belongs
}

// StandingCode names the kinds of a Standing. The stronger evidence has the higher number.
type StandingCode int

const (
	// CellForeign is a cell that no guard of its row can own.
	CellForeign StandingCode = iota
	// CellRetired may have been written for a table whose replication has ended: it may be the
	// application's.
	CellRetired
	// CellOfOtherPipeline is foreign, in a row with a guard of another pipeline.
	CellOfOtherPipeline
	// CellMaybeOtherTable may belong to an item of a table that is not compared.
	CellMaybeOtherTable
	// CellMaybe may belong to an item that a guard names: its column does not show that.
	CellMaybe
	// CellSealed stands beside a guard that cannot be read, which may own it.
	CellSealed
	// CellMayOutlive has an owner that is not known, and may remain without it (histories,
	// archives, aggregates).
	CellMayOutlive
	// CellOfOtherTable belongs to an item of a table that is not compared.
	CellOfOtherTable
	// CellKept belongs to an item that a guard names, and may remain without it.
	CellKept
	// CellKeptWhileAbsent is the same, and may remain only while there is no such item
	// (on_ttl_expiry: keep).
	CellKeptWhileAbsent
	// CellOwned belongs to an item that a guard names, which should not have it.
	CellOwned
)

// Evidence is what one guard of a row shows about a cell.
type Evidence struct {
	Guard    *Guard
	Owns     Ownership
	Compared bool                // the items of the guard's table are compared
	Outlives transform.Remaining // with OwnedYes: whether the cell may remain without its item
}

// JudgeCell decides what a cell is by the evidence of all guards of its row. mayOutlive is why the cell
// may remain whatever its owner is, retired why it may be a retired table's; "" where that is not
// so.
//
// Rule 14: this is the one judge of the question. It looks at all evidence, and the strongest
// decides. Guards are in the order of their hashes, so weaker evidence that comes first must not
// hide stronger evidence.
func JudgeCell(all []Evidence, mayOutlive, retired string) Standing {
	s := Standing{Code: CellForeign}
	if retired != "" {
		s = Standing{Code: CellRetired, Why: retired}
	}
	for i := range all {
		if x := all[i].byItself(); x.Code > s.Code {
			s = x
		}
	}
	if mayOutlive != "" && s.Code < CellMayOutlive {
		return Standing{Code: CellMayOutlive, Why: mayOutlive}
	}
	return s
}

// byItself returns what the cell is by the evidence of one guard alone.
func (e *Evidence) byItself() Standing {
	switch {
	case e.Guard.unknown:
		return Standing{Code: CellSealed}
	case e.Guard.pipeline != "":
		return Standing{Code: CellOfOtherPipeline, Pipeline: e.Guard.pipeline}
	case e.Owns == OwnedNot:
		return Standing{Code: CellForeign}
	case e.Owns == OwnedMaybe && !e.Compared:
		return Standing{Code: CellMaybeOtherTable}
	case e.Owns == OwnedMaybe:
		return Standing{Code: CellMaybe, Owner: e.Guard}
	case !e.Compared:
		return Standing{Code: CellOfOtherTable, Owner: e.Guard}
	case e.Outlives.Code == transform.RemainsWhileAbsent:
		return Standing{Code: CellKeptWhileAbsent, Owner: e.Guard, Why: e.Outlives.Why}
	case e.Outlives.Code == transform.Remains:
		return Standing{Code: CellKept, Owner: e.Guard, Why: e.Outlives.Why}
	}
	return Standing{Code: CellOwned, Owner: e.Guard}
}

// Standing returns what a cell that no item explains is, by all guards of the row that was read.
func (g *Guards) Standing(row []byte, h *Held) (Standing, error) {
	g.evidence = g.evidence[:0]
	for i := range g.List {
		e, err := g.evidenceOf(&g.List[i], row, h)
		if err != nil {
			return Standing{}, err
		}
		g.evidence = append(g.evidence, e)
	}
	alone := transform.CellAlone{Row: row, Family: h.Family, Qualifier: h.Qualifier, Emptied: h.emptied}
	return JudgeCell(g.evidence, g.mayOutlive(alone), g.Retired(row, h.Cell)), nil
}

// StandingForItem returns what a cell is as far as the guards of one item of ours show it:
// CellForeign where it is not known to be the item's.
func (g *Guards) StandingForItem(of Item, row []byte, h *Held) (Standing, error) {
	g.evidence = g.evidence[:0]
	for i := range g.List {
		if x := &g.List[i]; !x.Ours() || x.Item != of {
			continue
		}
		e, err := g.evidenceOf(&g.List[i], row, h)
		if err != nil {
			return Standing{}, err
		}
		g.evidence = append(g.evidence, e)
	}
	return JudgeCell(g.evidence, "", ""), nil
}

// evidenceOf returns what a guard shows about a cell.
func (g *Guards) evidenceOf(x *Guard, row []byte, h *Held) (e Evidence, err error) {
	e = Evidence{Guard: x, Compared: g.Compared(x)}
	if !x.Ours() {
		return e, nil
	}
	if e.Owns, err = g.Owns(x, h.Cell); err == nil && e.Owns == OwnedYes {
		e.Outlives, err = g.outlives(x, row, h)
	}
	return e, err
}

// Compared reports whether a guard names an item of a table that is compared.
func (g *Guards) Compared(x *Guard) bool {
	return x.Ours() && x.Item.Table != OtherTable && g.tables[x.Item.Table].Parts > 0
}
