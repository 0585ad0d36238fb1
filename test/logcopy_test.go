package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// printed matches a command that a message names.
var printed = regexp.MustCompile("`replicator ([^`]+)`")

// followAdvice runs the command that a text names, and confirms it.
func (w *world) followAdvice(text string) {
	w.t.Helper()
	m := printed.FindStringSubmatch(text)
	if m == nil {
		w.t.Fatalf("no command is named: %s", text)
	}
	w.ok(append(strings.Fields(m[1]), "--yes")...)
}

// untilReady waits until all is well again.
func (d *daemon) untilReady() {
	d.w.t.Helper()
	d.until("it is ready", func() bool {
		d.hasten(5 * time.Second)
		s, ok := d.status()
		return ok && s.Ready
	})
}

// Attack 97: the directory of the log is put back to an older copy. With it would go back what was
// decided since: here a pause and a resync that is to come. It is said instead, with the command
// that makes all well.
func TestOlderCopyOfTheDirectoryIsSaid(t *testing.T) {
	long(t, "starts a daemon four times, and reads the table again")
	w := newWorld(t, 297)
	w.prepare("Orders")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	data := filepath.Join(w.dir, "data")
	sink := w.openPair().sink
	noted := func() uint64 { // the entry up to which the log is noted
		note, err := sink.LoadLogNote(t.Context(), "shop", "Orders")
		if err != nil {
			t.Fatal(err)
		}
		if note == nil {
			return 0
		}
		return note.Seq
	}
	d := w.run()
	d.settle("Orders")
	d.stop()
	first := noted()
	if err := os.CopyFS(data+".old", os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	d = w.run()
	d.settle("Orders")
	d.until("the log is noted in Bigtable", func() bool { return noted() > first })
	w.ok("resync", "--table", "Orders")
	w.ok("pause", "--table", "Orders")
	d.stop()
	if err := os.Rename(data, data+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+".old", data); err != nil {
		t.Fatal(err)
	}
	w.Put("Orders", "hats", "beret", `"n":{"N":"2"}`)
	d = w.run()
	w.followAdvice(d.saidOfOlderCopy())
	d = w.run()
	d.untilReady()
	w.Put("Orders", "hats", "cap", `"n":{"N":"3"}`)
	d.settle("Orders")
	d.stop()
	w.Equal("Orders")
}

// saidOfOlderCopy returns what a daemon says of the older copy with which it was started. Most often
// it ends with it. On a busy machine it may not read in a moment what is noted of the log; then it
// goes on, halts when it has read it, and stays.
func (d *daemon) saidOfOlderCopy() (said string) {
	t := d.w.t
	t.Helper()
	d.w.Until("it ends or halts", func() bool {
		select {
		case <-d.ended:
			return true
		default:
		}
		if s, ok := d.status(); ok {
			for i := range s.Tables {
				said = s.Tables[i].Halt
			}
		}
		return said != ""
	})
	if said != "" {
		d.kill()
	} else if code := d.exit(); code != 3 {
		t.Fatalf("exit %d\n%s", code, tail(d.output.String(), 20))
	} else {
		said = tail(d.output.String(), 3)
	}
	if !strings.Contains(said, "older copy") {
		t.Fatalf("it says %s", said)
	}
	return said
}

// The row of a table in tailrace_state is deleted: under a running daemon, and while none runs.
// Each says it, and the command that is named makes all well; nothing is read again for it.
func TestDeletedRowIsSaidAndStoredAgain(t *testing.T) {
	w := newWorld(t, 298)
	w.tables = []string{"{source: Orders, target: orders}", "{source: Others, target: others}"}
	w.prepare("Orders", "Others")
	remove := func() {
		t.Helper()
		sink := w.openPair().sink
		row, err := sink.LoadState(t.Context(), "shop", "Orders")
		if err == nil {
			err = sink.RemoveState(t.Context(), row)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := w.run()
	for round := range 2 {
		w.Put("Orders", "hats", fmt.Sprint("fedora", round), `"n":{"N":"1"}`)
		d.settle("Orders")
		if round == 1 {
			d.stop()
		}
		remove()
		if round == 1 {
			d = w.run()
		}
		d.until("the table halts", func() bool { return d.table("Orders").Code == "row_missing" })
		w.Put("Others", "hats", fmt.Sprint("beret", round), `"n":{"N":"2"}`)
		d.settle("Others")
		w.Put("Orders", "hats", fmt.Sprint("cap", round), `"n":{"N":"3"}`)
		w.followAdvice(d.table("Orders").Halt)
		d.untilReady()
		d.settle("Orders", "Others")
		w.Equal("Orders")
		w.Equal("Others")
		if row, err := w.openPair().sink.LoadState(t.Context(), "shop", "Orders"); err != nil || row.Life != 1 {
			t.Fatalf("%+v, %v", row, err)
		}
	}
	d.stop()
}
