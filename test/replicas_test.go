package test

import (
	"context"
	"encoding/json"
	"flag"
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
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/failure"
	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

var replicasSeeds = flag.Uint64("replicas.seeds", 1,
	"histories of several replicas to run; with more than one, each fault once with the periods of production, too")

// replicas are three daemons that share the tables of a pipeline, on a cluster of three NATS
// servers. Between each daemon and each server is a relay that can be cut.
type replicas struct {
	*world
	cluster *sandnats.Cluster
	between []*relay // through which the NATS servers find each other
	stores  string   // directory of their stores
	small   bool     // each store has a small volume of its own
	nats    jetstream.JetStream
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
		"{claim_ttl: 15s, beat: 5s, listing: 2s, describe: 500ms, mark_interval: 100ms, trim: 500ms, "+
			"date_trust: 1ns, patience: 300ms, retry_halted: 1s}")
}

// newReplicasOf is newReplicas with other periods of the protocol.
func newReplicasOf(t *testing.T, seed uint64, n int, periods string) *replicas {
	t.Helper()
	r := &replicas{world: newWorld(t, seed)}
	r.between, r.stores = make([]*relay, 3), t.TempDir()
	r.small = mountStores(t, r.stores)
	r.cluster = startCluster(t, r.stores, r.between)
	nc, err := nats.Connect(r.cluster.URL(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if r.nats, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
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
		name, more := fmt.Sprintf("Table%d", i), ""
		if i == 0 {
			name, more = "Orders", ", on_ttl_expiry: archive"
		}
		tables = append(tables, fmt.Sprintf("{source: %s, target: %s, backfill: none%s}", name, target(name), more))
		r.tables = append(r.tables, name)
	}
	r.world.tables, r.archive = tables, "{file: ./archive, roll: 1s}"
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

// owners returns who carries each table: of several that say so, the one with the highest epoch.
func (r *replicas) owners() map[string]string {
	all, epochs := map[string]string{}, map[string]uint64{}
	for _, m := range r.members {
		s, _ := m.status()
		for _, st := range s.Tables {
			if st.State != "standby" && st.Owner != "" && st.Epoch > epochs[st.Source] {
				all[st.Source], epochs[st.Source] = m.name, st.Epoch
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

// busy returns the member that carries most tables: a fault of one without any hurts nobody.
func (r *replicas) busy() (most *member) {
	r.t.Helper()
	r.Until("a member carries a table", func() bool {
		most = slices.MaxFunc(r.members, func(a, b *member) int { return r.carries(a) - r.carries(b) })
		return r.carries(most) > 0
	})
	return most
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

// suffer injects a fault and measures how long it takes until all is well.
func (r *replicas) suffer(f injury) {
	r.t.Helper()
	began := time.Now()
	f.do(&began)
	r.fresh(f.name)
	r.healed = append(r.healed, healing{f.name, time.Since(began)})
	if f.after != nil {
		f.after()
	}
}

// equal waits until everything is applied, and compares every cell.
func (r *replicas) equal() {
	r.t.Helper()
	r.fresh("everything")
	sides := r.openPair()
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

// TestReplicasUnderFaults: three replicas on three NATS servers lose processes, servers, stores and
// connections while an application writes and a reader of Bigtable polls. The reader never sees an
// item mixed, older than before, or back after it was gone, and at the end every cell is equal to
// the source.
func TestReplicasUnderFaults(t *testing.T) {
	long(t, "90 s")
	t.Parallel()
	c := newChances(t, int(*replicasSeeds), 20, nil,
		"log claimed", "handed the log over", "take a log over from another replica", "stand by: another owner holds the log",
		"outcome unknown: go on from the stored state", "another entry came first: go on behind it",
		"begin again from the stored state", "cannot read shard, trying again", "queue connection is back",
		"the NATS server answers no requests")
	for seed := range *replicasSeeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newReplicas(t, 9000+seed, 4)
			r.traps.chances = c
			rnd := rand.New(rand.NewPCG(seed, 14))
			r.fresh("the start")
			stop := r.application(rnd.Uint64())
			for range 6 {
				all := r.injuries(r.members[rnd.IntN(3)], rnd.IntN(3))
				r.suffer(all[rnd.IntN(len(all))])
			}
			r.end(stop())
		})
	}
	if *replicasSeeds == 1 {
		return
	}
	t.Run("each fault with the periods of production", func(t *testing.T) {
		r := newReplicasOf(t, 9500, 4, "{date_trust: 1ns, retry_halted: 60s}")
		r.fresh("the start")
		stop := r.application(1)
		for i := range r.injuries(r.members[0], 0) {
			r.suffer(r.injuries(r.busy(), i%3)[i])
		}
		r.end(stop())
	})
	t.Run("owners end in the middle of a resync", endWhileComparing)
	for i, service := range []string{"Bigtable", "DynamoDB"} {
		t.Run("no "+service+" for one member", func(t *testing.T) {
			r := newReplicasOf(t, 9600+uint64(i), 4, "{date_trust: 1ns, retry_halted: 60s}")
			r.fresh("the start")
			stop := r.application(1)
			r.suffer(r.sickness(r.busy(), service))
			r.end(stop())
		})
	}
}

// end compares all that was written and archived, cuts a table over, and logs what was injected and
// how long it took to heal.
func (r *replicas) end(changes int) {
	r.t.Helper()
	r.equal()
	r.expire()
	r.cutOver()
	r.Equal(r.tables...)
	r.t.Logf("%d changes, %d items expired; every cell and every archived item is equal", changes, r.expired())
	for _, h := range r.healed {
		r.t.Logf("  %-45s up to date again after %s", h.fault, h.took.Round(100*time.Millisecond))
	}
}

// application writes pairs of equal numbers that grow, deletes some items, and polls what a reader
// of Bigtable sees. stop ends both and returns how many changes were written.
func (r *replicas) application(seed uint64) (stop func() int) {
	ctx, cancel := context.WithCancel(r.t.Context())
	rnd, written := rand.New(rand.NewPCG(seed, 3)), 0
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		for ctx.Err() == nil {
			written++
			table, pk := r.tables[rnd.IntN(len(r.tables))], fmt.Sprint("p", rnd.IntN(12))
			switch rnd.IntN(10) {
			case 0, 1:
				r.Delete(table, pk, "s")
			case 2:
				r.Put("Orders", "session", fmt.Sprint(written), fmt.Sprintf(`"expires":{"N":"%d"}`, r.Clock.Now().Unix()+1))
				r.DynamoDB.ExpireNow(r.Clock.Now())
			default:
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

// TestFaultOfNATSChangesNoOwner: the cluster has no leader for longer than a claim lives, twice, or
// as often as there are histories; the owners keep their logs, as nobody can have seen them silent.
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
	for i := range max(2, *replicasSeeds) {
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

// endWhileComparing ends the owner of a table that is compared as a whole with SIGTERM, and lets
// the next one stand still in the middle of its drain, until others have its tables. The
// application writes on. The resync is complete under the third owner, and every cell is equal.
func endWhileComparing(t *testing.T) {
	r := newReplicas(t, 9700, 2)
	r.fresh("the start")
	stop := r.application(5)
	pending := func() (yes bool) { // until an owner shows that it is over
		r.Until("an owner shows the table", func() bool {
			return slices.ContainsFunc(r.members, func(m *member) bool {
				st := m.table("Orders")
				yes = st.Resync != nil || st.State == "healing"
				return st.Epoch > 0 && st.State != "standby"
			})
		})
		return yes
	}
	scan := r.traps.set(point{op: "Scan"}, 1, true)
	r.ok("resync", "--table", "Orders")
	for _, stands := range []bool{false, true} {
		var m *member
		r.Until("an owner compares the table", func() bool {
			r.Clock.Advance(200 * time.Millisecond)
			name := r.owners()["Orders"]
			i := slices.IndexFunc(r.members, func(m *member) bool { return m.name == name })
			if i < 0 || !closed(scan.hit) {
				return false
			}
			m = r.members[i]
			whole := m.table("Orders").Resync
			return whole != nil && whole.Doing == "comparing"
		})
		m.signal()
		if stands {
			r.freeze(m.daemon, syscall.SIGSTOP)
		}
		r.fresh("the owner of Orders ended")
		if !pending() {
			t.Error("the resync is over already: nothing was ended in its middle")
		}
		if stands {
			r.freeze(m.daemon, syscall.SIGCONT)
		}
		_ = m.exit() // one that stood still has lost its logs
		m.daemon = r.run("--config", m.name+".yaml")
	}
	scan.open()
	r.Until("the resync is complete", func() bool {
		r.Clock.Advance(200 * time.Millisecond)
		return !pending()
	})
	r.end(stop())
}
