package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// archived is the content of the archive: each event by its id, the events of each day, and all of
// them.
type archived struct {
	events map[string]*transform.Event
	days   map[string]int
	total  int
}

// readArchive reads the archive. It checks that each object is what its end says, and that no event
// is there twice.
func (w *world) readArchive() archived {
	w.t.Helper()
	return w.readArchiveOf(filepath.Join(w.dir, "archive"))
}

// readArchiveOf is readArchive of another directory.
func (w *world) readArchiveOf(dir string) archived {
	w.t.Helper()
	all := archived{events: map[string]*transform.Event{}, days: map[string]int{}}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return all
	}
	b, err := bucket.Open(w.t.Context(), "file://"+dir, bucket.Options{ReadOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	for x, err := range b.List(w.t.Context(), layout.Table("Orders")) {
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := b.Open(w.t.Context(), x.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for e, err := range object.Read(r, r.Size()) {
			if err != nil {
				w.t.Fatalf("%s: %v", x.Name, err)
			}
			if all.events[e.ID()] != nil {
				w.t.Errorf("archived twice: %s, again in %s", e.ID(), x.Name)
			}
			all.events[e.ID()] = e
			all.days[e.Time().Format(time.DateOnly)]++
			all.total++
		}
		_ = r.Close()
	}
	return all
}

// TestExpiredItemsAreArchivedAndDeletedOnesAreNot runs over midnight with kills between the events.
func TestExpiredItemsAreArchivedAndDeletedOnesAreNot(t *testing.T) {
	long(t, "15 s")
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorld(t, 300+seed)
			w.archive = "{file: ./archive, roll: 1s}"
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
			d.until("all are archived", func() bool { return w.readArchive().total >= w.expired() })
			w.Clock.Advance(70 * time.Minute)
			d.until("every hour is closed", func() bool {
				return !strings.Contains(w.ok("archive", "list", "--json"), `"state":"open"`)
			})
			if out := w.ok("archive", "verify", "--full", "--json"); !strings.Contains(out, `"verdict":"ok"`) {
				t.Errorf("the archive is not what its manifests say: %s", out)
			}
			d.checkClean()
			d.stop()
			w.archiveIsExact()
			w.Equal("Orders")
			w.logIsExact("Orders", w.readLog("Orders"))
		})
	}
}

// TestOnlyTheClassesThatAreAskedForAreArchived deletes items in the three ways: by TTL, by a user,
// and by a user after they had expired, which is how TTL in another region's replica looks.
func TestOnlyTheClassesThatAreAskedForAreArchived(t *testing.T) {
	long(t, "8 s")
	t.Parallel()
	const each = 15
	for n, c := range []struct {
		classes string
		want    map[transform.EventClass]int
	}{
		{"ttl, user", map[transform.EventClass]int{transform.ClassTTL: each, transform.ClassUser: 2 * each}},
		{"ttl, inferred", map[transform.EventClass]int{transform.ClassTTL: each, transform.ClassInferred: each}},
		{"ttl, inferred, user", map[transform.EventClass]int{
			transform.ClassTTL: each, transform.ClassInferred: each, transform.ClassUser: each,
		}},
	} {
		t.Run(c.classes, func(t *testing.T) {
			w := newWorld(t, 310+uint64(n))
			w.archive = "{file: ./archive, roll: 1s, classes: [" + c.classes + "]}"
			w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
			w.prepare("Orders")
			d := w.run()
			total := 0
			for _, n := range c.want {
				total += n
			}
			for i := range each {
				sk := fmt.Sprint(i)
				w.Put("Orders", "ttl", sk, fmt.Sprintf(`"expires":{"N":"%d"}`, w.Clock.Now().Unix()-1))
				w.Put("Orders", "user", sk, fmt.Sprintf(`"expires":{"N":"%d"}`, w.Clock.Now().Unix()+36000))
				w.Delete("Orders", "user", sk)
				w.Put("Orders", "inferred", sk, fmt.Sprintf(`"expires":{"N":"%d"}`, w.Clock.Now().Unix()-1)) // no sweep yet
				w.Delete("Orders", "inferred", sk)
				w.Put("Orders", "stays", sk, "")
			}
			w.DynamoDB.ExpireNow(w.Clock.Now())
			d.settle("Orders")
			d.until("all are archived", func() bool { return w.readArchive().total >= total })
			w.Clock.Advance(70 * time.Minute)
			d.until("every hour is closed", func() bool {
				return !strings.Contains(w.ok("archive", "list", "--json"), `"state":"open"`)
			})
			if out := w.ok("archive", "verify", "--full", "--json"); !strings.Contains(out, `"verdict":"ok"`) {
				t.Errorf("the archive is not what its manifests say: %s", out)
			}
			d.checkClean()
			d.stop()
			got := map[transform.EventClass]int{}
			for _, e := range w.readArchive().events {
				got[e.Class]++
				if !strings.Contains(e.Subject, string(e.Class)) && (c.want[transform.ClassInferred] > 0 ||
					!strings.Contains(e.Subject, "inferred")) {
					t.Errorf("%s is archived as %s", e.Subject, e.Class)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("events by class (-want +got):\n%s", diff)
			}
			w.Equal("Orders")
		})
	}
}

// expired counts the items that TTL has deleted.
func (w *world) expired() (n int) {
	w.Ledger.Changes("Orders", func(c ledger.Change) bool {
		if c.TTL {
			n++
		}
		return true
	})
	return n
}

// archiveIsExact compares the archive with the expiries that were committed, which lie on two days.
func (w *world) archiveIsExact() {
	w.t.Helper()
	expired := w.expired()
	all := w.readArchive()
	w.t.Logf("%d items expired, %d events, by day %v", expired, all.total, all.days)
	if all.total != expired || len(all.days) != 2 {
		w.t.Errorf("%d events on %d days, want %d on 2", all.total, len(all.days), expired)
	}
	for _, e := range all.events {
		if strings.Contains(e.Subject, "deleted") || strings.Contains(e.Subject, "stays") {
			w.t.Errorf("archived although it did not expire: %s", e.Subject)
		}
	}
}
