package pipeline_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
)

// replica is a process of a pipeline that has several.
type replica struct {
	*run
	name string
}

// replica starts one more process of the pipeline.
func (w *world) replica(name string, tables ...string) *replica {
	w.t.Helper()
	w.opts = func(o *pipeline.Options) { o.Owner = name }
	return &replica{w.start(tables...), name}
}

// owned returns the tables that the process carries.
func (r *replica) owned() (tables []string) {
	for _, st := range r.p.Status().Tables {
		if st.State != status.StandBy && st.Owner == r.name {
			tables = append(tables, st.Source)
		}
	}
	return tables
}

// TestReplicasShareTheTables: processes that start together divide the tables, one that ends hands
// its tables over, and one that comes later gets its share. Nothing is lost meanwhile.
func TestReplicasShareTheTables(t *testing.T) {
	long(t, "35 s")
	w := newWorld(t)
	w.patient()
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL, o.MaxBytes, o.LettersMaxBytes = "", url, 64<<20, 16<<20 }
	var tables []string
	for i := range 6 {
		tables = append(tables, fmt.Sprintf("Table%d", i))
		w.createTable(tables[i])
	}
	n := 0
	write := func() {
		for _, table := range tables {
			for range 5 {
				w.put(table, fmt.Sprint("p", n%7), "s", fmt.Sprintf(`"n":{"N":"%d"}`, n))
				n++
			}
		}
	}
	a, b, c := w.replica("a", tables...), w.replica("b", tables...), w.replica("c", tables...)
	share := func(want int, all ...*replica) {
		t.Helper()
		write()
		all[0].until(fmt.Sprintf("each of %d processes carries %d tables", len(all), want), func() bool {
			return !slices.ContainsFunc(all, func(r *replica) bool { return len(r.owned()) != want })
		})
	}
	share(2, a, b, c)
	write()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	share(3, a, c)
	if n := w.logged.FilterMessage("released the log").Len(); n != 0 {
		t.Errorf("%d logs were released to nobody at the end of a process", n)
	}
	d := w.replica("d", tables...)
	share(2, a, c, d)
	write()
	for _, r := range []*replica{a, c} {
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	share(6, d)
	d.settle()
	for _, table := range tables {
		d.equal(table)
	}
}
