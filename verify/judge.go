package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// projected is what the target should hold of one item.
type projected struct {
	absent  bool
	refused string // the mapping's reason
	rule    string // with refused: the rule that takes the item, "" where none does
	rows    map[string][]guarded.WantedCell

	contents map[string][]*Content // of the cells in rows, where differing cells are listed
}

// sighting is what the rows of the target showed of one item.
type sighting struct {
	kinds   []Kind
	rows    [][]byte // with differences
	keptTTL int      // cells that are kept if the item is absent
	kept    int      // rows whose guard remains because the item is absent
	bare    [][]byte // of them, those in which a reader sees nothing of the item
	owned   int      // cells that belong to the item and should not be there
	shared  bool     // a cell that other items may write too has another value
	future  change.Version
	guards  []byte // versions of the item's guards, by row

	cells []CellDifference // the first of them
}

func (s *sighting) add(kind Kind, row []byte) {
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
	if n := len(s.rows); n == 0 || !bytes.Equal(s.rows[n-1], row) {
		s.rows = append(s.rows, bytes.Clone(row))
	}
}

// fingerprint is equal for two sightings only if the item has not been written in between, and the
// same differs.
func (s *sighting) fingerprint(content [sha256.Size]byte) [sha256.Size]byte {
	b := append(content[:], s.guards...)
	for _, k := range s.kinds {
		b = append(append(b, k...), 0)
	}
	for _, r := range s.rows {
		b = append(binary.AppendUvarint(b, uint64(len(r))), r...)
	}
	return sha256.Sum256(b)
}

// judge compares items with their rows.
type judge struct {
	s        *Settler
	guards   *guarded.Guards
	cells    guarded.Cells
	families *guarded.Families
	p        []*guarded.Projector // by table
	dec      change.Decoder
	buf      []byte
}

func newJudge(s *Settler) *judge {
	f := guarded.FamiliesOf(s.Tables)
	j := &judge{s: s, guards: guarded.NewGuards(s.Target, s.Tables), cells: guarded.NewCells(f), families: f}
	for i := range s.Tables {
		j.p = append(j.p, guarded.NewProjector(f, &s.Tables[i]))
	}
	return j
}

// take stores what a reading of an item shows: the first one what the target should hold of it, the
// second one whether the item has changed since.
func (j *judge) take(x *settling, raw []byte, first bool) error {
	content, err := j.contentOf(raw)
	if err != nil {
		return err
	}
	if !first {
		x.changed = content != x.content
		return nil
	}
	x.content = content
	x.want, err = j.project(x.Table, raw)
	return err
}

// contentOf returns a hash of an item that does not depend on the order of its JSON.
func (j *judge) contentOf(raw []byte) (sum [sha256.Size]byte, err error) {
	if raw == nil {
		return sum, nil
	}
	j.dec.Reset()
	img, err := j.dec.Image(raw)
	if err != nil {
		return sum, err
	}
	j.buf = img.AppendJSON(j.buf[:0])
	return sha256.Sum256(j.buf), nil
}

func (j *judge) project(table int, raw []byte) (projected, error) {
	if raw == nil {
		return projected{absent: true}, nil
	}
	p := j.p[table]
	rows, err := p.Rows(raw)
	if guarded.IsRefusal(err) {
		return projected{refused: err.Error(), rule: p.Rule(raw)}, nil
	}
	if err != nil {
		return projected{}, err
	}
	want := projected{rows: map[string][]guarded.WantedCell{}, contents: map[string][]*Content{}}
	for i := range rows {
		cells := make([]guarded.WantedCell, len(rows[i].Cells))
		for k := range rows[i].Cells {
			cells[k] = p.Cell(&rows[i].Cells[k]).Clone()
		}
		want.rows[string(rows[i].Key)] = cells
		want.contents[string(rows[i].Key)] = j.s.contents(rows[i].Cells)
	}
	return want, nil
}

// lookAtRows reads the rows of all items: those that they should have, and those in which they may
// differ.
func (j *judge) lookAtRows(ctx context.Context, open []*settling) error {
	of := map[string][]*settling{}
	for _, x := range open {
		x.seen = sighting{}
		for row := range x.want.rows {
			of[row] = append(of[row], x)
		}
		for _, row := range x.Rows {
			if _, both := x.want.rows[string(row)]; !both {
				of[string(row)] = append(of[string(row)], x)
			}
		}
	}
	keys := make([]string, 0, len(of))
	for row := range of {
		keys = append(keys, row)
	}
	slices.Sort(keys) // fingerprints depend on the order
	j.cells.Now = j.s.Now()
	next := 0
	missing := func(until string) error {
		for ; next < len(keys) && keys[next] < until; next++ {
			if err := j.lookAtRow(keys[next], nil, of[keys[next]]); err != nil {
				return err
			}
		}
		return nil
	}
	return j.inOrder(ctx, keys, func(row *Row) error {
		if err := missing(string(row.Key)); err != nil {
			return err
		}
		next++
		return j.lookAtRow(string(row.Key), row, of[string(row.Key)])
	}, missing)
}

// rowsPerLookup is how many rows one Lookup reads.
const rowsPerLookup = 100

// inOrder calls f with the rows in the order of keys, and rest after the last of each lookup with
// its last key.
func (j *judge) inOrder(ctx context.Context, keys []string, f func(*Row) error, rest func(string) error) error {
	for some := range slices.Chunk(keys, rowsPerLookup) {
		if err := j.s.Target.Lookup(ctx, some, f); err != nil {
			return err
		}
		if err := rest(some[len(some)-1] + "\x00"); err != nil {
			return err
		}
	}
	return nil
}

func (j *judge) lookAtRow(key string, row *Row, items []*settling) error {
	j.guards.List = j.guards.List[:0]
	if row != nil {
		j.guards.Read(row)
	}
	for _, x := range items {
		if err := j.lookAt(key, row, x); err != nil {
			return err
		}
	}
	return nil
}

// lookAt compares what one row holds of one item with what it should hold.
func (j *judge) lookAt(key string, row *Row, x *settling) error {
	of, want := item{Table: x.Table, Key: x.Key}, guarded.ItemWant{Absent: x.want.absent}
	want.Cells, want.Wanted = x.want.rows[key]
	r, err := j.guards.CompareItem(&j.cells, row, of, want, change.Version(j.s.Now()+j.s.Lead))
	if err != nil {
		return err
	}
	if r.Guarded {
		x.seen.guards = fmt.Appendf(x.seen.guards, "%q %d %d\n", key, r.Live, r.Dead)
	}
	if r.Future > 0 {
		x.seen.future = max(x.seen.future, r.Future)
		if err := j.addGuard(x, FutureGuard, key, r.Future); err != nil {
			return err
		}
	}
	wanted := r.Cells[:len(want.Cells)]
	for i := range wanted {
		if err := j.addWanted(key, row, wanted[i], x); err != nil {
			return err
		}
	}
	if r.NoGuard && len(x.seen.kinds) == 0 { // nothing else is known to be wrong, and the row has the item
		if err := j.addGuard(x, NoGuard, key, 0); err != nil {
			return err
		}
	}
	if r.Stale {
		if err := j.addGuard(x, Stale, key, r.Live); err != nil {
			return err
		}
	}
	for _, c := range r.Cells[len(want.Cells):] {
		if err := j.addRest(key, c, x); err != nil {
			return err
		}
	}
	if r.Kept {
		x.seen.kept++
		if !r.Visible {
			x.seen.bare = append(x.seen.bare, []byte(key))
		}
	}
	return nil
}

func (j *judge) addGuard(x *settling, kind Kind, row string, at change.Version) error {
	x.seen.add(kind, []byte(row))
	return j.list(x, CellDifference{Kind: kind, Row: []byte(row), Guard: at})
}

// addWanted adds how a cell differs that the item should have in a row.
func (j *judge) addWanted(key string, row *Row, c guarded.ItemCell, x *settling) error {
	switch c.State {
	case guarded.IsMissing:
		kind := MissingCell
		if row == nil || len(row.Cells) == 0 {
			kind = MissingRow
		}
		x.seen.add(kind, []byte(key))
		return j.listWanted(x, kind, key, c.Want, nil)
	case guarded.IsShared:
		x.seen.shared = true
	case guarded.IsOther:
		x.seen.add(Value, []byte(key))
		return j.listWanted(x, Value, key, c.Want, &j.cells.List[c.Have])
	default: // it is equal, or has aged away
	}
	return nil
}

// addRest adds a cell of the row that the item should not have.
func (j *judge) addRest(key string, c guarded.ItemCell, x *settling) error {
	switch c.State {
	case guarded.IsKeptWhileAbsent:
		x.seen.keptTTL++
		if x.want.absent {
			return nil
		}
	case guarded.IsExtra:
		x.seen.owned++
		x.seen.add(ExtraCell, []byte(key))
	default: // kept, whatever becomes of the item, or not known to be the item's
		return nil
	}
	return j.listExtra(x, key, &j.cells.List[c.Have])
}

// verdict decides about an item that was the same before and after its rows were read.
func (j *judge) verdict(x *settling) Verdict {
	s := &x.seen
	v := Verdict{Table: x.Table, Key: x.Key, Status: Different, Kinds: s.kinds, Rows: s.rows, Future: s.future,
		Cells: s.cells, Absent: x.want.absent}
	switch {
	case x.want.refused != "":
		v.Status, v.Why, v.Rule = Refused, x.want.refused, x.want.rule
	case s.future > 0:
	case x.want.absent && s.kept > 0 && len(s.kinds) == 0:
		v.Status, v.Kept, v.Bare, v.Why = Kept, s.keptTTL, s.bare, "on_ttl_expiry: keep"
	case s.keptTTL > 0:
		v.addKind(ExtraCell) // what TTL leaves may remain only while there is no such item
	case len(s.kinds) > 0:
	case s.shared:
		v.Status, v.Why = Unproven, "other items may write the same cell"
	default:
		v.Status = Equal
	}
	return v
}

func (v *Verdict) addKind(kind Kind) {
	if !slices.Contains(v.Kinds, kind) {
		v.Kinds = append(v.Kinds, kind)
	}
}
