package launch

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// tally adds up the marks of an order.
type tally struct {
	order  *delegation.Order
	wanted int // files
	rows   []sum

	sum
}

// sum is what the marks of some files add up to.
type sum struct {
	files                                int
	items, bytes, written, skipped, back int64
	complete                             bool // of one row: it is not read again
}

func (s *sum) add(o sum) {
	s.files += o.files
	s.items += o.items
	s.bytes += o.bytes
	s.written += o.written
	s.skipped += o.skipped
	s.back += o.back
}

func newTally(o *delegation.Order) *tally {
	t := &tally{order: o, rows: make([]sum, delegation.Rows(o.Export.Files))}
	for n := range o.Export.Files {
		if o.Needs(n) {
			t.wanted++
		}
	}
	return t
}

func (t *tally) complete() bool { return t.files == t.wanted }

// read reads the rows that were not complete.
func (t *tally) read(ctx context.Context, c *bigtable.Client) error {
	for i := range t.rows {
		if t.rows[i].complete {
			continue
		}
		var s sum
		err := c.LoadFileMarks(ctx, t.order, i, nil, func(file int, m *delegation.FileMark) error {
			if t.order.Needs(file) {
				s.add(sum{
					files: 1, items: m.Items, bytes: m.Bytes, written: m.Rows, skipped: m.Skipped, back: int64(len(m.HandedBack)),
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.complete = s.files == t.wantedIn(i)
		t.rows[i] = s
	}
	t.sum = sum{}
	for _, s := range t.rows {
		t.add(s)
	}
	return nil
}

// wantedIn returns how many files of a row are to be copied.
func (t *tally) wantedIn(row int) (n int) {
	for file := row * delegation.FilesPerRow; file < (row+1)*delegation.FilesPerRow; file++ {
		if t.order.Needs(file) {
			n++
		}
	}
	return n
}

func (t *tally) summary() string {
	return fmt.Sprintf("%d of %d files, %d items, %d rows written, %d rows left as they were, %d items handed back",
		t.files, t.wanted, t.items, t.written, t.skipped, t.back)
}
