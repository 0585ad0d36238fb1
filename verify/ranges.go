package verify

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// CompareRange is Full for one range of the target's rows, where other processes have projected the
// items: records calls add with every record whose row is in the range, in any order and perhaps
// twice, and target.Scan reads the range. Counts has no items.
func CompareRange(
	ctx context.Context, o FullOptions, tables []Table, target Target, records func(add func(Record) error) error,
) (*Findings, error) {
	f := &full{o: o.withDefaults(), tables: tables, target: target, families: guarded.FamiliesOf(tables), inRange: true}
	found, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	if err := f.store(found.runs, records); err != nil {
		return nil, fmt.Errorf("sort the records of a range: %w", err)
	}
	if err := f.merge(ctx, found); err != nil {
		_ = found.Close() // of files that nobody reads
		return nil, err
	}
	return found, nil
}

// store sorts records into a store.
func (f *full) store(store *extsort.Store, records func(add func(Record) error) error) error {
	w, err := store.Writer(0, f.o.Memory)
	if err != nil {
		return err
	}
	err = records(func(r Record) error {
		if w.Add(r); !w.Full() {
			return nil
		}
		return w.Save("", note{}, false)
	})
	if err != nil {
		return err
	}
	return w.Save("", note{}, true)
}

// line is a line of encoded findings. One member is set.
type line struct {
	Item  *itemLine `json:"item,omitempty"`  // a candidate, in a row, for a reason
	Cell  *Open     `json:"cell,omitempty"`  // a cell of the target without a known owner
	Owner *Open     `json:"owner,omitempty"` // a cell that no guard of its row assigns to an item
	End   *endLine  `json:"end,omitempty"`   // the last line: without it the text is cut off
}

type itemLine struct {
	Table int    `json:"table"`
	Key   []byte `json:"key"`
	Row   []byte `json:"row,omitempty"`
	Kind  Kind   `json:"kind"`
}

type endLine struct {
	Counts  Counts   `json:"counts"`
	ByTable []Counts `json:"by_table"`
	Lines   int64    `json:"lines"`
}

// Encode writes the findings as lines of JSON, for Joined. They hold keys.
func (f *Findings) Encode(w io.Writer) error {
	to := bufio.NewWriter(w)
	lines, n := json.NewEncoder(to), int64(0)
	put := func(l line) error { n++; return lines.Encode(l) }
	err := eachRecord(f.items, func(r *Record) error {
		of := itemOf(r.Row)
		return put(line{Item: &itemLine{Table: of.Table, Key: []byte(of.Key), Row: r.Name, Kind: Kind(r.Value)}})
	})
	if err != nil {
		return err
	}
	if err := f.cells.Each(func(o *Open) error { return put(line{Cell: o}) }); err != nil {
		return err
	}
	const batch = 1000
	err = f.unownedCells(batch, func(all []Open) error {
		for i := range all {
			if err := put(line{Owner: &all[i]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := lines.Encode(line{End: &endLine{f.Counts, f.ByTable, n}}); err != nil {
		return err
	}
	return to.Flush()
}

// eachRecord calls f with the records of a store, in order.
func eachRecord(s *extsort.Store, f func(*Record) error) error {
	m, err := s.Merge()
	if err != nil {
		return err
	}
	defer m.Close()
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
}

// Joined joins the findings of all ranges of a target.
type Joined struct {
	full  *full
	found *Findings
	into  *collector
}

// Join begins to join findings. Tables and target are the same as for the ranges; the tables' Parts and
// Page are not used.
func Join(o FullOptions, tables []Table, target Target) (*Joined, error) {
	f := &full{o: o.withDefaults(), tables: tables, target: target, inRange: true}
	found, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	found.ByTable = make([]Counts, len(tables))
	j := &Joined{full: f, found: found}
	j.into, err = f.collect(found, &found.Counts)
	return j, err
}

// errCut means that findings have no end.
var errCut = errors.New("they are cut off")

// errMore means that findings have lines behind their end.
var errMore = errors.New("they are of several ranges")

// Add adds the findings of a range, as Encode has written them. An error leaves the join unusable.
func (j *Joined) Add(r io.Reader) error {
	lines, n := json.NewDecoder(bufio.NewReader(r)), int64(0)
	for ; ; n++ {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read findings: %w", errCut)
		} else if err != nil {
			return fmt.Errorf("read findings: %w", err)
		}
		var err error
		switch {
		case l.Item != nil && l.Item.Table >= 0 && l.Item.Table < len(j.found.tables):
			err = j.into.Candidate(l.Item.Kind, item{Table: l.Item.Table, Key: string(l.Item.Key)}, l.Item.Row)
		case l.Cell != nil:
			err = j.into.cells.Add(*l.Cell)
		case l.Owner != nil:
			err = j.into.addUnowned(l.Owner.Row, l.Owner.Family, l.Owner.Qualifier)
		case l.End != nil && l.End.Lines == n && len(l.End.ByTable) == len(j.found.tables):
			if err := lines.Decode(&l); !errors.Is(err, io.EOF) {
				return fmt.Errorf("read findings: they go on behind line %d, the last one: %w", n+1, cmp.Or(err, errMore))
			}
			j.count(l.End)
			return nil
		default:
			return fmt.Errorf("read findings: line %d is none of this build", n+1)
		}
		if err != nil {
			return err
		}
	}
}

// count adds the counts of a range. Its candidates were counted one by one.
func (j *Joined) count(end *endLine) {
	add := func(c *Counts, n Counts) {
		c.Items, c.Rows, c.Cells, c.Equal = c.Items+n.Items, c.Rows+n.Rows, c.Cells+n.Cells, c.Equal+n.Equal
		c.Kept, c.Foreign, c.Unproven = c.Kept+n.Kept, c.Foreign+n.Foreign, c.Unproven+n.Unproven
		c.Refused, c.Answered = c.Refused+n.Refused, max(c.Answered, n.Answered)
		if n.Began > 0 && (c.Began == 0 || n.Began < c.Began) {
			c.Began = n.Began
		}
	}
	add(&j.found.Counts, end.Counts)
	for i, c := range end.ByTable {
		add(&j.found.ByTable[i], c)
	}
}

// Counted adds items of a table that were read, by the service's clock at a time.
func (c *Counts) Counted(items, refused int64, at change.Millis) {
	n := note{items, refused, at, at}
	n.add(c)
}

// End returns the joined findings. Remove or Close of them must be called.
func (j *Joined) End() (*Findings, error) {
	if err := errors.Join(j.into.items.Save("", nil, true), j.into.rows.Save("", nil, true)); err != nil {
		return nil, err
	}
	j.found.seen, j.found.read = j.found.Counts, j.full.o.Now()
	return j.found, nil
}

// Close closes the files of a join that has failed.
func (j *Joined) Close() error { return j.found.Close() }
