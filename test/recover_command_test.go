package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecoverSaysFirstWhatItDoes: nothing is changed without --yes, a log that can go on is left
// alone, and after a lost volume a new life begins, once. It is complete although the daemon is
// killed on the way, and brings what changed while there was no log.
func TestRecoverSaysFirstWhatItDoes(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t, 263)
	w.prepare("Orders")
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	d.stop()
	expect := func(code int, said string, args ...string) {
		t.Helper()
		if r := w.command(args...); r.code != code || !strings.Contains(r.out+r.err, said) {
			t.Errorf("%v: exit %d, want %d and %q\n%s%s", args, r.code, code, said, r.out, r.err)
		}
	}
	expect(0, "Nothing to recover", "recover", "--all", "--yes")
	if err := os.RemoveAll(filepath.Join(w.dir, "data")); err != nil {
		t.Fatal(err)
	}
	expect(2, "begins life", "recover", "--all")
	expect(2, "nothing was changed", "recover", "--table", "Orders")
	expect(0, "Orders begins life", "recover", "--all", "--yes")
	expect(0, "Orders is already recovering: life 2", "recover", "--all")
	expect(0, `"life":2,`, "recover", "--all", "--yes", "--json")
	expect(0, `"begun":true`, "recover", "--all", "--yes", "--json")
	w.Put("Orders", "hats", "beret", `"n":{"N":"2"}`)
	w.Delete("Orders", "hats", "fedora")
	w.Clock.Advance(10 * time.Minute) // older than what the new life reads
	d = w.run()
	d.until("it recovers", func() bool { return d.table("Orders").State == "recovering" })
	d.kill()
	d = w.run()
	w.Put("Orders", "hats", "cap", `"n":{"N":"3"}`)
	d.until("the table is compared", func() bool {
		d.hasten(5 * time.Second)
		s, ok := d.status()
		return ok && s.Ready
	})
	d.settle("Orders")
	d.stop()
	w.Equal("Orders")
	expect(0, "Nothing to recover", "recover", "--all")
}
