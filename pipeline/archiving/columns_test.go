package archiving

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// column returns an edit of the options that configures columns of the attributes with their names.
func column(types map[string]object.Type) func(*Options) {
	return func(o *Options) {
		for name, kind := range types {
			o.Form.Columns = append(o.Form.Columns, object.Column{Name: name, Path: []string{name}, Type: kind})
		}
	}
}

// columnsOf returns the configured columns of each object, in the order of their names.
func (w *world) columnsOf(objects []string) (all []string) {
	w.t.Helper()
	for _, name := range objects {
		f, err := os.Open(filepath.Join(w.dir, name))
		must(w.t, err)
		info, err := f.Stat()
		must(w.t, err)
		p, err := parquet.OpenFile(f, info.Size())
		must(w.t, err)
		var columns []string
		for _, field := range p.Schema().Fields() {
			if n := field.Name(); n == "a" || n == "b" {
				columns = append(columns, n)
			}
		}
		slices.Sort(columns)
		all = append(all, fmt.Sprint(columns))
		must(w.t, f.Close())
	}
	return all
}

// TestColumnsAreOnlyAdded: a column that the configuration has no more stays in new objects. One of
// another type halts the objects until it has another name.
func TestColumnsAreOnlyAdded(t *testing.T) {
	w := newWorld(t)
	hour := 0
	archive := func(types map[string]object.Type, want string) {
		t.Helper()
		before, _ := w.names()
		w.edit = column(types)
		r := w.start()
		r.store(w.deleted(hour, 6))
		w.proven(r.closed(hour))
		r.end()
		hour++
		after, _ := w.names()
		made := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) })
		for i, columns := range w.columnsOf(made) {
			if columns != want {
				t.Errorf("%s has the columns %s, want %s", made[i], columns, want)
			}
		}
	}
	archive(nil, "[]")
	archive(map[string]object.Type{"a": object.String}, "[a]")
	archive(map[string]object.Type{"b": object.Int64}, "[a b]")
	archive(nil, "[a b]")

	w.edit = column(map[string]object.Type{"a": object.Double})
	r := w.start()
	r.store(w.deleted(hour, 6))
	w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == CodeColumns })
	r.end()
	w.edit = column(map[string]object.Type{"a": object.String})
	r = w.start()
	w.proven(r.closed(hour))
	w.await("the objects go on", func() bool { return w.halted(SinkObjects) == "" })
	r.end()
}
