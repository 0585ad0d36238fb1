package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Row explains a row of the target of the table: the items in it, the owner of each cell, and the
// items that the cells turn back into. Families outside of the mappings are not read.
func (e *Explainer) Row(ctx context.Context, key []byte) (*Row, error) {
	s, err := pair.Open(ctx, e.Config, e.Clients, e.Catalog, e.Table.Source)
	if err != nil {
		return nil, err
	}
	x := &explainedRow{Explainer: e, pair: s, target: s.Rows()}
	x.out = Row{Target: s.Target, Row: transform.Readable(key), RowBase64: key, Items: []RowItem{}, Others: []string{},
		Cells: []OwnedCell{}, Unknown: []string{}}
	if err := x.read(ctx, key); err != nil {
		return nil, err
	}
	if x.row == nil {
		x.out.Missing = true
		if err := x.explainByKey(ctx); err != nil {
			return nil, err
		}
		x.out.Verdict = missingRow(s.Target, x.out.Items)
		return &x.out, nil
	}
	if err := x.settle(ctx); err != nil {
		return nil, err
	}
	if err := x.explainByKey(ctx); err != nil {
		return nil, err
	}
	if err := x.explainUnknown(ctx); err != nil {
		return nil, err
	}
	foreign, unknown := 0, 0
	for i := range x.out.Cells {
		switch x.out.Cells[i].Owner {
		case OwnedByNobody:
			foreign++
		case OwnedMaybe, OwnedBySealed:
			unknown++
		}
	}
	x.out.Verdict = together(x.out.Items, foreign, unknown)
	return &x.out, nil
}

// explainedRow is one row on its way to an explanation.
type explainedRow struct {
	*Explainer
	pair   *pair.Pair
	target verify.Target
	out    Row

	row      *verify.Row
	families *guarded.Families
	guards   *guarded.Guards
	cells    guarded.Cells
	logs     []*tableLog // of the tables in pair; nil: they cannot be read
	index    []int       // of out.Items, by guard; -1: not an item of ours
	items    []verify.Candidate
}

// read reads the row, its items, and the owner of each cell. Without such a row, row stays nil.
func (x *explainedRow) read(ctx context.Context, key []byte) error {
	tables := x.pair.Settler().Tables
	x.guards = guarded.NewGuards(x.target, tables)
	x.families = guarded.FamiliesOf(tables)
	x.cells = guarded.NewCells(x.families)
	x.cells.Now = x.pair.Now()
	err := x.target.Lookup(ctx, []string{string(key)}, func(row *verify.Row) error {
		x.row = row.Clone()
		return nil
	})
	if err != nil {
		return bigtable.Explain(fmt.Errorf("read row: %w", err))
	}
	if x.row == nil {
		return nil
	}
	x.guards.Read(x.row)
	x.cells.Load(x.row)
	x.addItems(x.row)
	return x.addCells(x.row)
}

// addItems adds the items that the guards of the row name, and what other guards there are.
func (x *explainedRow) addItems(row *verify.Row) {
	for i := range x.guards.List {
		g := &x.guards.List[i]
		if !g.Ours() || g.Item.Table == guarded.OtherTable {
			x.index = append(x.index, -1)
			continue
		}
		x.index = append(x.index, len(x.out.Items))
		one := RowItem{Table: x.pair.Tables[g.Item.Table].Source, Guard: g.Live, Deleted: g.Dead,
			KeyHash: change.HashText(change.HashKey([]byte(g.Item.Key)))}
		if x.ShowData {
			one.Key = []byte(g.Item.Key)
		}
		x.out.Items = append(x.out.Items, one)
		x.items = append(x.items, verify.Candidate{Table: g.Item.Table, Key: g.Item.Key,
			Rows: [][]byte{bytes.Clone(row.Key)}})
	}
	for _, cells := range [][]bigtable.Cell{row.Live, row.Dead} {
		for i := range cells {
			x.addOther(row, &cells[i])
		}
	}
}

// addOther notes a guard that is not of an item of ours.
func (x *explainedRow) addOther(row *verify.Row, c *bigtable.Cell) {
	g, err := x.target.GuardOf(c.Value, row.Key, c.Qualifier)
	var what string
	switch {
	case err != nil:
		what = "a cell in " + c.Family + " that no replicator wrote"
	case g.Unknown:
		what = sealedGuard
	case g.Pipeline != x.Config.Pipeline:
		what = fmt.Sprintf("a guard of pipeline %q, table %q", g.Pipeline, g.Table)
	case x.Catalog.Table(g.Table) == nil:
		what = fmt.Sprintf("a guard of table %q, which is not configured", g.Table)
	default:
		return
	}
	x.out.Others = append(x.out.Others, fmt.Sprintf("%s, version %d", what, c.Time.UnixMilli()))
}

// addCells adds the cells of the row with their owners.
func (x *explainedRow) addCells(row *verify.Row) error {
	owned := make([][]transform.Cell, len(x.out.Items))
	for i := range x.cells.List {
		h := &x.cells.List[i]
		c, entry, err := x.ownerOf(row, h)
		if err != nil {
			return err
		}
		n := names{data: x.ShowData}
		v := change.Version(h.Time.UnixMilli())
		c.Family, c.Qualifier = h.Family, n.column(row.Key, h.Family, h.Qualifier, entry)
		c.Version, c.Time, c.Bytes, c.Value = v, *timeOf(max(v, 1)), len(h.Value), n.value(h.Value)
		x.out.Cells = append(x.out.Cells, c)
		newest := i == 0 || x.cells.List[i-1].Family != h.Family ||
			!bytes.Equal(x.cells.List[i-1].Qualifier, h.Qualifier)
		if c.Owner == OwnedByItem && newest {
			owned[c.Item] = append(owned[c.Item], transform.Cell{Family: h.Family, Qualifier: bytes.Clone(h.Qualifier),
				Value: bytes.Clone(h.Value), Time: h.Time.UnixMilli()})
		}
	}
	for i := range x.out.Items {
		if x.out.Items[i].Guard > 0 {
			x.turnBack(i, row.Key, owned[i])
		}
	}
	return nil
}

// ownerOf finds the owner of a cell, and the entry of the mapping that writes it.
func (x *explainedRow) ownerOf(row *verify.Row, h *guarded.Held) (
	c OwnedCell, entry transform.Entry, err error,
) {
	c = OwnedCell{Owner: OwnedByNobody, Item: -1}
	s, err := x.guards.Standing(row.Key, h)
	if err != nil {
		return c, entry, err
	}
	switch s.Code {
	case guarded.CellOwned, guarded.CellKept, guarded.CellKeptWhileAbsent, guarded.CellOfOtherTable:
		c.Owner, c.Item = OwnedByItem, x.itemOf(s.Owner)
		_, entry, err = x.guards.Names(s.Owner.Item, row.Key, h.Family, h.Qualifier)
	case guarded.CellMayOutlive, guarded.CellRetired:
		c.Owner, c.Why = OwnedKept, s.Why
	case guarded.CellSealed:
		c.Owner, c.Why = OwnedBySealed, sealedGuard
	case guarded.CellMaybe:
		c.Owner, c.Item = OwnedMaybe, x.itemOf(s.Owner)
		c.Why = "its column does not show to which item of the row it belongs"
	case guarded.CellMaybeOtherTable:
		c.Owner = OwnedByAnother
	case guarded.CellOfOtherPipeline:
		c.Owner, c.Why = OwnedByOther, fmt.Sprintf("the row has a guard of pipeline %q", s.Pipeline)
	case guarded.CellForeign:
	}
	return c, entry, err
}

// itemOf returns the index in out.Items of the item that a guard names.
func (x *explainedRow) itemOf(g *guarded.Guard) int {
	for i := range x.guards.List {
		if &x.guards.List[i] == g {
			return x.index[i]
		}
	}
	return -1
}

// sealedGuard describes a guard that cannot be read.
const sealedGuard = "a guard that is sealed with a secret which is not in pii_secrets"

// explainUnknown assigns cells of unknown items: their columns do not show the item. It assigns
// them to the items of the row that should have them as they are.
func (x *explainedRow) explainUnknown(ctx context.Context) error {
	unknown := func(c OwnedCell) bool { return c.Owner == OwnedMaybe }
	tables := x.pair.Settler().Tables
	for i := range x.items {
		if !slices.ContainsFunc(x.out.Cells, unknown) {
			return nil
		}
		of := &x.items[i]
		batch, err := x.pair.ReadItems(ctx, x.out.Items[i].Table, [][]byte{[]byte(of.Key)})
		if err != nil {
			return err
		}
		if batch.Items[0] == nil {
			continue
		}
		p := guarded.NewProjector(x.families, &tables[of.Table])
		rows, err := p.Rows(batch.Items[0])
		if err != nil {
			continue // the mapping refuses the item, which its verdict says
		}
		for _, row := range rows {
			if !bytes.Equal(row.Key, x.row.Key) {
				continue
			}
			for k := range row.Cells {
				w := p.Cell(&row.Cells[k])
				result, at := x.cells.Compare(&w, x.out.Items[i].Guard)
				if result == guarded.IsEqual && at < len(x.out.Cells) && unknown(x.out.Cells[at]) {
					x.out.Cells[at].Owner, x.out.Cells[at].Item, x.out.Cells[at].Why = OwnedByItem, i, ""
				}
			}
		}
	}
	return nil
}

// turnBack turns the cells of an item back into it, as far as they show it.
func (x *explainedRow) turnBack(i int, row []byte, cells []transform.Cell) {
	of := &x.items[i]
	img, why := x.unmap(x.pair.Tables[of.Table].Program, of.Key, row, cells)
	x.out.Items[i].NoWayBack = why
	if img == nil {
		return
	}
	x.out.Items[i].Attributes = attributesOf(img)
	if x.ShowData {
		x.out.Items[i].Back = img.AppendJSON(nil)
	}
}

// unmap returns the item that the mapping would turn into these cells of the row, and what the
// cells do not show of it; nil where they show no item.
func (x *explainedRow) unmap(
	p *transform.Program, key string, row []byte, cells []transform.Cell,
) (img change.Image, why string) {
	keys, err := keyImage([]byte(key))
	if err != nil {
		return nil, "its key is damaged"
	}
	img, err = p.Unmap(keys, cells)
	if refused := (*transform.Refusal)(nil); errors.As(err, &refused) {
		return nil, refused.What
	} else if err != nil {
		return nil, "its cells are not what the mapping writes"
	}
	rows, err := p.Project(img)
	switch {
	case err != nil || len(rows) == 0:
		return nil, "its cells are not what the mapping writes"
	case !bytes.Equal(rows[0].Key, row):
		return nil, "this is not its main row, from which items are turned back"
	}
	if why = p.WhyLost(keys); why != "" && len(img) == len(keys) {
		return nil, why
	}
	return img, why
}
