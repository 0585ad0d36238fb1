package cutover_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	cloud "cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/queue"
)

// rehearse rehearses a cutover. say gets what it prints; it may be nil.
func (w *world) rehearse(say func(string)) *cutover.Rehearsal {
	w.t.Helper()
	clients, s := w.Pair("Orders")
	o := cutover.Options{Tables: []string{"Orders"}, Quiet: time.Second, Say: func(format string, args ...any) {
		w.t.Logf(format, args...)
		if say != nil {
			say(fmt.Sprintf(format, args...))
		}
	}}
	var r *cutover.Rehearsal
	var err error
	c := cutover.New(w.Config, clients, s, o)
	w.While("the rehearsal ends", func() { r, err = c.Rehearse(w.t.Context()) })
	if err == nil {
		err = c.Publish(w.t.Context(), r)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.Until("the replicator shows it", func() bool {
		all := w.d.Rehearsals()
		return len(all) == 1 && all[0].At.Equal(r.At) && len(all[0].Refusals) == len(r.Refusals)
	})
	return r
}

// leftovers is what a rehearsal must leave as it was: entries of the log but for beats, marks and
// snapshots, the rows of Bigtable, and all files.
func (w *world) leftovers() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	kinds := map[string]bool{"beat": true, "marks": true, "snapshot": true}
	_, err := queue.Walk{Log: w.Log("Orders").Log}.Entries(w.t.Context(), func(e *queue.WalkedEntry) error {
		if !kinds[e.Kind.String()] {
			all[fmt.Sprint("entry ", e.Seq)] = fmt.Sprint(e.Kind, e.Hash)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, table := range []string{"orders", "tailrace_state"} {
		err := w.client().Open(table).ReadRows(w.t.Context(), cloud.InfiniteRange(""), func(r cloud.Row) bool {
			for _, item := range slices.Concat(slices.Collect(maps.Values(r))...) {
				if item.Column != "s:log" { // the owner notes how far its log has come
					all[fmt.Sprint(table, r.Key(), item.Column, item.Timestamp)] = string(item.Value)
				}
			}
			return true
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	err = filepath.WalkDir(filepath.Dir(w.Config.Scratch), func(path string, d fs.DirEntry, err error) error {
		if path != filepath.Dir(w.Config.Scratch) && !strings.HasPrefix(path, w.Config.Scratch) ||
			strings.HasPrefix(path, filepath.Join(w.Config.Scratch, "hours")) { // of the status page, each minute
			return nil // the daemon's own
		}
		if err != nil || d.IsDir() {
			all[path] = "a folder"
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestRehearsalLeavesNothingBehind: whether it compares all items, or those that have changed since
// a kept comparison, it adds no entry, row or file, and the cutover goes on as if there had been
// none.
func TestRehearsalLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, 931, "")
	w.d = w.Run()
	w.put(5, "1")
	for _, how := range []string{certificate.HowFull, certificate.HowChanged} {
		if how == certificate.HowChanged {
			w.verifyForCutover()
			w.put(2, "2")
		}
		w.d.Settle()
		before := w.leftovers()
		r := w.rehearse(nil)
		if diff := cmp.Diff(before, w.leftovers()); diff != "" {
			t.Errorf("%s: the rehearsal leaves something behind (-before +after):\n%s", how, diff)
		}
		if len(r.Refusals) > 0 || r.How != how || r.WriteStop < r.Quiet.Wanted || r.Behind > 0 {
			t.Errorf("%s: %+v", how, r)
		}
		var steps []string
		for _, s := range r.Steps {
			steps = append(steps, s.Name)
		}
		want := []string{cutover.StepCheck, cutover.StepQuiet, cutover.StepDrain, cutover.StepCompare, cutover.StepBehind,
			cutover.StepHeart}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Errorf("%s: steps (-want +got):\n%s", how, diff)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Check(text, nil); err == nil {
			t.Errorf("%s: the rehearsal passes for a certificate", how)
		}
	}
	cert, said, err := w.cutover(cutover.Options{})
	if err != nil || cert.Verify.How != certificate.HowChanged {
		t.Errorf("the cutover after it: %v\n%s", err, said)
	}
}

// TestRehearsalNamesWhatWouldRefuse the cutover: an item that differs, a table that is not ready,
// and a fence that stands already.
func TestRehearsalNamesWhatWouldRefuse(t *testing.T) {
	w := newWorld(t, 932, "")
	w.d = w.Run()
	w.put(3, "1")
	w.unplant("hats#1")
	refusals := func() string { return strings.Join(w.rehearse(nil).Refusals, "; ") }
	if got := refusals(); !strings.Contains(got, "1 item differs: `replicator repair`") ||
		strings.Contains(got, "--undo") {
		t.Errorf("a row is missing: %q", got)
	}
	w.Control("Orders", "pause", checkpoint.Control{Pause: new(true)})
	w.While("the table is paused", func() {
		for w.d.Table("Orders").State != "paused" {
			<-time.After(10 * time.Millisecond)
		}
	})
	r := w.rehearse(nil)
	if got := strings.Join(r.Refusals, "; "); !strings.Contains(got, "paused") || len(r.Steps) != 1 || r.WriteStop != 0 {
		t.Errorf("paused: %+v", r)
	}
	if text := r.Sentence(); !strings.Contains(text, "would be refused") {
		t.Error(text)
	}
	w.Control("Orders", "resume", checkpoint.Control{Pause: new(bool)})
	w.d.Settle()
	clients, s := w.Pair("Orders")
	c := cutover.New(w.Config, clients, s, cutover.Options{Tables: []string{"Orders"}, Say: t.Logf})
	if err := cutover.Raise(c, context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := refusals(); !strings.Contains(got, "stands: a rehearsal is for before") {
		t.Errorf("behind a fence: %q", got)
	}
}

// TestRehearsalChecksAgain: what begins to refuse while both sides are compared is named, though the
// first check has passed.
func TestRehearsalChecksAgain(t *testing.T) {
	w := newWorld(t, 933, "")
	w.d = w.Run()
	w.put(3, "1")
	w.d.Settle()
	paused := false
	r := w.rehearse(func(text string) {
		if !strings.HasPrefix(text, "Verifying") {
			return
		}
		paused = true
		w.Control("Orders", "pause", checkpoint.Control{Pause: new(true)})
	})
	if got := strings.Join(r.Refusals, "; "); !paused || !strings.Contains(got, "paused") || r.WriteStop != 0 {
		t.Errorf("paused meanwhile: %t, %+v", paused, r)
	}
}

// TestLongestLull finds the longest time without a change, also before the first and after the
// last.
func TestLongestLull(t *testing.T) {
	for name, c := range map[string]struct {
		changes        []int64 // seconds
		longest, since int64
	}{
		"none":              {nil, 100, 1000},
		"at the begin":      {[]int64{1060, 1061, 1099}, 60, 1000},
		"between two":       {[]int64{1010, 1090}, 79, 1011},
		"at the end":        {[]int64{1000, 1001, 1020}, 79, 1021},
		"before the window": {[]int64{900, 1050}, 50, 1000},
		"out of order":      {[]int64{1090, 1010}, 79, 1011},
	} {
		longest, since := cutover.LongestLull(c.changes, 1000, 1100)
		if longest != time.Duration(c.longest)*time.Second || since != c.since {
			t.Errorf("%s: %s from %d on, want %d s from %d on", name, longest, since, c.longest, c.since)
		}
	}
}
