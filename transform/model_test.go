package transform

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// model is Bigtable in a few lines: rows of cells, one atomic conditional write per row, the way
// the sink does it. It keeps all versions, so that tests see what garbage collection would hide.
type model struct {
	rows   map[string]*modelRow
	minima map[string]bool // families whose aggregate is min
}

type modelRow struct{ cells []modelCell }

type modelCell struct {
	family, qual string
	time         int64
	value        string
	mapped       bool
}

func newModel() *model { return &model{rows: map[string]*modelRow{}, minima: map[string]bool{}} }

func (m *model) keys() []string {
	out := make([]string, 0, len(m.rows))
	for k := range m.rows {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// apply does what the sink does with a Write, row by row.
func (m *model) apply(t tb, w *Write) {
	t.Helper()
	for i := range w.Rows {
		m.row(t, w, &w.Rows[i])
	}
}

func (m *model) row(t tb, w *Write, r *Row) {
	t.Helper()
	row := m.rows[string(r.Key)]
	if row == nil {
		row = &modelRow{}
		m.rows[string(r.Key)] = row
	}
	guard := string(w.Item.Guard[:])
	if r.Class == ClassR {
		guard = "i"
	}
	newer := slices.ContainsFunc(row.cells, func(c modelCell) bool {
		return (c.family == LiveFamily || c.family == DeadFamily) && c.qual == guard && change.Version(c.time) >= w.Version
	})
	if newer { // Rule 6
		for _, d := range r.Deletes {
			if d.Versioned {
				row.remove(Delete{Family: d.Family, Qualifier: d.Qualifier, From: 0, To: int64(w.Version)})
			}
		}
		m.drop(string(r.Key), row)
		return
	}
	if r.Exclusive {
		row.cells = slices.DeleteFunc(row.cells, func(c modelCell) bool { return !slices.Contains(r.KeepHistory, c.family) })
	}
	for _, d := range r.Deletes {
		if d.To != 0 && d.To <= d.From {
			t.Fatalf("row %q: delete range [%d, %d) is empty or backwards", r.Key, d.From, d.To)
		}
		row.remove(d)
	}
	for _, c := range r.Cells {
		at := c.Time
		if !c.Mapped {
			at = int64(w.Version)
		}
		if c.Aggregate && row.keeps(c, at, m.minima[c.Family]) {
			continue
		}
		row.set(modelCell{family: c.Family, qual: string(c.Qualifier), time: at, value: string(c.Value), mapped: c.Mapped})
	}
	mark := modelCell{family: LiveFamily, qual: guard, time: int64(w.Version),
		value: w.Item.Table + "\x00" + string(w.Item.Key)}
	if r.Left {
		mark.family = DeadFamily
	}
	row.remove(Delete{Family: LiveFamily, Qualifier: []byte(guard), From: 0, To: int64(w.Version + 1)})
	row.set(mark)
	m.drop(string(r.Key), row)
}

func (m *model) drop(key string, row *modelRow) {
	if len(row.cells) == 0 {
		delete(m.rows, key)
	}
}

func (r *modelRow) remove(d Delete) {
	r.cells = slices.DeleteFunc(r.cells, func(c modelCell) bool {
		return c.family == d.Family && (d.Qualifier == nil || c.qual == string(d.Qualifier)) &&
			((d.From == 0 && d.To == 0) || (c.time >= d.From && c.time < d.To))
	})
}

// keeps says that the aggregate already holds more, or less for a minimum. (A sketch of distinct
// values keeps the greatest one here.)
func (r *modelRow) keeps(c Cell, at int64, minimum bool) bool {
	return slices.ContainsFunc(r.cells, func(o modelCell) bool {
		return o.family == c.Family && o.qual == string(c.Qualifier) && o.time == at && o.value != string(c.Value) &&
			minimum == (o.value < string(c.Value))
	})
}

func (r *modelRow) set(c modelCell) {
	r.remove(Delete{Family: c.family, Qualifier: []byte(c.qual), From: c.time, To: c.time + 1})
	r.cells = append(r.cells, c)
}

// tb is what helpers need of a test, so that rapid's T will do.
type tb interface {
	Helper()
	Log(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// plain is what a reader sees who knows nothing of versions: the newest cell of every column; where
// siblings share a column, every cell of it.
func (m *model) plain(siblings map[string]bool) map[string]string {
	out := map[string]string{}
	newest := map[string]int64{}
	for key, row := range m.rows {
		for _, c := range row.cells {
			if c.family == LiveFamily || c.family == DeadFamily {
				continue
			}
			at := key + "|" + c.family + ":" + c.qual
			if siblings[c.family] && c.mapped {
				out[fmt.Sprintf("%s@%d", at, c.time)] = c.value
				continue
			}
			if t, seen := newest[at]; !seen || c.time >= t {
				newest[at], out[at] = c.time, c.value
			}
		}
	}
	return out
}

// projection is what a plain reader should see, given the items that exist.
func projection(t tb, p *Program, items map[string]string, siblings map[string]bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, item := range items {
		rows, err := p.Project(image(t, []byte(item)))
		if err != nil {
			t.Fatalf("project %s: %v", item, err)
		}
		for _, r := range rows {
			for _, c := range r.Cells {
				at := string(r.Key) + "|" + c.Family + ":" + string(c.Qualifier)
				if siblings[c.Family] && c.Mapped {
					at = fmt.Sprintf("%s@%d", at, c.Time)
				}
				if _, taken := out[at]; taken {
					t.Fatalf("two items share the cell %q", at)
				}
				out[at] = string(c.Value)
			}
		}
	}
	return out
}

func itoa(i int) string { return fmt.Sprint(i) }

func diffWrites(a, b *Write) string { return cmp.Diff(a, b, cmpopts.IgnoreUnexported(Write{})) }
