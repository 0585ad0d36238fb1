package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// newerFormat is the format of the build that stands for a newer one.
var newerFormat = checkpoint.Format + 1

// newerBuild builds this tree as one that reads and writes the next format.
func newerBuild(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "replicator-newer")
	flags := fmt.Sprintf("-w -X github.com/tailrace-cdc/replicator/checkpoint.newerFormat=%d", newerFormat)
	if err := build("..", path, flags); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRollingUpgradeAndTheWayBack replaces this replicator by a newer one, goes back, forward
// again, and raises the logs; from then on this one is refused. The newer one is this program with
// one invented member of the next format.
func TestRollingUpgradeAndTheWayBack(t *testing.T) {
	long(t, "20 s")
	from := checkpoint.Format
	w := newWorld(t, 77)
	newest := newerBuild(t)
	w.binary = newest // of all commands
	w.queue = fmt.Sprintf("{url: %q, replicas: 1, max_bytes: 64MiB}", w.NATS.URL())
	w.prepare("Orders")
	n := 0
	put := func() {
		for range 20 {
			n++
			w.Put("Orders", fmt.Sprint("hats", n%7), fmt.Sprint("fedora", n), fmt.Sprintf(`"n":{"N":"%d"}`, n))
		}
	}
	older := func() *daemon {
		w.binary = ""
		defer func() { w.binary = newest }()
		return w.run()
	}
	// takes has d take the log over, apply everything, and leave the log in a format.
	takes := func(d *daemon, format int) {
		put()
		d.until("it owns the log", func() bool { return d.table("Orders").State == "running" })
		d.settle("Orders")
		d.until(fmt.Sprint("the log has format ", format), func() bool { return d.table("Orders").LogFormat == format })
	}
	standsBy := func(d *daemon) {
		d.until("it stands by", func() bool { return d.table("Orders").State == status.StandBy })
	}

	old := older()
	takes(old, from)
	newer := w.run()
	standsBy(newer)
	old.stop()
	takes(newer, from) // in the format of the older one

	old = older() // the way back
	standsBy(old)
	newer.stop()
	takes(old, from)

	newer = w.run() // forward
	standsBy(newer)
	if f := w.formats(); f.Format != from || f.Finalized || len(f.Logs) != 1 || f.Logs[0].Format != from {
		t.Errorf("before it is raised: %+v", f)
	}
	w.refused(1, "nothing was changed", "upgrade", "--finalize")
	old.stop()
	takes(newer, from)

	w.ok("upgrade", "--finalize", "--yes")
	newer.until(
		"it raises the log while it runs",
		func() bool { return newer.table("Orders").LogFormat == newerFormat },
	)
	takes(newer, newerFormat)
	if f := w.formats(); f.Format != newerFormat || !f.Finalized || f.Logs[0].Format != newerFormat {
		t.Errorf("after it is raised: %+v", f)
	}

	old = older()
	w.Until("the older one is refused", func() bool {
		return strings.Contains(old.output.String(), "upgrade the replicator")
	})
	if code := old.exit(); code != 3 {
		t.Errorf("the older one ends with %d", code)
	}
	w.binary = ""
	r := w.command("queue", "dump", "--table", "Orders")
	if r.code == 0 || !strings.Contains(r.err, "upgrade the replicator") {
		t.Errorf("a command of the older one reads the log: exit %d\n%s%s", r.code, r.out, r.err)
	}
	w.binary = newest
	if dumped := w.ok("queue", "dump", "--table", "Orders", "--json"); !strings.Contains(dumped, `"invented":true`) {
		t.Error("no entry has the member that only the newer format has")
	}
	put()
	newer.settle("Orders")
	w.Equal("Orders")
	w.refused(2, "replicator upgrade --finalize", "run", "--upgrade")
}

// formatsOf is what `replicator upgrade --json` prints.
type formatsOf struct {
	Format    int
	Finalized bool
	Logs      []struct{ Format, Reads int }
}

func (w *world) formats() (f formatsOf) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.ok("upgrade", "--json")), &f); err != nil {
		w.t.Fatal(err)
	}
	return f
}
