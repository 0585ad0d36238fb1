package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// archived is the content of the archive: each event's line by its id, the events of each day, and all lines.
type archived struct {
	lines map[string]string
	days  map[string]int
	total int
}

// readArchive reads the archive without a last line that is still being written. It checks that events lie in the file
// of their day and that an id has one event.
func (w *world) readArchive() archived {
	w.t.Helper()
	all := archived{lines: map[string]string{}, days: map[string]int{}}
	files, err := filepath.Glob(filepath.Join(w.dir, "archive", "*.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		whole := data[:bytes.LastIndexByte(data, '\n')+1]
		for line := range strings.Lines(string(whole)) {
			var event struct {
				ID, Type, Subject string
				Time              time.Time
			}
			err := json.Unmarshal([]byte(line), &event)
			if err != nil || event.ID == "" || event.Type != "dev.tailrace.item.expired" {
				w.t.Fatalf("%s: %v: %s", name, err, line)
			}
			if day := event.Time.UTC().Format(time.DateOnly); !strings.HasPrefix(filepath.Base(name), day) {
				w.t.Errorf("an event of %s lies in %s", day, name)
			}
			if before, ok := all.lines[event.ID]; ok && before != line {
				w.t.Errorf("one id, two events:\n%s%s", before, line)
			}
			all.lines[event.ID] = line
			all.days[event.Time.UTC().Format(time.DateOnly)]++
			all.total++
		}
	}
	return all
}

// TestExpiredItemsAreArchivedAndDeletedOnesAreNot runs over midnight with kills between the events.
func TestExpiredItemsAreArchivedAndDeletedOnesAreNot(t *testing.T) {
	long(t, "15 s")
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorld(t, 300+seed)
			w.archive = "{file: ./archive}"
			w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
			now := w.Clock.Now().UTC()
			tenToMidnight := now.Truncate(24 * time.Hour).Add(47*time.Hour + 50*time.Minute)
			w.Clock.Advance(tenToMidnight.Sub(now))
			w.prepare("Orders")
			expire := func(round int) {
				for i := range 20 {
					pk := fmt.Sprintf("round%d", round)
					w.Put("Orders", pk, fmt.Sprintf("expires%d", i),
						fmt.Sprintf(`"expires":{"N":"%d"},"n":{"N":"%d"}`, w.Clock.Now().Unix()-1, i))
					w.Put("Orders", pk, fmt.Sprintf("deleted%d", i), `"expires":{"N":"1"}`)
					w.Delete("Orders", pk, fmt.Sprintf("deleted%d", i))
					w.Put("Orders", pk, fmt.Sprintf("stays%d", i), "")
				}
				w.DynamoDB.ExpireNow(w.Clock.Now())
			}
			for round := range 3 {
				before := w.readArchive().total
				expire(round)
				d := w.run()
				d.until("some are archived", func() bool { return w.readArchive().total > before+int(seed)*3 })
				d.kill()
			}
			w.Clock.Advance(20 * time.Minute)
			expire(3)
			d := w.run()
			d.settle("Orders")
			d.checkClean()
			d.stop()
			w.archiveIsExact()
			w.Equal("Orders")
			w.logIsExact("Orders", w.readLog("Orders"))
		})
	}
}

// archiveIsExact compares the archive with the expiries that were committed, which lie on two days.
func (w *world) archiveIsExact() {
	w.t.Helper()
	expired := 0
	w.Ledger.Changes("Orders", func(c ledger.Change) bool {
		if c.TTL {
			expired++
		}
		return true
	})
	all := w.readArchive()
	w.t.Logf("%d items expired, %d events of %d lines, by day %v", expired, len(all.lines), all.total, all.days)
	if len(all.lines) != expired || len(all.days) != 2 {
		w.t.Errorf("%d events on %d days, want %d on 2", len(all.lines), len(all.days), expired)
	}
	for _, line := range all.lines {
		if strings.Contains(line, "deleted") || strings.Contains(line, "stays") {
			w.t.Errorf("archived although it did not expire: %s", line)
		}
	}
}
