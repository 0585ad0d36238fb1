package queue

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// startCluster runs three NATS servers that share their streams, and returns how to reach them.
func startCluster(t *testing.T) (servers map[string]*server.Server, urls string) {
	t.Helper()
	var ports []int
	var routes, clients []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, "nats://"+l.Addr().String())
		l.Close()
	}
	servers = map[string]*server.Server{}
	for i, port := range ports {
		srv, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
			SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: 4 << 30, MaxPayload: MaxPayload,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port, NoAdvertise: true},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		})
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
		servers[srv.Name()] = srv
	}
	for _, srv := range servers {
		if !srv.ReadyForConnections(20 * time.Second) {
			t.Fatal("server is not ready")
		}
		clients = append(clients, srv.ClientURL())
	}
	ctx := testContext(t)
	for !slices.ContainsFunc(slices.Collect(maps.Values(servers)), func(s *server.Server) bool {
		return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3
	}) {
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			t.Fatal("no leader: ", err)
		}
	}
	return servers, strings.Join(clients, ",")
}

// With three copies: leaders step down and die, the writer recovers, nothing is lost and nothing twice.
func TestLeaderChangesUnderTheWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("electing takes seconds")
	}
	ctx := testContext(t)
	servers, urls := startCluster(t)
	q := connectTo(t, strings.TrimPrefix(urls, "nats://"), func(o *Options) { o.Replicas, o.AckTimeout = 3, 2*time.Second })
	var l *Log
	if err := retry(ctx, func() (err error) { l, err = q.CreateLog(ctx, "Orders", "t0ken"); return err }); err != nil {
		t.Fatal(err)
	}
	w := claim(t, l, "a")
	put := func(body any, data []byte) {
		t.Helper()
		_, err := w.Append(ctx, body, data)
		for errors.Is(err, ErrDoubt) {
			if err = w.Recover(ctx); err != nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(&checkpoint.Start{Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	for round := range 8 {
		if round == 2 || round == 4 {
			if _, err := q.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+l.name, nil, 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if round == 6 {
			info, err := l.stream.Info(ctx)
			for err != nil || info.Cluster == nil || info.Cluster.Leader == "" {
				info, err = l.stream.Info(ctx)
			}
			servers[info.Cluster.Leader].Shutdown()
		}
		for range 10 {
			frame := mustPack(t, MaxPayload, pageOf(t, w.State(), 5, 100))[0]
			put(frame.Body, frame.Data)
		}
	}
	s := w.State()
	if d := cmp.Diff(sequences(1, int(s.Changes)), readSeqs(t, l, s.Seq)); d != "" {
		t.Fatal(d)
	}
	sameState(t, fold(t, l), s)
	if s.Changes < 8*10*5-50 {
		t.Fatalf("only %d changes", s.Changes)
	}
}
