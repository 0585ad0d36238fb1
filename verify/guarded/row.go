package guarded

import (
	"github.com/tailrace-cdc/replicator/change"
)

// Findings receives the differences of a row. The arguments are valid until the call returns.
type Findings interface {
	Candidate(kind Kind, of Item, row []byte) error      // an item to be settled
	Kept(row []byte, c *Held)                            // may remain without its item
	Foreign(row []byte, c *Held, pipeline string) error  // pipeline: another one that may own it, or ""
	Unproven(kind Kind, row []byte, c *Held) (err error) // Sealed, or Unowned: then the row is settled
}

// Comparison compares rows of the target with all that the items of all tables should have in them.
type Comparison struct {
	guards *Guards
	cells  Cells
	latest change.Version // a guard above it is in the future
	into   Findings

	row   *Row
	items []Wanted
	Equal int64 // items of rows in which nothing differs
	All   int64 // cells compared
	other []otherValue
	bad   []bool // per item: it differs
}

// NewComparison returns a comparison. now is the time by which cells age, and a guard above latest
// is in the future.
func NewComparison(g *Guards, f *Families, now change.Millis, latest change.Version, into Findings) *Comparison {
	return &Comparison{guards: g, cells: Cells{families: f, Now: now}, latest: latest, into: into}
}

// At sets the time by which cells age, and above which version a guard is in the future.
func (c *Comparison) At(now change.Millis, latest change.Version) {
	c.cells.Now, c.latest = now, latest
}

// otherValue is an expected cell that has another value in the row.
type otherValue struct{ item, cell int }

// Compare compares one row. have is nil where the target lacks it.
func (c *Comparison) Compare(key []byte, items []Wanted, have *Row) error {
	c.row, c.items = have, items
	c.cells.Load(have)
	c.guards.List = c.guards.List[:0]
	if c.equalAtOnce() {
		c.Equal++
		return nil
	}
	if have != nil {
		c.guards.Read(have)
	}
	if err := c.compareItems(key); err != nil {
		return err
	}
	if err := c.checkGuards(key); err != nil {
		return err
	}
	return c.checkRest(key)
}

// equalAtOnce reports the common case without a search for owners: the row holds the content of one
// item and one guard, the exclusive one, and it names that item.
func (c *Comparison) equalAtOnce() bool {
	if c.row == nil || len(c.items) != 1 || c.items[0].hash == nil || len(c.row.Live) != 1 || len(c.row.Dead) > 0 {
		return false
	}
	g := &c.row.Live[0]
	if string(g.Qualifier) != exclusiveQualifier || change.Version(g.Time.UnixMilli()) > c.latest {
		return false
	}
	// An earlier mapping, or another pipeline, may have let another item own the row.
	if !c.guards.names(g, c.row.Key, c.items[0].Item) {
		return false
	}
	if !c.cells.hashIs(c.items[0].hash) || c.cells.explained < len(c.cells.List) {
		return false
	}
	c.All += int64(c.items[0].n)
	return true
}

// compareItems compares the cells of each item.
func (c *Comparison) compareItems(key []byte) error {
	c.other, c.bad = c.other[:0], append(c.bad[:0], make([]bool, len(c.items))...)
	for i := range c.items {
		kind := c.compareItem(i)
		switch {
		case kind != "" && c.row == nil:
			kind = MissingRow
		case kind == "" && c.row != nil && c.guards.lacks(c.items[i].Item, c.items[i].Size()):
			kind = NoGuard
		case kind == "":
			continue
		}
		if err := c.differs(kind, i, key); err != nil {
			return err
		}
	}
	for _, o := range c.other {
		if c.cells.List[o.cell].explained {
			continue // another item with the same cell has this value: the mapping allows that
		}
		c.cells.Explain(o.cell)
		if err := c.differs(Value, o.item, key); err != nil {
			return err
		}
	}
	for i := range c.bad {
		if !c.bad[i] {
			c.Equal++
		}
	}
	return nil
}

// differs reports an item of the row, once.
func (c *Comparison) differs(kind Kind, i int, key []byte) error {
	if c.bad[i] {
		return nil
	}
	c.bad[i] = true
	return c.into.Candidate(kind, c.items[i].Item, key)
}

// compareItem compares the cells of one item, and returns how they differ. Other values are
// collected in c.other.
func (c *Comparison) compareItem(i int) (kind Kind) {
	w := &c.items[i]
	if w.hash != nil {
		c.All += int64(w.n)
		if same := c.cells.hashIs(w.hash); !same || len(c.items) > 1 {
			return Value
		}
		return ""
	}
	written := c.guards.Find(w.Item).Live
	for j := range w.Cells {
		c.All++
		switch result, at := c.cells.Compare(&w.Cells[j], written); result {
		case IsMissing:
			kind = MissingCell
		case IsOther:
			c.other = append(c.other, otherValue{i, at})
		default: // it is equal, or has aged away
		}
	}
	return kind
}

// checkGuards reports the items that the row should not hold, and guards in the future.
func (c *Comparison) checkGuards(key []byte) error {
	for i := range c.guards.List {
		g := &c.guards.List[i]
		if !c.guards.Compared(g) {
			continue
		}
		kind := Kind("")
		switch {
		case (&Presence{Live: g.Live, Dead: g.Dead}).inFuture(c.latest):
			kind = FutureGuard
		case g.Live > 0 && !c.wants(g.Item):
			kind = Stale
		}
		if kind != "" {
			if err := c.into.Candidate(kind, g.Item, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// wants reports whether the item should be in the row.
func (c *Comparison) wants(of Item) bool {
	for i := range c.items {
		if c.items[i].Item == of {
			return true
		}
	}
	return false
}

// checkRest looks for the owners of the cells that no item explains.
func (c *Comparison) checkRest(key []byte) error {
	if c.cells.explained == len(c.cells.List) {
		return nil
	}
	for i := range c.cells.List {
		h := &c.cells.List[i]
		if h.explained || c.cells.Expired(h) {
			continue
		}
		if err := c.checkCell(key, h); err != nil {
			return err
		}
	}
	return nil
}

// Again looks again for the owners of cells of a row that no item explains: of those that pick
// names.
func (c *Comparison) Again(row *Row, pick func(*Held) bool) error {
	c.row, c.items = row, nil
	c.cells.Load(row)
	c.guards.Read(row)
	for i := range c.cells.List {
		h := &c.cells.List[i]
		if c.cells.Expired(h) || !pick(h) {
			continue
		}
		if err := c.checkCell(row.Key, h); err != nil {
			return err
		}
	}
	return nil
}

// Rest calls f with each cell of a row that none of its items explains, and with what it is.
func (c *Comparison) Rest(items []Wanted, row *Row, f func(*Held, Standing) error) error {
	c.row, c.items, c.other = row, items, c.other[:0]
	c.cells.Load(row)
	c.guards.Read(row)
	for i := range items {
		c.compareItem(i)
	}
	for _, o := range c.other {
		c.cells.Explain(o.cell) // a difference of the item that should have it
	}
	for i := range c.cells.List {
		h := &c.cells.List[i]
		if h.explained || c.cells.Expired(h) {
			continue
		}
		s, err := c.guards.Standing(row.Key, h)
		if err != nil {
			return err
		}
		if err := f(h, s); err != nil {
			return err
		}
	}
	return nil
}

// checkCell reports a cell that no item explains: to its owner, if a guard shows one.
func (c *Comparison) checkCell(key []byte, h *Held) error {
	s, err := c.guards.Standing(key, h)
	if err != nil {
		return err
	}
	switch s.Code {
	case CellOwned, CellKeptWhileAbsent: // settling reads the item to find out whether it is absent
		return c.into.Candidate(ExtraCell, s.Owner.Item, key)
	case CellKept, CellMayOutlive, CellRetired:
		c.into.Kept(key, h)
	case CellSealed:
		return c.into.Unproven(Sealed, key, h)
	case CellMaybe:
		return c.into.Unproven(Unowned, key, h)
	case CellForeign, CellOfOtherPipeline:
		return c.into.Foreign(key, h, s.Pipeline)
	case CellOfOtherTable, CellMaybeOtherTable: // of a table that is not compared
	}
	return nil
}
