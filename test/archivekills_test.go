package test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/nats"
)

var archiveSeeds = flag.Uint64("archive.seeds", 1, "histories of an archive with kills and a freeze; "+
	"every second one on a NATS cluster whose leader is stopped")

// TestArchiveIsExactUnderKillsAndAFreeze lets items expire and users delete items, while three
// daemons are killed with SIGKILL at random moments and one is frozen until another has taken over.
// In the end Bigtable has what the table has, and the archive exactly what the sandbox's sweeps
// have deleted.
func TestArchiveIsExactUnderKillsAndAFreeze(t *testing.T) {
	long(t, "10 s")
	t.Parallel()
	c := newChances(t, int(*archiveSeeds), 20, []string{heldAtKill, heldWhileRead}, "log claimed",
		"stand by: another owner holds the log", "hours of the archive are closed")
	for seed := range *archiveSeeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := newWorldOf(t, sandbox.Options{Seed: 1700 + seed, Sweep: 200 * time.Millisecond})
			w.traps.chances = c
			w.archive = `{url: "file://archive", roll: 1s, max_bytes: 64MiB, columns: {v: {type: int64}}}`
			w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive}"}
			w.queue = fmt.Sprintf("{url: %q, max_bytes: 64MiB}", w.NATS.URL())
			var cluster *nats.Cluster
			if seed%2 == 1 {
				cluster = startCluster(t, t.TempDir(), nil)
				w.queue = fmt.Sprintf("{url: %q, max_bytes: 64MiB}", cluster.URL())
			}
			w.prepare("Orders")
			w.archiveUnderKills(seed, cluster)
		})
	}
}

// startCluster starts a NATS cluster in dir that ends with the test. between is nil, or gets the
// relays through which the servers find each other.
func startCluster(t *testing.T, dir string, between []*relay) *nats.Cluster {
	t.Helper()
	var addrs []string
	for range 6 {
		addrs = append(addrs, sandbox.FreeAddr(t))
	}
	c, err := nats.OpenCluster(dir, addrs, func(to int) string {
		if between == nil {
			return addrs[to]
		}
		between[to] = newRelay(t, addrs[to])
		return between[to].addr
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) archiveUnderKills(seed uint64, cluster *nats.Cluster) {
	w.t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 21))
	a := w.writer("Orders", seed)
	a.sessions = true
	a.write(100)
	a.start()
	d := w.run() // an hour is proven from the start on only if the archive is open before the first changes are applied
	d.until("the archive has begun", func() bool { return w.readArchive().total > 0 })
	d.stop()
	for n := range 3 {
		s := anyShot(rnd)
		w.t.Logf("seed %d, a kill at %+v", seed, s)
		w.runUntilKilled(s)
		if n == 1 && cluster != nil {
			w.loseLeader(cluster)
		}
	}
	frozen := w.run()
	frozen.untilHit(w.traps.set(pageRead, 1+rnd.IntN(10), false))
	w.freeze(frozen, syscall.SIGSTOP)
	before := w.readArchive().total
	d = w.run()
	d.until("another owner archives", func() bool { return w.readArchive().total > before })
	w.freeze(frozen, syscall.SIGCONT)
	frozen.untilLogged("stand by: another owner holds the log")
	frozen.stop()
	w.t.Logf("seed %d: %d changes, %d items expired", seed, a.stop(), w.expired())

	w.Clock.Advance(5 * time.Second) // the last ones expire
	d.until("nothing is left to expire", func() bool { return w.DynamoDB.ExpireNow(w.Clock.Now()) == 0 })
	d.settle("Orders")
	d.checkClean()
	w.Clock.Advance(70 * time.Minute)
	d.until("every hour is closed", func() bool {
		return w.readArchive().total >= w.expired() &&
			!strings.Contains(w.ok("archive", "list", "--json"), `"state":"open"`)
	})
	if out := w.ok("archive", "verify", "--full", "--json"); !strings.Contains(out, `"verdict":"ok"`) {
		w.t.Errorf("the archive is not what its manifests say: %s", out)
	}
	d.stop()
	w.archiveIsWhatExpired()
	if cluster == nil {
		w.logIsExact("Orders", w.readLog("Orders"))
	}
	w.Equal("Orders")
}

// loseLeader stops the server that leads the archive's stream, and starts it when a daemon works
// without it.
func (w *world) loseLeader(c *nats.Cluster) {
	w.t.Helper()
	leader := c.Leader("_archive")
	if leader < 0 {
		w.t.Fatal("nobody leads the archive's stream")
	}
	c.Stop(leader)
	d := w.run()
	d.untilHit(w.traps.set(afterWrite, 10, false))
	if err := c.Start(leader); err != nil {
		w.t.Fatal(err)
	}
	d.untilHit(w.traps.set(afterWrite, 10, false))
	d.stop()
}

// archiveIsWhatExpired compares the events by shard and sequence number with the deletions by TTL
// that were committed.
func (w *world) archiveIsWhatExpired() {
	w.t.Helper()
	all := map[string]int{}
	for _, e := range w.readArchive().events {
		all[e.Shard+" "+string(e.Sequence)]++
	}
	w.Ledger.Changes("Orders", func(c ledger.Change) bool {
		if c.TTL {
			if at := c.Shard + " " + c.Seq; all[at] != 1 {
				w.t.Errorf("the item that expired at %s is in the archive %d times", at, all[at])
			} else {
				delete(all, at)
			}
		}
		return true
	})
	for at := range all {
		w.t.Errorf("archived, but it did not expire: %s", at)
	}
}
