package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// ErrTrimmed is what Settler.Logged returns, perhaps wrapped, where the log does not reach back to
// the time that it is asked for.
var ErrTrimmed = errors.New("the log does not reach back so far")

// rowTries limits how often the rows of a busy item are read until all rows in which the log places
// it are known.
const rowTries = 3

// busy is an item that changes all the time, with its changes in the log.
type busy struct {
	*settling
	rows    map[string]bool // in which it is looked for
	latest  *image          // after the newest change that was proven to be applied before the rows were read
	changed map[change.Version]*image
}

// image is an item as a change left it.
type image struct {
	version change.Version
	want    projected
	unknown bool // the log does not hold the item's attributes
}

// settleByLog decides about items that changed in each of their settlings: the guard of a row names
// a version, the log has that change, and what the mapping makes of the changed item must be in the
// row.
//
// Not every change writes every row of its item. A row whose guard is older than the newest change
// that was proven to be applied before the row was read must be as that change makes it. So a row
// that the item has left is a difference.
func (s *Settler) settleByLog(ctx context.Context, judge *judge, open []*settling, w window, out []Verdict) error {
	if s.Logged == nil {
		return nil
	}
	for some := range slices.Chunk(open, keysPerGet) {
		list := make([]*busy, len(some))
		for i, x := range some {
			list[i] = &busy{settling: x, rows: map[string]bool{}, changed: map[change.Version]*image{}}
			for row := range x.want.rows {
				list[i].rows[row] = true
			}
			for _, row := range x.Rows {
				list[i].rows[string(row)] = true
			}
		}
		if err := s.compareLogged(ctx, judge, list, w, out); err != nil {
			return err
		}
	}
	return nil
}

// window is the time of some settlings, by the service's clock.
type window struct {
	began  change.Millis // before the first of them
	proven change.Millis // the target had every change of the items that was created up to then
}

// compareLogged compares the rows of busy items with the log.
func (s *Settler) compareLogged(ctx context.Context, judge *judge, list []*busy, w window, out []Verdict) error {
	for try := 1; ; try++ {
		rows, err := judge.readRows(ctx, list)
		if err != nil {
			return err
		}
		if err := s.readLog(ctx, judge, list, w); errors.Is(err, ErrTrimmed) {
			for _, x := range list {
				out[x.at].Why = fmt.Sprintf("%s, and %v", busyItem, err)
			}
			return nil
		} else if err != nil {
			return err
		}
		more := false
		for _, x := range list {
			more = x.addRows() || more
		}
		if !more || try == rowTries {
			return judge.compareBusy(list, rows, out)
		}
	}
}

// readRows reads the rows of busy items, and notes the versions that their guards name.
func (j *judge) readRows(ctx context.Context, list []*busy) (map[string]*Row, error) {
	var keys []string
	for _, x := range list {
		clear(x.changed)
		for row := range x.rows {
			keys = append(keys, row)
		}
	}
	slices.Sort(keys)
	j.cells.Now = j.s.Now()
	rows := map[string]*Row{}
	err := j.inOrder(ctx, slices.Compact(keys), func(row *Row) error {
		c := row.Clone()
		rows[string(c.Key)] = c
		j.guards.Read(c)
		for _, x := range list {
			if g := j.guards.Find(item{Table: x.Table, Key: x.Key}); g.Guarded {
				x.changed[max(g.Live, g.Dead)] = nil
			}
		}
		return nil
	}, func(string) error { return nil })
	return rows, err
}

// readLog reads what became of busy items by the changes that their guards name, and by the newest
// one that is proven to be applied.
func (s *Settler) readLog(ctx context.Context, judge *judge, list []*busy, w window) error {
	byTable := map[int][]*busy{}
	for _, x := range list {
		x.latest = nil
		byTable[x.Table] = append(byTable[x.Table], x)
	}
	for table, some := range byTable {
		keys := make([][]byte, len(some))
		for i, x := range some {
			keys[i] = []byte(x.Key)
		}
		latest := make([]*logged, len(some))
		name := s.Tables[table].Program.Table().Source
		err := s.Logged(ctx, name, w.began, keys, func(i int, c *change.Change) error {
			x := some[i]
			if _, named := x.changed[c.Version]; named {
				img, err := judge.imageOf(table, newLogged(c))
				if err != nil {
					return err
				}
				x.changed[c.Version] = img
			}
			if c.Created <= w.proven && (latest[i] == nil || latest[i].version < c.Version) {
				latest[i] = newLogged(c)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read log of %s: %w", name, err)
		}
		for i, l := range latest {
			if l == nil {
				continue
			}
			if some[i].latest, err = judge.imageOf(table, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// logged is what is kept of a change.
type logged struct {
	version change.Version
	op      change.Op
	after   []byte // the item, nil without one
}

func newLogged(c *change.Change) *logged {
	return &logged{version: c.Version, op: c.Op, after: bytes.Clone(c.New)}
}

func (j *judge) imageOf(table int, l *logged) (*image, error) {
	if l.op != change.Remove && l.after == nil {
		return &image{version: l.version, unknown: true}, nil
	}
	want, err := j.project(table, l.after)
	return &image{version: l.version, want: want}, err
}

// addRows adds the rows in which the log places the item, and reports whether any of them was new.
func (x *busy) addRows() (more bool) {
	if x.latest == nil {
		return false
	}
	for row := range x.latest.want.rows {
		if !x.rows[row] {
			x.rows[row], more = true, true
		}
	}
	return more
}

const busyItem = "it changed during each of its settlings"

// compareBusy compares rows with their expected content according to the log.
func (j *judge) compareBusy(list []*busy, rows map[string]*Row, out []Verdict) error {
	for _, x := range list {
		kept, why, err := j.compareOne(x, rows)
		if err != nil {
			return err
		}
		if v := &out[x.at]; why != "" {
			v.Why = fmt.Sprintf("%s, and %s", busyItem, why)
		} else {
			*v = Verdict{Table: x.Table, Key: x.Key, Status: EqualByLog, Kept: kept}
		}
	}
	return nil
}

// compareOne returns why it is not proven that the rows hold the item, or "".
func (j *judge) compareOne(x *busy, rows map[string]*Row) (kept int, why string, err error) {
	if x.latest == nil {
		return 0, "the log has no change of it that is known to be applied", nil
	}
	for key := range x.rows {
		row, img := rows[key], x.latest
		j.guards.List = j.guards.List[:0]
		if row != nil {
			j.guards.Read(row)
		}
		if g := j.guards.Find(item{Table: x.Table, Key: x.Key}); g.Guarded {
			if v := max(g.Live, g.Dead); v > img.version {
				img = x.changed[v]
			}
		}
		switch {
		case img == nil:
			return 0, "the log has no change with the version that the guard of its row names", nil
		case img.unknown:
			return 0, "the log does not hold its attributes", nil
		}
		y := &settling{Candidate: x.Candidate, want: img.want}
		if err := j.lookAt(key, row, y); err != nil {
			return 0, "", err
		}
		v := j.verdict(y)
		if kept += v.Kept; v.Status != Equal && v.Status != Kept {
			return 0, fmt.Sprintf("its row is not what the log says: %s %v", v.Status, v.Kinds), nil
		}
	}
	return kept, "", nil
}
