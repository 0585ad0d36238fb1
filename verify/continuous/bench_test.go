package continuous

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
)

// made is a world whose pages and rows are made in advance, so that a benchmark measures the
// comparison alone.
type made struct {
	*world
	pages []*source.ItemPage
	keys  []string // of all rows, in their order
	byKey map[string]*verify.Row
	items map[string][]byte
}

const madePage = 500

func newMade(b *testing.B, mapping string, n int) *made {
	m := &made{world: newWorld(b, mapping), byKey: map[string]*verify.Row{}, items: map[string][]byte{}}
	text := fmt.Sprintf("%0300d", 7)
	for i := range n {
		m.put(fmt.Sprintf("user#%05d", i/10), fmt.Sprintf("%08d", i),
			fmt.Sprintf(`"name":{"S":%q},"price":{"N":"%d"},"stock":{"N":"7"},"color":{"S":"red"}`, text, i))
		if len(m.world.items) < madePage && i < n-1 {
			continue
		}
		p := &source.ItemPage{Done: i == n-1, After: fmt.Sprint(len(m.pages) + 1), Units: madePage / 20}
		if p.Done {
			p.After = ""
		}
		for key, item := range m.world.items {
			p.Items, m.items[key] = append(p.Items, []byte(item)), []byte(item)
		}
		for key := range m.rows {
			m.byKey[key], m.keys = m.row(key), append(m.keys, key)
		}
		m.pages = append(m.pages, p)
		clear(m.world.items)
		clear(m.rows)
	}
	slices.Sort(m.keys)
	return m
}

func (m *made) ScanPage(_ context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	n := 0
	_, _ = fmt.Sscan(r.After, &n) // "" is the first page
	return m.pages[n], nil
}

func (m *made) ReadItemsEventually(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	batch := &source.ItemBatch{Units: float64(len(keys)) / 2}
	for _, key := range keys {
		batch.Items = append(batch.Items, m.items[string(key)])
	}
	return batch, nil
}

func (m *made) ScanFrom(_ context.Context, start string, f func(*verify.Row) error) error {
	from, _ := slices.BinarySearch(m.keys, start)
	for _, key := range m.keys[from:] {
		if err := f(m.byKey[key]); err != nil {
			return err
		}
	}
	return nil
}

func (m *made) Lookup(_ context.Context, keys []string, f func(*verify.Row) error) error {
	for _, key := range keys {
		if err := f(m.byKey[key]); err != nil {
			return err
		}
	}
	return nil
}

func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkContinuous compares equal sides of 20,000 items of about 400 bytes, in pages of 500, in
// each direction.
func BenchmarkContinuous(b *testing.B) {
	const n = 20_000
	for _, mapping := range []struct{ name, text string }{{"own", ""}, {"shared", sharedRows}} {
		m := newMade(b, mapping.text, n)
		for _, direction := range []string{"items", "rows"} {
			b.Run(fmt.Sprintf("rows=%s/from=%s", mapping.name, direction), func(b *testing.B) {
				o := m.options(1e9)
				o.Source, o.Target, o.Segments = m, m, 1
				v := New(o)
				step, d := v.stepItems, &v.items
				if direction == "rows" {
					step, d = v.stepRows, &v.rows
				}
				b.ReportAllocs()
				cpu := processTime(b)
				for b.Loop() {
					d.begin(v.o, time.Now(), d)
					for before := d.Finished; d.Finished == before; {
						if err := step(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				}
				if s := v.Status(); s.Checks+s.Different+s.Foreign > 0 || d.Last == 0 {
					b.Fatalf("%+v", s)
				}
				b.ReportMetric(float64((processTime(b)-cpu).Nanoseconds())/1000/float64(b.N*n), "µs-cpu/item")
			})
		}
	}
}
