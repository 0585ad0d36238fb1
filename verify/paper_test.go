package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// The times of cells and guards on paper: cells of a family with max_age: 1h age at noon, so old
// ones have aged away. Those at late are the newest that may be.
const (
	noon = change.Millis(2 * 3_600_000)
	late = noon + 3_600_000
)

var paperTimes = map[string]change.Millis{"old": 1, "new": noon - 1000, "late": late, "future": late + 1,
	"later": late + 2}

// paper is a world without servers. Rows are written as text, separated by "; ": cells like
// "d:x@new=1", the guard "live q@new=S/a" of item a of table S (of another pipeline: "live
// q@new=other:S/a"), and its tombstone "dead q@new=S/a". Tables are called S and T, their partition
// key is always p, and items are named by their sort key.
type paper struct {
	t      *testing.T
	tables []Table
	rows   map[string]string
	items  []map[string]string      // by table, by sort key: attributes, as in `"x":{"S":"1"}`
	during func()                   // the proof
	late   map[string]change.Millis // by table: how much after noon its items are read
	proven []change.Millis          // up to when proofs were asked for
	reads  int
	pauses int
}

func newPaper(t *testing.T, mappings ...string) *paper {
	t.Helper()
	p := &paper{t: t, rows: map[string]string{}, during: func() {}}
	for i, text := range mappings {
		m, problems := transform.ParseMapping("test.yaml", []byte(text))
		if m == nil {
			t.Fatal(problems)
		}
		program, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "ST"[i : i+1], Target: target,
			Schema: schema, View: "NEW_AND_OLD_IMAGES", Mapping: m})
		if program == nil {
			t.Fatal(problems)
		}
		p.tables = append(p.tables, Table{Program: program, Parts: 1, Outlives: program.Outlives})
		p.items = append(p.items, map[string]string{})
	}
	return p
}

// Scan implements Target.
func (p *paper) Scan(context.Context, func(*Row) error) error {
	return errors.New("rows on paper are looked up")
}

// Lookup implements Target.
func (p *paper) Lookup(_ context.Context, keys []string, f func(*Row) error) error {
	if !slices.IsSorted(keys) {
		return fmt.Errorf("rows are looked up out of order: %q", keys)
	}
	for _, key := range keys {
		text, ok := p.rows[key]
		if !ok {
			continue
		}
		if err := f(p.row(key, text)); err != nil {
			return err
		}
	}
	return nil
}

func (p *paper) row(key, text string) *Row {
	row := &Row{Key: []byte(key)}
	for _, one := range strings.Split(text, "; ") {
		kind, place, _ := strings.Cut(one, " ")
		if kind != "live" && kind != "dead" {
			kind, place = "", one
		}
		place, value, _ := strings.Cut(place, "=")
		column, at, _ := strings.Cut(place, "@")
		ms, ok := paperTimes[at]
		if _, err := fmt.Sscan(at, &ms); err != nil && !ok {
			p.t.Fatalf("row %s: %s: %v", key, one, err)
		}
		c := bigtable.Cell{Qualifier: []byte(column), Time: ms.Time(), Value: []byte(value)}
		switch kind {
		case "live":
			c.Family = transform.LiveFamily
			row.Live = append(row.Live, c)
		case "dead":
			c.Family = transform.DeadFamily
			row.Dead = append(row.Dead, c)
		default:
			family, qualifier, _ := strings.Cut(column, ":")
			c.Family, c.Qualifier = family, []byte(qualifier)
			row.Cells = append(row.Cells, c)
		}
	}
	return row
}

// GuardOf implements Target.
func (p *paper) GuardOf(value, _, _ []byte) (bigtable.Guard, error) {
	pipeline, text := "p", string(value)
	if other, rest, ok := strings.Cut(text, ":"); ok {
		pipeline, text = other, rest
	}
	table, sk, ok := strings.Cut(text, "/")
	if !ok {
		return bigtable.Guard{}, errors.New("not a guard")
	}
	return bigtable.Guard{Pipeline: pipeline, Table: table, Key: []byte(keyOf("p", sk))}, nil
}

func (p *paper) settler() *Settler {
	return &Settler{Tables: p.tables, Target: p, Cells: 20, Values: 20, Lead: late - noon,
		ReadItems: func(_ context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
			p.reads++
			b := &source.ItemBatch{Requested: noon, Answered: noon + p.late[table]}
			for _, key := range keys {
				b.Items = append(b.Items, p.item(strings.Index("ST", table), string(key)))
			}
			return b, nil
		},
		Prove: func(_ context.Context, at change.Millis) error {
			p.proven = append(p.proven, at)
			p.during()
			return nil
		},
		Now:   func() change.Millis { return noon },
		Pause: func(context.Context, time.Duration) error { p.pauses++; return nil },
	}
}

func (p *paper) item(table int, key string) []byte {
	for sk, rest := range p.items[table] {
		if keyOf("p", sk) == key {
			return []byte(strings.TrimSuffix(key, "}") + "," + rest + "}")
		}
	}
	return nil
}

// verdict settles an item, whose candidate names some rows, and returns what is found as text:
// status, kinds, rows.
func (p *paper) verdict(table int, sk string, rows ...string) (text string, v Verdict) {
	p.t.Helper()
	c := Candidate{Table: table, Key: keyOf("p", sk)}
	for _, row := range rows {
		c.Rows = append(c.Rows, []byte(row))
	}
	all, err := p.settler().Settle(p.t.Context(), []Candidate{c})
	if err != nil {
		p.t.Fatal(err)
	}
	v = all[0]
	text = string(v.Status)
	for _, kind := range v.Kinds {
		text += " " + string(kind)
	}
	for _, row := range v.Rows {
		text += " " + string(row)
	}
	if v.Kept > 0 {
		text += fmt.Sprint(" kept ", v.Kept)
	}
	return text, v
}
