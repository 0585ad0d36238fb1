package bigtable_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// merging is a table with a family of each kind of aggregate.
func (r *rig) merging() *bigtable.Table {
	r.t.Helper()
	number := bigtable.Int64Type{Encoding: bigtable.BigEndianBytesEncoding{}}
	families := map[string]bigtable.Family{}
	for name, how := range map[string]bigtable.Aggregator{"sum": bigtable.SumAggregator{},
		"max": bigtable.MaxAggregator{}, "min": bigtable.MinAggregator{}} {
		families[name] = bigtable.Family{ValueType: bigtable.AggregateType{Input: number, Aggregator: how}}
	}
	if err := r.admin.CreateTableFromConf(r.t.Context(), &bigtable.TableConf{TableID: "merging",
		ColumnFamilies: families}); err != nil {
		r.t.Fatal(err)
	}
	return r.data.Open("merging")
}

func adding(values ...int64) *bigtable.Mutation {
	m := bigtable.NewMutation()
	for _, v := range values {
		for _, family := range []string{"sum", "max", "min"} {
			m.AddIntToCell(family, "q", 0, v)
		}
	}
	return m
}

func numbers(t *testing.T, table *bigtable.Table) map[string]int64 {
	t.Helper()
	row, err := table.ReadRow(t.Context(), "row")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for family, cells := range row {
		got[family] = int64(binary.BigEndian.Uint64(cells[0].Value))
	}
	return got
}

func TestAggregatesKeepTheBestOfManyWriters(t *testing.T) {
	r := newRig(t)
	table := r.merging()
	var g errgroup.Group
	for _, v := range []int64{5, -3, 9, 3, 9} {
		g.Go(func() error { return table.Apply(t.Context(), "row", unless(adding(v))) })
	}
	g.Go(func() error {
		errs, err := table.ApplyBulk(t.Context(), []string{"row", "row"}, []*bigtable.Mutation{adding(2, 11), adding(4)})
		if errs != nil {
			t.Error(errs)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"sum": 40, "max": 11, "min": -3}
	for family, v := range numbers(t, table) {
		if v != want[family] {
			t.Errorf("%s is %d, want %d", family, v, want[family])
		}
	}
	if n := len(numbers(t, table)); n != len(want) {
		t.Errorf("%d families hold something, want %d", n, len(want))
	}
}

// unless is a conditional write whose condition never holds against it.
func unless(m *bigtable.Mutation) *bigtable.Mutation {
	return bigtable.NewCondMutation(bigtable.ValueFilter("never"), nil, m)
}

func TestAggregatesAndPlainCellsDoNotMix(t *testing.T) {
	r := newRig(t)
	table := r.merging()
	plain := bigtable.NewMutation()
	plain.Set("max", "q", 0, []byte("12345678"))
	wantCode(t, table.Apply(t.Context(), "row", plain), codes.InvalidArgument)
	merge := bigtable.NewMutation()
	merge.AddIntToCell("d", "q", 0, 1)
	wantCode(t, r.table.Apply(t.Context(), "row", merge), codes.InvalidArgument)
}

func TestAggregatesSurviveARestart(t *testing.T) {
	r := newRig(t)
	if err := r.merging().Apply(t.Context(), "row", adding(7)); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := r.front.Save(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	again := &rig{t: t, front: openFront(t, nil)}
	if err := again.front.Restore(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	again.connect()
	table := again.data.Open("merging")
	if err := table.Apply(t.Context(), "row", adding(6)); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, table); got["max"] != 7 || got["min"] != 6 || got["sum"] != 13 {
		t.Errorf("after a restart: %v", got)
	}
}
