package pipeline_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

func target(table string) string { return strings.ToLower(table) }

// equal compares the source with Bigtable, cell by cell, as a plain reader sees them.
func (r *run) equal(names ...string) {
	r.t.Helper()
	if len(names) == 0 {
		names = r.names
	}
	for _, name := range names {
		want, got := r.projected(name), r.stored(name)
		if diff := cmp.Diff(want, got); diff != "" {
			r.t.Fatalf("table %s: source (-) and Bigtable (+) differ:\n%s", name, diff)
		}
		r.t.Logf("table %s: %d rows equal", name, len(want))
	}
}

// untilEqual waits until a table is equal, where another one of the run never settles.
func (r *run) untilEqual(name string) {
	r.t.Helper()
	r.until("table "+name+" is equal", func() bool { return cmp.Equal(r.projected(name), r.stored(name)) })
}

func (r *run) projected(name string) map[string][]string {
	r.t.Helper()
	ctx := context.Background()
	info, err := r.src.Table(ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	prog, err := r.compile(name)(info)
	if err != nil {
		r.t.Fatal(err)
	}
	rows := map[string][]string{}
	dec := new(change.Decoder)
	for page, err := range r.src.Scan(ctx, name, 0, 1) {
		if err != nil {
			r.t.Fatal(err)
		}
		for _, raw := range page.Items {
			img, err := dec.Image(raw)
			if err != nil {
				r.t.Fatal(err)
			}
			projected, err := prog.Project(img)
			if err != nil {
				r.t.Fatalf("project %s: %v", raw, err)
			}
			for _, row := range projected {
				rows[string(row.Key)] = append(rows[string(row.Key)], []string{}...)
				for _, c := range row.Cells {
					rows[string(row.Key)] = append(rows[string(row.Key)], fmt.Sprintf("%s:%q=%q", c.Family, c.Qualifier, c.Value))
				}
			}
		}
	}
	return sorted(rows)
}

// viewsOf returns how a plain reader reads the target of a table. Readers that poll ask again and
// again.
func (r *run) viewsOf(ctx context.Context, name string) (views []bigtable.View) {
	r.t.Helper()
	key := name + r.mapping
	if known, ok := r.views.Load(key); ok {
		return known.([]bigtable.View)
	}
	info, err := r.src.Table(ctx, name)
	if err != nil {
		r.t.Fatal(err)
	}
	prog, err := r.compile(name)(info)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range prog.Families() {
		views = append(views, bigtable.View{Family: f.Name, Versions: 1})
	}
	r.views.Store(key, views)
	return views
}

func (r *run) stored(name string) map[string][]string {
	r.t.Helper()
	ctx := context.Background()
	rows := map[string][]string{}
	err := r.sink.Rows(ctx, target(name), "", "", r.viewsOf(ctx, name), func(row *bigtable.Row) error {
		for _, c := range row.Cells {
			rows[string(row.Key)] = append(rows[string(row.Key)], fmt.Sprintf("%s:%q=%q", c.Family, bytes.Clone(c.Qualifier),
				c.Value))
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return sorted(rows)
}

func sorted(rows map[string][]string) map[string][]string {
	for key, cells := range rows {
		if len(cells) == 0 {
			delete(rows, key) // an item of keys alone shows no cell to a plain reader
			continue
		}
		slices.Sort(cells)
	}
	return rows
}

// changeItems makes n seeded changes to items of a table: puts with changing attributes, removals
// of attributes, deletes, hot keys.
func (w *world) changeItems(table string, seed uint64, n int) {
	w.t.Helper()
	w.t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 7))
	for i := range n {
		item := rnd.IntN(40)
		if rnd.IntN(4) == 0 {
			item = rnd.IntN(3) // hot
		}
		pk, sk := fmt.Sprintf("p#%d", item%7), fmt.Sprintf("s%d", item)
		switch rnd.IntN(10) {
		case 0, 1:
			w.delete(table, pk, sk)
		case 2, 3:
			w.post("UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{"pk":{"S":%q},"sk":{"S":%q}},
				"UpdateExpression":"SET u = :u REMOVE a%d","ExpressionAttributeValues":{":u":{"N":"%d"}}}`,
				table, pk, sk, rnd.IntN(4), i))
		default:
			w.put(table, pk, sk, fmt.Sprintf(`"v":{"N":"%d"},"a%d":{"S":"%d"},"a%d":{"BOOL":true}`, i, rnd.IntN(2), i,
				2+rnd.IntN(2)))
		}
	}
}
