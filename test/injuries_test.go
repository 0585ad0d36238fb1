package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// injury is a fault: do injects it, waits for what it causes, and ends it. It sets began to when it
// takes effect, where that is not its start. After it the tables are up to date again, and then
// `after` waits for what takes longer.
type injury struct {
	name  string
	do    func(began *time.Time)
	after func()
}

// slowly is how late each piece of data comes from a server with a slow disk.
const slowly = 150 * time.Millisecond

// injuries returns the faults of a member, of the way to its servers, and of a NATS server.
func (r *replicas) injuries(m *member, server int) []injury {
	return slices.Concat(r.ofMember(m), r.ofNATS(server), r.ofServices(), r.ofWork(m))
}

func (r *replicas) ofMember(m *member) []injury {
	return []injury{
		{"SIGKILL of " + m.name, func(began *time.Time) {
			m.kill()
			*began = time.Now()
			r.fresh("the others took over")
			m.daemon = r.run("--config", m.name+".yaml")
		}, nil},
		{"SIGTERM of " + m.name, func(*time.Time) {
			m.stop()
			m.daemon = r.run("--config", m.name+".yaml")
		}, nil},
		{"SIGSTOP of " + m.name, func(began *time.Time) {
			r.freeze(m.daemon, syscall.SIGSTOP)
			*began = time.Now()
			r.fresh("the others took over from a process that stands still")
			r.freeze(m.daemon, syscall.SIGCONT)
		}, nil},
		{"no NATS for " + m.name, func(began *time.Time) {
			cut(m.nats)
			*began = time.Now()
			r.fresh("the others took over from a process without NATS")
			restore(m.nats)
		}, nil},
		{"NATS is silent for " + m.name, func(began *time.Time) {
			slow(m.nats, still)
			*began = time.Now()
			r.fresh("the others took over from a process whose NATS is silent")
			slow(m.nats, 0)
		}, nil},
		{"DynamoDB resets the connections of " + m.name, func(*time.Time) { cut(m.dynamo); restore(m.dynamo) }, nil},
		{"no DynamoDB for " + m.name + " for 5 s", func(*time.Time) {
			cut(m.dynamo)
			r.pause(5 * time.Second)
			restore(m.dynamo)
		}, nil},
		{"Bigtable resets the connections of " + m.name, func(*time.Time) { cut(m.bigtable); restore(m.bigtable) }, nil},
		{"Bigtable is silent for " + m.name + " for 5 s", func(*time.Time) {
			slow(m.bigtable, still)
			r.pause(5 * time.Second)
			slow(m.bigtable, 0)
		}, nil},
	}
}

// sickness is a fault that takes more than a minute: a member that does not reach a service gives
// its tables away. Later it notices by itself that the service answers again.
func (r *replicas) sickness(m *member, service string) injury {
	way := m.bigtable
	if service == "DynamoDB" {
		way = m.dynamo
	}
	return injury{fmt.Sprintf("no %s for %s", service, m.name), func(began *time.Time) {
		cut(way)
		*began = time.Now()
		r.Until("others have the tables of "+m.name, func() bool { return r.carries(m) == 0 })
		r.fresh("a sick member gave its tables away")
		restore(way)
	}, func() {
		r.Until(m.name+" is well again", func() bool {
			s, ok := m.status()
			return ok && len(s.Failing) == 0
		})
	}}
}

// ofNATS returns the faults of a NATS server. Each one ends when all copies are complete again: two
// servers at a time that lack a part of their store are a loss of data, which is not tested here.
func (r *replicas) ofNATS(server int) (all []injury) {
	n := fmt.Sprintf("NATS server %d", server)
	add := func(name string, do func(began *time.Time)) {
		all = append(all, injury{name, do, r.caughtUp})
	}
	add(n+" stops for a while", func(began *time.Time) {
		r.cluster.Stop(server)
		*began = time.Now()
		r.fresh("a NATS server stopped")
		r.start(server)
	})
	add(n+" loses its store", func(began *time.Time) {
		r.cluster.Stop(server)
		r.emptyStore(server)
		*began = time.Now()
		r.start(server)
	})
	add(n+" gets an old copy of its store", func(began *time.Time) {
		r.cluster.Stop(server)
		old := filepath.Join(r.t.TempDir(), "store")
		if err := os.CopyFS(old, os.DirFS(r.cluster.StoreDir(server))); err != nil {
			r.t.Fatal(err)
		}
		r.start(server)
		r.fresh("its store goes on")
		r.caughtUp()
		r.cluster.Stop(server)
		r.emptyStore(server)
		if err := os.CopyFS(r.cluster.StoreDir(server), os.DirFS(old)); err != nil {
			r.t.Fatal(err)
		}
		*began = time.Now()
		r.start(server)
	})
	add(n+" is cut off from the other two, with all replicas", func(began *time.Time) {
		others := r.clients((server+1)%3, (server+2)%3)
		cut(others)
		r.fresh("all replicas have gone to one NATS server")
		restore(others)
		r.route(server, never)
		*began = time.Now()
		r.fresh("the NATS server of all replicas is cut off")
		r.route(server, 0)
	})
	add(n+" lags behind when all logs get a new leader", func(began *time.Time) {
		r.route(server, never)
		r.fresh("a NATS server lags")
		r.route(server, 0)
		*began = time.Now()
		r.stepDown()
	})
	add(n+" stands still", func(began *time.Time) {
		r.delay(server, still)
		*began = time.Now()
		r.fresh("a NATS server stands still")
		r.delay(server, 0)
	})
	add(n+" is slow", func(began *time.Time) {
		r.delay(server, slowly)
		*began = time.Now()
		r.fresh("a NATS server is slow")
		r.delay(server, 0)
	})
	add("all NATS servers are slow", func(began *time.Time) {
		for i := range 3 {
			r.delay(i, slowly)
		}
		*began = time.Now()
		r.fresh("all NATS servers are slow")
		for i := range 3 {
			r.delay(i, 0)
		}
	})
	if r.small {
		add("the disk of "+n+" is full", func(began *time.Time) {
			free := fill(r.t, r.cluster.StoreDir(server))
			*began = time.Now()
			r.fresh("the disk of a NATS server is full")
			free()
			r.cluster.Stop(server) // it keeps its streams closed until it is started again
			r.start(server)
		})
	}
	add("the leader of a log restarts", func(*time.Time) {
		if leader := r.cluster.Leader("_Orders_"); leader >= 0 {
			r.cluster.Stop(leader)
			r.start(leader)
		}
	})
	add("the leaders of all logs step down", func(*time.Time) { r.stepDown() })
	return all
}

func (r *replicas) ofServices() []injury {
	return []injury{
		{"DynamoDB throttles", func(*time.Time) {
			if err := r.Faults.Inject(fault.Rule{Effect: fault.Throttle, Operation: "GetRecords", Times: 40}); err != nil {
				r.t.Fatal(err)
			}
		}, nil},
		{"Bigtable refuses, answers wrongly and late", func(*time.Time) {
			r.Bigtable.Faults.Random(bigtable.Odds{Refuse: .1, Ambiguous: .1, Late: .1})
			r.fresh("some calls of Bigtable failed")
			r.Bigtable.Faults.Calm()
		}, nil},
	}
}

// ofWork returns faults in the middle of what takes longer than a change.
func (r *replicas) ofWork(m *member) []injury {
	return []injury{
		{"SIGKILL of the owner that copies", func(began *time.Time) {
			page := r.traps.set(point{op: "Scan"}, 1, true)
			r.ok("resync", "--table", "Orders")
			var owner *member
			r.Until("a page of Orders is being read", func() bool {
				owner = r.ownerOf("Orders")
				r.Clock.Advance(100 * time.Millisecond) // the first page waits for a proof
				return owner != nil && page.passed()
			})
			owner.kill()
			page.open()
			*began = time.Now()
			owner.daemon = r.run("--config", owner.name+".yaml")
		}, r.resynced},
		{"SIGTERM of " + m.name + " while a table is copied", func(began *time.Time) {
			r.ok("resync", "--table", r.tables[1])
			*began = time.Now()
			m.stop()
			m.daemon = r.run("--config", m.name+".yaml")
		}, r.resynced},
	}
}

// resynced waits until no table is copied or healed, in a sandbox whose time goes on faster.
func (r *replicas) resynced() {
	r.t.Helper()
	r.Until("the resync has ended", func() bool {
		r.Clock.Advance(100 * time.Millisecond)
		return !slices.ContainsFunc(r.tables, func(table string) bool {
			owner := r.ownerOf(table)
			return owner == nil || owner.table(table).State != "running"
		})
	})
}

// route sets how late the data between a NATS server and the other two comes; never: they are cut
// off.
func (r *replicas) route(server int, late time.Duration) {
	for to, x := range r.between {
		if to == server {
			x.from("", late)
		} else {
			x.from(fmt.Sprint("n", server), late)
		}
	}
}

// clients are the connections of the replicas with NATS servers.
func (r *replicas) clients(servers ...int) (all []*relay) {
	for _, server := range servers {
		for _, m := range r.members {
			all = append(all, m.nats[server])
		}
	}
	return all
}

// delay sets how late everything between a NATS server and the others, and the replicas, comes.
func (r *replicas) delay(server int, late time.Duration) {
	r.route(server, late)
	slow(r.clients(server), late)
}

func cut(all []*relay) {
	for _, r := range all {
		r.cut()
	}
}

func restore(all []*relay) {
	for _, r := range all {
		r.restore()
	}
}

func slow(all []*relay, late time.Duration) {
	for _, r := range all {
		r.slow(late)
	}
}

// stepDown lets the leader of each stream be elected again.
func (r *replicas) stepDown() {
	r.t.Helper()
	for _, info := range r.streams() {
		// Without an answer there is no leader, which is as good.
		_, _ = r.nats.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+info.Config.Name, nil, time.Second)
	}
}

// caughtUp waits until each stream has a leader and all its copies.
func (r *replicas) caughtUp() {
	r.t.Helper()
	r.Until("all copies of the logs are complete", func() bool {
		all := r.streams()
		return len(all) > 0 && !slices.ContainsFunc(all, func(x *jetstream.StreamInfo) bool {
			return x.Cluster == nil || x.Cluster.Leader == "" || len(x.Cluster.Replicas) != 2 ||
				slices.ContainsFunc(x.Cluster.Replicas, func(p *jetstream.PeerInfo) bool { return p.Offline || !p.Current })
		})
	})
}

// streams returns what is known of all streams; nil if that cannot be told now.
func (r *replicas) streams() (all []*jetstream.StreamInfo) {
	list := r.nats.ListStreams(r.t.Context())
	for info := range list.Info() {
		all = append(all, info)
	}
	if list.Err() != nil {
		return nil
	}
	return all
}

// emptyStore removes what a NATS server has stored.
func (r *replicas) emptyStore(server int) {
	r.t.Helper()
	entries, err := os.ReadDir(r.cluster.StoreDir(server))
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(r.cluster.StoreDir(server), e.Name())))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// mountStores gives each NATS server a small volume for its store, so that it can be filled. It
// returns whether that is permitted here.
func mountStores(t *testing.T, dir string) bool {
	t.Helper()
	for i := range 3 {
		store := filepath.Join(dir, fmt.Sprint("n", i))
		if err := os.Mkdir(store, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := sandbox.SmallVolume(t, store, "128m"); err != nil {
			t.Logf("without full disks: %v", err)
			return false
		}
	}
	return true
}

// fill fills a volume, until free is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// cutOver cuts Orders over to Bigtable, and the owner is killed as soon as the fence is there.
func (r *replicas) cutOver() {
	r.t.Helper()
	c := r.begin(nil, "cutover", "--table", "Orders", "--quiet", "1s", "--out", "cert.json")
	killed := false
	r.Until("the cutover ends", func() bool {
		if owner := r.ownerOf("Orders"); owner != nil {
			owner.hasten(300 * time.Millisecond)
			if !killed && strings.Contains(c.out.String(), "is fenced at entry") {
				killed = true
				owner.kill()
				owner.daemon = r.run("--config", owner.name+".yaml")
			}
		}
		return c.over()
	})
	if code := c.cmd.ProcessState.ExitCode(); code != 0 || !killed {
		r.t.Errorf("cutover: exit %d, owner killed: %v\n%s", code, killed, c.out)
	}
	r.ok("cutover", "--check", "cert.json")
}

// expire lets the items that have expired go, and waits until they are archived in hours that are
// closed.
func (r *replicas) expire() {
	r.t.Helper()
	r.Clock.Advance(5 * time.Second)
	r.Until("nothing is left to expire", func() bool { return r.DynamoDB.ExpireNow(r.Clock.Now()) == 0 })
	r.fresh("the last items have expired")
	r.Clock.Advance(70 * time.Minute)
	r.Until("every hour is closed", func() bool {
		return r.readArchive().total >= r.expired() && !strings.Contains(r.ok("archive", "list", "--json"), `"state":"open"`)
	})
	r.archiveIsWhatExpired()
}

// ownerOf returns the member that carries a table; nil: none says so.
func (r *replicas) ownerOf(table string) *member {
	name := r.owners()[table]
	for _, m := range r.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// pause is for how long a fault lasts.
func (r *replicas) pause(d time.Duration) {
	r.t.Helper()
	if err := failure.Pause(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}
