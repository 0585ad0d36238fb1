package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

// replicas are three daemons that share the tables of a pipeline, on a cluster of three NATS servers. Between each
// daemon and each server is a relay that can be cut.
type replicas struct {
	*world
	cluster *sandnats.Cluster
	client  *cloud.Client
	members []*member
	tables  []string
	marker  int
	healed  []healing
}

// member is one daemon, over its restarts.
type member struct {
	*daemon
	name                   string
	nats, dynamo, bigtable []*relay
}

// healing is how long it took until every table was up to date again after a fault.
type healing struct {
	fault string
	took  time.Duration
}

// newReplicas starts three daemons over n tables.
func newReplicas(t *testing.T, seed uint64, n int) *replicas {
	t.Helper()
	return newReplicasOf(t, seed, n,
		"{claim_ttl: 15s, beat: 5s, listing: 2s, describe: 500ms, mark_interval: 100ms, trim: 500ms, retry_halted: 1s}")
}

// newReplicasOf is newReplicas with other periods of the protocol.
func newReplicasOf(t *testing.T, seed uint64, n int, periods string) *replicas {
	t.Helper()
	r := &replicas{world: newWorld(t, seed)}
	r.cluster = startCluster(t)
	var err error
	r.client, err = cloud.NewClientWithConfig(t.Context(), "local", "local",
		cloud.ClientConfig{MetricsProvider: cloud.NoopMetricsProvider{}},
		option.WithEndpoint(r.Bigtable.Addr()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.client.Close() })
	var tables []string
	for i := range n {
		name := fmt.Sprintf("Table%d", i)
		tables = append(tables, fmt.Sprintf("{source: %s, target: %s, backfill: none}", name, target(name)))
		r.tables = append(r.tables, name)
	}
	r.world.tables = tables
	r.testing = periods
	r.queue = fmt.Sprintf("{url: %q, replicas: 3, max_bytes: 64MiB}", r.cluster.URL())
	r.prepare(r.tables...)
	for i := range 3 {
		m := &member{name: fmt.Sprint("r", i)}
		r.members = append(r.members, m)
		var urls []string
		for _, url := range strings.Split(r.cluster.URL(), ",") {
			m.nats = append(m.nats, newRelay(t, strings.TrimPrefix(url, "nats://")))
			urls = append(urls, "nats://"+m.nats[len(m.nats)-1].addr)
		}
		m.dynamo = []*relay{newRelay(t, strings.TrimPrefix(r.dynamo.url, "http://"))}
		m.bigtable = []*relay{newRelay(t, r.bigtable.addr)}
		text, err := os.ReadFile(filepath.Join(r.dir, "tailrace.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		own := strings.NewReplacer(r.cluster.URL(), strings.Join(urls, ","), r.world.dynamo.url, "http://"+m.dynamo[0].addr,
			r.world.bigtable.addr, m.bigtable[0].addr).Replace(string(text))
		r.write(m.name+".yaml", own)
		m.daemon = r.run("--config", m.name+".yaml")
	}
	return r
}

// owners returns who carries each table, as the log says.
func (r *replicas) owners() map[string]string {
	all := map[string]string{}
	for _, m := range r.members {
		s, _ := m.status()
		for _, st := range s.Tables {
			if st.State != "standby" && st.Owner != "" && len(st.Reasons) == 0 {
				all[st.Source] = m.name
			}
		}
	}
	return all
}

// carries returns how many tables a member carries.
func (r *replicas) carries(m *member) (n int) {
	for _, name := range r.owners() {
		if name == m.name {
			n++
		}
	}
	return n
}

// fresh writes one more item into every table and waits until all are in Bigtable.
func (r *replicas) fresh(what string) {
	r.t.Helper()
	r.marker++
	for _, table := range r.tables {
		r.Put(table, "marker", "0", fmt.Sprintf(`"n":{"N":"%d"}`, r.marker))
	}
	want := fmt.Sprint(r.marker)
	r.Until("every table is up to date after "+what, func() bool {
		for _, table := range r.tables {
			if r.cell(table, "marker#0", "n") != want {
				return false
			}
		}
		return true
	})
}

// pause is for how long a fault lasts.
func (r *replicas) pause(d time.Duration) {
	r.t.Helper()
	if err := failure.Pause(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

// cell returns the newest value of a column.
func (r *replicas) cell(table, row, column string) string { return r.plain(table, row)[column] }

// plain returns the newest value of each column of a row: what an application reads.
func (r *replicas) plain(table, row string) map[string]string {
	cells := map[string]string{}
	got, err := r.client.Open(target(table)).ReadRow(context.Background(), row,
		cloud.RowFilter(cloud.ChainFilters(cloud.FamilyFilter("d"), cloud.LatestNFilter(1))))
	if err != nil {
		r.t.Errorf("read row %s of %s: %v", row, table, err)
	}
	for _, item := range got["d"] {
		cells[strings.TrimPrefix(item.Column, "d:")] = string(item.Value)
	}
	return cells
}

// injury is a fault: do injects it, waits for what it causes, and ends it. It sets began to when it hurts first, where
// that is not its start.
type injury struct {
	name string
	do   func(began *time.Time)
}

// injuries returns the faults of a member and a server.
func (r *replicas) injuries(m *member, server int) []injury {
	return []injury{
		{"SIGKILL of " + m.name, func(began *time.Time) {
			m.kill()
			*began = time.Now()
			r.fresh("the others took over")
			m.daemon = r.run("--config", m.name+".yaml")
		}},
		{"SIGTERM of " + m.name, func(*time.Time) {
			m.stop()
			m.daemon = r.run("--config", m.name+".yaml")
		}},
		{"SIGSTOP of " + m.name, func(began *time.Time) {
			r.signalTo(m, syscall.SIGSTOP)
			*began = time.Now()
			r.fresh("the others took over from a process that stands still")
			r.signalTo(m, syscall.SIGCONT)
		}},
		{"no NATS for " + m.name, func(began *time.Time) {
			cut(m.nats)
			*began = time.Now()
			r.fresh("the others took over from a process without NATS")
			restore(m.nats)
		}},
		{"DynamoDB resets the connections of " + m.name, func(*time.Time) { cut(m.dynamo); restore(m.dynamo) }},
		{"Bigtable resets the connections of " + m.name, func(*time.Time) { cut(m.bigtable); restore(m.bigtable) }},
		{fmt.Sprintf("NATS server %d", server) + " stops for a while", func(began *time.Time) {
			r.cluster.Stop(server)
			*began = time.Now()
			r.fresh("a NATS server stopped")
			r.start(server)
		}},
		{fmt.Sprintf("NATS server %d", server) + " loses its store", func(began *time.Time) {
			r.cluster.Stop(server)
			if err := os.RemoveAll(r.cluster.StoreDir(server)); err != nil {
				r.t.Fatal(err)
			}
			*began = time.Now()
			r.start(server)
		}},
		{"the leader of a log restarts", func(*time.Time) {
			if leader := r.cluster.Leader("_Table0_"); leader >= 0 {
				r.cluster.Stop(leader)
				r.start(leader)
			}
		}},
		{"DynamoDB throttles", func(*time.Time) {
			if err := r.Faults.Inject(fault.Rule{Effect: fault.Throttle, Operation: "GetRecords", Times: 40}); err != nil {
				r.t.Fatal(err)
			}
		}},
		{"Bigtable refuses, answers wrongly and late", func(*time.Time) {
			r.Bigtable.Faults.Random(bigtable.Odds{Refuse: .1, Ambiguous: .1, Late: .1})
			r.fresh("some calls of Bigtable failed")
			r.Bigtable.Faults.Calm()
		}},
	}
}

// suffer injects a fault and measures how long it takes until all is well.
func (r *replicas) suffer(f injury) {
	r.t.Helper()
	began := time.Now()
	f.do(&began)
	r.fresh(f.name)
	r.healed = append(r.healed, healing{f.name, time.Since(began)})
}

// equal waits until everything is applied, and compares every cell.
func (r *replicas) equal() {
	r.t.Helper()
	r.fresh("everything")
	sides := r.openSides()
	r.Until("every table is equal", func() bool {
		return !slices.ContainsFunc(r.tables, func(table string) bool { return sides.compare(r.t.Context(), table) != nil })
	})
	r.Equal(r.tables...)
}

func (r *replicas) start(server int) {
	r.t.Helper()
	if err := r.cluster.Start(server); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replicas) signalTo(m *member, s syscall.Signal) {
	r.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
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

// TestReplicasUnderFaults: three replicas on three NATS servers lose processes, servers, stores and connections while
// an application writes and a reader of Bigtable polls. The reader never sees an item mixed, older than before, or back
// after it was gone, and at the end every cell is equal to the source.
func TestReplicasUnderFaults(t *testing.T) {
	long(t, "90 s")
	histories := uint64(1) // `make chaos` asks for more
	if *chaosSeeds > 20 {
		histories = *chaosSeeds
	}
	for seed := range histories {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newReplicas(t, 9000+seed, 4)
			rnd := rand.New(rand.NewPCG(seed, 14))
			r.fresh("the start")
			stop := r.application(rnd.Uint64())
			for range 6 {
				all := r.injuries(r.members[rnd.IntN(3)], rnd.IntN(3))
				r.suffer(all[rnd.IntN(len(all))])
			}
			changes := stop()
			r.equal()
			r.report(changes)
		})
	}
	if histories == 1 {
		return
	}
	t.Run("each fault with the periods of production", func(t *testing.T) {
		r := newReplicasOf(t, 9500, 4, "{retry_halted: 60s}")
		r.fresh("the start")
		stop := r.application(1)
		for i := range r.injuries(r.members[0], 0) {
			m := r.members[i%3]
			r.Until(m.name+" carries a table", func() bool { return r.carries(m) > 0 })
			r.suffer(r.injuries(m, i%3)[i])
		}
		changes := stop()
		r.equal()
		r.report(changes)
	})
}

// report logs what was injected, and how long it took to heal.
func (r *replicas) report(changes int) {
	r.t.Helper()
	r.t.Logf("%d changes; every cell is equal", changes)
	for _, h := range r.healed {
		r.t.Logf("  %-45s up to date again after %s", h.fault, h.took.Round(100*time.Millisecond))
	}
}

// application writes pairs of equal numbers that grow, deletes some items, and polls what a reader of Bigtable sees.
// stop ends both and returns how many changes were written.
func (r *replicas) application(seed uint64) (stop func() int) {
	ctx, cancel := context.WithCancel(r.t.Context())
	rnd, written := rand.New(rand.NewPCG(seed, 3)), 0
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for ctx.Err() == nil {
			written++
			table, pk := r.tables[rnd.IntN(len(r.tables))], fmt.Sprint("p", rnd.IntN(12))
			if rnd.IntN(5) == 0 {
				r.Delete(table, pk, "s")
			} else {
				r.Put(table, pk, "s", fmt.Sprintf(`"a":{"N":"%d"},"b":{"N":"%d"},"c%d":{"S":"x"}`, written, written, rnd.IntN(3)))
			}
			_ = failure.Pause(ctx, 10*time.Millisecond)
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		x := &onlooker{t: r.t, seen: map[string]int{}, gone: map[string]bool{}}
		for ctx.Err() == nil {
			for _, table := range r.tables {
				for i := range 12 {
					row := fmt.Sprintf("p%d#s", i)
					x.look(table+"/"+row, r.plain(table, row))
				}
			}
			_ = failure.Pause(ctx, 20*time.Millisecond)
		}
	}()
	return func() int { cancel(); <-done; <-done; return written }
}

// onlooker remembers what a reader of Bigtable has seen.
type onlooker struct {
	t    *testing.T
	seen map[string]int
	gone map[string]bool
}

func (x *onlooker) look(item string, cells map[string]string) {
	if len(cells) == 0 {
		x.gone[item] = x.seen[item] > 0
		return
	}
	var a, b, others int
	_ = json.Unmarshal([]byte(cells["a"]), &a)
	_ = json.Unmarshal([]byte(cells["b"]), &b)
	for _, c := range []string{"c0", "c1", "c2"} {
		if cells[c] != "" {
			others++
		}
	}
	switch {
	case a != b || others > 1:
		x.t.Errorf("item %s mixes two states: %v", item, cells)
	case a < x.seen[item]:
		x.t.Errorf("item %s stepped back from %d to %d", item, x.seen[item], a)
	case a == x.seen[item] && x.gone[item]:
		x.t.Errorf("item %s is back with %d after it was gone", item, a)
	}
	x.seen[item], x.gone[item] = max(a, x.seen[item]), false
}

// TestFaultOfNATSChangesNoOwner: the cluster has no leader for longer than a claim lives, three times, or as often as
// there are seeds beyond 20; the owners keep their logs, as nobody can have seen them silent.
func TestFaultOfNATSChangesNoOwner(t *testing.T) {
	long(t, "60 s")
	r := newReplicas(t, 9100, 3)
	r.fresh("the start")
	epochs := func() map[string]uint64 {
		all := map[string]uint64{}
		for _, m := range r.members {
			s, _ := m.status()
			for _, st := range s.Tables {
				all[st.Source] = max(all[st.Source], st.Epoch)
			}
		}
		return all
	}
	r.Until("the tables are shared", func() bool {
		n := []int{r.carries(r.members[0]), r.carries(r.members[1]), r.carries(r.members[2])}
		return slices.Equal(n, []int{1, 1, 1})
	})
	before := epochs()
	for i := range max(2, *chaosSeeds-20) {
		for server := range 2 {
			r.cluster.Stop(server)
		}
		if r.pause(16 * time.Second); i%2 == 1 { // longer than a claim lives
			r.pause(25 * time.Second) // servers say at once that there is no leader, and the replicas hear each other
		}
		for server := range 2 {
			r.start(server)
		}
		r.fresh("NATS was away")
	}
	after := epochs()
	for table, epoch := range before {
		if after[table] != epoch {
			t.Errorf("the log of %s has another owner: epoch %d, was %d", table, after[table], epoch)
		}
	}
	r.equal()
}
