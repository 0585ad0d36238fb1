package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Seen is an item of an answer of the source, as JSON.
type Seen struct {
	Table int // index of its Table
	Item  []byte
}

// Shown is what the rows of a range show of items that were read before.
type Shown struct {
	Items  []ShownItem // in the order of the items
	Others []Candidate // items that rows of the range show, and that are not among the given ones
	Rows   int         // that were read

	others map[item]int // where each of Others is
}

// ShownItem is what the rows show of one item.
type ShownItem struct {
	Candidate      // Rows are the rows of its projection within the range, in their order
	All       int  // rows of its projection
	Refused   bool // the mapping does not take it
	Equal     bool // these rows hold it
}

// RangeRead is a read of the rows from Start on and before End, which is up to the last row where
// it is "".
type RangeRead struct {
	Start, End string
	// Part: the items are a part of those in the range, so what is before their first row and
	// behind the last one is not read.
	Part  bool
	Limit int // of rows
	// Rows returns the rows of a range.
	Rows func(start, end string) (Target, error)
}

func (r *RangeRead) holds(key string) bool { return key >= r.Start && (r.End == "" || key < r.End) }

// narrow leaves out what is before the first row of the items and behind the last one; ok is false
// if they have none.
func (r *RangeRead) narrow(items []ShownItem) (ok bool) {
	first, last := "", ""
	for i := range items {
		for _, key := range items[i].Rows {
			if row := string(key); !ok || row < first {
				first = row
			}
			last, ok = max(last, string(key)), true
		}
	}
	r.Start, r.End = first, last+"\x00"
	return ok
}

// ErrManyRows means that a range has more rows than are read.
var ErrManyRows = errors.New("the range has too many rows")

// InRange compares items with the rows of a range, or returns ErrManyRows. It does not read the
// source. What differs, and the other items, may be equal by then or soon: Decide decides about
// them.
func (s *Settler) InRange(ctx context.Context, read RangeRead, items []Seen) (*Shown, error) {
	judge := newJudge(s)
	judge.cells.Now = s.Now()
	out := &Shown{}
	open, of := make([]*settling, len(items)), map[string][]*settling{}
	given := map[item]bool{}
	for i := range items {
		x, shown, err := judge.seen(&items[i], &read)
		if err != nil {
			return nil, err
		}
		for _, key := range shown.Rows {
			of[string(key)] = append(of[string(key)], x)
		}
		open[i], out.Items = x, append(out.Items, shown)
		given[item{Table: x.Table, Key: x.Key}] = true
	}
	if read.Part && !read.narrow(out.Items) {
		return out, nil
	}
	rows, err := read.Rows(read.Start, read.End)
	if err != nil {
		return nil, err
	}
	err = rows.Scan(ctx, func(row *Row) error {
		if out.Rows++; out.Rows > read.Limit {
			return ErrManyRows
		}
		if err := judge.lookAtRow(string(row.Key), row, of[string(row.Key)]); err != nil {
			return err
		}
		delete(of, string(row.Key))
		return judge.others(row, given, out)
	})
	if err != nil {
		return nil, fmt.Errorf("read rows of the range: %w", err)
	}
	for key, some := range of { // the target lacks these
		if err := judge.lookAtRow(key, nil, some); err != nil {
			return nil, err
		}
	}
	for i, x := range open {
		// Rule 14: the judge of a look decides here too. A cell that other items may write is not
		// equal.
		v := judge.verdict(x)
		out.Items[i].Kinds, out.Items[i].Equal = v.Kinds, v.Status == Equal
	}
	return out, nil
}

// seen returns an item with the rows that it should have within a range.
func (j *judge) seen(s *Seen, read *RangeRead) (*settling, ShownItem, error) {
	shown := ShownItem{Candidate: Candidate{Table: s.Table}}
	key, err := change.NewKeyReader(j.s.Tables[s.Table].Program.Table().Schema).Of(nil, s.Item)
	if err != nil {
		return nil, shown, fmt.Errorf("read key: %w", err)
	}
	x := &settling{Candidate: &Candidate{Table: s.Table, Key: string(key)}}
	if x.want, err = j.project(s.Table, s.Item); err != nil {
		return nil, shown, err
	}
	shown.Key, shown.All, shown.Refused = x.Key, len(x.want.rows), x.want.refused != ""
	for row := range x.want.rows {
		if read.holds(row) {
			shown.Rows = append(shown.Rows, []byte(row))
		}
	}
	slices.SortFunc(shown.Rows, bytes.Compare)
	return x, shown, nil
}

// others adds the items that a row shows beside the given ones: by a guard, or by cells that remain
// although the guard says that the item is gone. The guards of the row were read before.
func (j *judge) others(row *Row, given map[item]bool, out *Shown) error {
	for i := range j.guards.List {
		g := &j.guards.List[i]
		if !g.Ours() || g.Item.Table == guarded.OtherTable || given[g.Item] {
			continue
		}
		shown := g.Live > g.Dead
		if !shown && len(row.Cells) > 0 {
			gone := &settling{Candidate: &Candidate{Table: g.Item.Table, Key: g.Item.Key}, want: projected{absent: true}}
			if err := j.lookAt(string(row.Key), row, gone); err != nil {
				return err
			}
			shown = gone.seen.owned > 0
		}
		if shown {
			out.addOther(g.Item, row.Key)
		}
	}
	return nil
}

// addOther adds a row of an item that is not among the given ones.
func (s *Shown) addOther(of item, row []byte) {
	i, have := s.others[of]
	if !have {
		if s.others == nil {
			s.others = map[item]int{}
		}
		i, s.Others = len(s.Others), append(s.Others, Candidate{Table: of.Table, Key: of.Key})
		s.others[of] = i
	}
	s.Others[i].Rows = append(s.Others[i].Rows, bytes.Clone(row))
}
