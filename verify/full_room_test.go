package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// TestVolumeThatFillsUpWhilePartsAreSorted: the error names directory and file, and how much room
// the rest needs.
func TestVolumeThatFillsUpWhilePartsAreSorted(t *testing.T) {
	e := newEngine(t, "")
	e.parts, e.perPage = 4, 5
	for i := range 60 {
		e.put(fmt.Sprintf("p%d", i), "a", `"x":{"S":"1"}`)
	}
	name := "part-00002-00000.run"
	e.beforePage = func(part int, after string) error {
		if part != 2 || after != "" {
			return nil
		}
		return os.Symlink("/dev/full", filepath.Join(e.dir, runsFolder, name))
	}
	tables := e.allTables()
	tables[0].Items = 6000
	o := e.options()
	o.Readers = 1
	_, err := Full(t.Context(), o, tables, e.bigtable())
	full := (*extsort.NoRoomError)(nil)
	if !errors.As(err, &full) || !errors.Is(err, unix.ENOSPC) || full.Need <= 0 ||
		full.Need > roomFor(e.program, 6000, 0) || !strings.Contains(err.Error(), name) ||
		!strings.Contains(err.Error(), "are needed there") {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	e.beforePage = nil
	e.pages = 0
	if f := e.full(e.options()); f.Counts.Equal != 60 || e.pages == 0 || e.pages >= 60/5 {
		t.Errorf("%+v after %d pages: parts that were done are used", f.Counts, e.pages)
	}
}

// TestVolumeThatFillsUpWithWhatWasFound: a list of cells that could not be written is not taken for
// a shorter one.
func TestVolumeThatFillsUpWithWhatWasFound(t *testing.T) {
	e := newEngine(t, "")
	e.foreign("nobody's", "d", "x", "9")
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", filepath.Join(e.dir, cellFile)); err != nil {
		t.Fatal(err)
	}
	f := e.full(e.options())
	c := Checker{Settler: e.settler(), Verdict: func(*Verdict) error { return nil },
		Cell: func(*Open) error { return nil }}
	if err := c.Findings(t.Context(), f); !errors.As(err, new(*extsort.NoRoomError)) ||
		!strings.Contains(err.Error(), e.dir) {
		t.Error(err)
	}
}

// TestPartsAreUsedAgainOnlyWhileTheyAreYoung: a change that the stream lost is not in an older
// reading of its item, so that its row looked equal.
func TestPartsAreUsedAgainOnlyWhileTheyAreYoung(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		want int // candidates
	}{{MaxPartAge - time.Minute, 0}, {MaxPartAge + time.Minute, 1}} {
		e := newEngine(t, "")
		e.parts = 4
		for i := range 20 {
			e.put(fmt.Sprintf("p%d", i), "a", `"x":{"S":"1"}`)
		}
		if err := e.full(e.options()).Close(); err != nil { // as if it was killed
			t.Fatal(err)
		}
		e.lose("p3", "a", `"x":{"S":"2"}`)
		e.version += c.age.Milliseconds()
		e.pages = 0
		f := e.full(e.options())
		if got := len(candidates(t, f)); got != c.want || (e.pages > 0) != (c.want > 0) {
			t.Errorf("%s old: %d candidates of %d pages", c.age, got, e.pages)
		}
		if c.want > 0 && f.Counts.Began != e.now() {
			t.Errorf("it began at %d, want %d", f.Counts.Began, e.now())
		}
	}
}
