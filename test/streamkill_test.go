package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// streamFolders returns the folders of the streams in the embedded store.
func (w *world) streamFolders(pattern string) []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, "data/jetstream/*/streams", pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// killWhen kills a daemon at the moment at which a condition holds. It looks without a pause: what
// it looks for is over in a millisecond.
func (d *daemon) killWhen(condition func() bool) {
	d.w.t.Helper()
	for !condition() {
		select {
		case <-d.ended:
			d.w.t.Fatalf("the daemon ended: %v\n%s", d.cmd.ProcessState, tail(d.output.String(), 20))
		default:
		}
	}
	d.kill()
}

// Attack 82: the daemon is killed each time the server has just made the folder of another stream,
// and then while it changes a stream. Each next start opens the store, and nothing is lost.
func TestKilledWhileStreamsAreMadeAndChanged(t *testing.T) {
	long(t, "starts seven tables ten times")
	w := newWorld(t, 282)
	var tables []string
	w.tables = nil
	for i := range 7 {
		name := fmt.Sprintf("Orders%d", i)
		tables = append(tables, name)
		w.tables = append(w.tables, fmt.Sprintf("{source: %s, target: orders%d}", name, i))
	}
	w.prepare(tables...)
	write := func(round int) {
		for _, name := range tables {
			w.Put(name, "hats", fmt.Sprint(round), `"n":{"N":"1"}`)
		}
	}
	for k := 1; k <= 7; k++ {
		write(k)
		before := len(w.streamFolders("TAILRACE_*"))
		w.run().killWhen(func() bool { return len(w.streamFolders("TAILRACE_*")) > before || before >= 7 })
	}
	d := w.run()
	d.settle(tables...)
	d.stop()
	for round, limit := range []string{"96MiB", "128MiB", "160MiB"} {
		w.queue = "{dir: ./data, max_bytes: " + limit + "}"
		w.configure()
		write(100 + round)
		old := w.descriptions()
		w.run().killWhen(func() bool { return w.descriptions() != old })
	}
	d = w.run()
	d.settle(tables...)
	d.checkClean()
	d.stop()
	for _, name := range tables {
		w.Equal(name)
	}
}

// descriptions returns what the store holds as the descriptions of all logs.
func (w *world) descriptions() string {
	w.t.Helper()
	var all bytes.Buffer
	for _, folder := range w.streamFolders("TAILRACE_*") {
		b, err := os.ReadFile(filepath.Join(folder, "meta.inf"))
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// The log of one table lost its description on the disk. That table halts and names `recover`, the
// others go on. After `recover` its folder is set aside, with all it holds, and the table is
// replicated again.
func TestLogThatCannotBeOpenedHaltsItsTableAlone(t *testing.T) {
	w := newWorld(t, 283)
	w.tables = []string{"{source: Orders, target: orders}", "{source: Others, target: others}"}
	w.prepare("Orders", "Others")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders", "Others")
	d.stop()
	folders := w.streamFolders("TAILRACE_shop_Orders_????????")
	if len(folders) != 1 {
		t.Fatal(folders)
	}
	if err := os.Remove(filepath.Join(folders[0], "meta.inf")); err != nil {
		t.Fatal(err)
	}
	d = w.run()
	d.until("the table halts", func() bool {
		st := d.table("Orders")
		return st.Code == "log_refused" && strings.Contains(st.Halt, "replicator recover")
	})
	w.Put("Others", "hats", "beret", `"n":{"N":"2"}`)
	d.settle("Others")
	if code, body := d.get("/livez"); code != 200 {
		t.Errorf("livez %d: %s", code, body)
	}
	w.ok("recover", "--table", "Orders", "--yes")
	w.Put("Orders", "hats", "cap", `"n":{"N":"3"}`)
	d.until("the table is compared", func() bool {
		d.hasten(5e9)
		s, ok := d.status()
		return ok && s.Ready
	})
	d.settle("Orders", "Others")
	d.stop()
	w.Equal("Orders")
	w.Equal("Others")
	aside, err := filepath.Glob(filepath.Join(w.dir, "data/set-aside", filepath.Base(folders[0])+".*", "msgs", "*.blk"))
	if err != nil || len(aside) == 0 {
		t.Errorf("set aside: %v, %v", aside, err)
	}
}
