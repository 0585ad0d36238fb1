package test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/verify/report"
)

// TestShadowComparesReads: an application reads what it has just written, and no read is a false
// alarm, although its rows come later. A wrong cell and a missing row are named with their items.
func TestShadowComparesReads(t *testing.T) {
	long(t, "20 s")
	w := newWorld(t, 885)
	w.prepare("Orders")
	w.refused(3, "never replicated", "shadow", "--listen", "127.0.0.1:0")
	d := w.run()
	d.settle("Orders")
	s := w.startShadow("--json", "--mismatches", "wrong.jsonl")
	s.daemon = d
	s.use(15)
	r := s.end()
	totals, ok := r.Totals()
	if !ok || totals.Reads != 15 || totals.Replayed != 15 || totals.Mismatches != 0 || totals.Undecided != 0 {
		t.Errorf("%+v: %s", totals, s.errs.String())
	}
	d.settle("Orders")
	w.plant("Orders", "hats#fedora0", setCell("n", "2"))
	w.plant("Orders", "hats#fedora2", func(m *cloud.Mutation) { m.DeleteRow() })
	s = w.startShadow("--json", "--mismatches", "wrong.jsonl")
	s.daemon = d
	for range 3 {
		s.post("Query", hatsQuery)
	}
	s.post("GetItem", `{"TableName":"Orders","Key":{"pk":{"S":"hats"},"sk":{"S":"fedora0"}}}`)
	r = s.endWith(4)
	totals, _ = r.Totals()
	if totals.Reads != 4 || totals.Replayed != 4 || totals.Mismatches != 7 || totals.Undecided != 0 {
		t.Errorf("%+v: %s", totals, s.errs.String())
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "wrong.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for d, err := range report.Differences(strings.NewReader(string(text))) {
		if err != nil {
			t.Fatal(err)
		}
		found[string(d.Key)] = fmt.Sprint(d.Kinds)
	}
	want := map[string]string{
		`{"pk":{"S":"hats"},"sk":{"S":"fedora0"}}`: "[value]", `{"pk":{"S":"hats"},"sk":{"S":"fedora2"}}`: "[missing_row]",
	}
	if !maps.Equal(found, want) {
		t.Errorf("%v in %d lines", found, len(slices.Collect(strings.Lines(string(text)))))
	}
	done := make(chan string, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		done <- w.command("repair", "--from", "wrong.jsonl").out
	}()
	d.hastenUntil("the items are repaired", over)
	if out := <-done; !strings.Contains(out, "2 items are equal now") {
		t.Errorf("repair: %s", out)
	}
	d.stop()
}

var adminAddress = regexp.MustCompile(`report so far is at (http://\S+)\.\n`)

// get returns what a page shows.
func get(t *testing.T, url string) string {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSecondInterruptPrintsTheReport: an engine that settles for minutes is ended, and what it has counted is
// printed.
func TestSecondInterruptPrintsTheReport(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the engine is found through /proc")
	}
	long(t, "10 s")
	w := newWorld(t, 886)
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	s := w.startShadow("--json", "--admin", "127.0.0.1:0")
	s.use(1)
	w.Until("what the engine has counted is stored", func() bool {
		page := adminAddress.FindStringSubmatch(s.errs.String())
		return page != nil && strings.Contains(get(t, page[1]+"/metrics"), `tailrace_shadow_requests_total{result="taken"} 2`)
	})
	_ = syscall.Kill(s.engine(), syscall.SIGSTOP) // as if it had much to settle
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	w.Until("the reason is shown", func() bool { return strings.Contains(s.errs.String(), "compared again behind") })
	if r := s.end(); r.Counted != 2 {
		t.Errorf("%+v", r.Passed)
	}
	d.stop()
}

// TestShadowRefusesBeforeItBegins what would only be a line in the log of the engine.
func TestShadowRefusesBeforeItBegins(t *testing.T) {
	w := newWorld(t, 887)
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	w.refused(3, "open file of mismatches", "shadow", "--listen", "127.0.0.1:0", "--mismatches", "none/wrong.jsonl")
	w.refused(2, "no table Nope is replicated", "shadow", "--patterns", "--listen", "127.0.0.1:0", "--table", "Nope")
	w.refused(2, "exclude each other", "shadow", "--sign", "--mirror")
	w.refused(2, "FILE is missing", "shadow", "report")
	d.stop()
}
