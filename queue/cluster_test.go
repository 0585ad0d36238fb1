package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// cluster is three NATS servers that share their streams, stopped and started one by one.
type cluster struct {
	servers map[string]*server.Server
	options map[string]*server.Options
}

// startCluster runs three NATS servers.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{servers: map[string]*server.Server{}, options: map[string]*server.Options{}}
	ports := reservePorts(t, 6)
	var routes []string
	for _, port := range ports[:3] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		c.options[name] = &server.Options{
			ServerName: name, Host: "127.0.0.1", Port: ports[3+i], JetStream: true, StoreDir: t.TempDir(),
			SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: 4 << 30, MaxPayload: conn.MaxPayload,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i], NoAdvertise: true},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		}
		c.start(t, name)
	}
	t.Cleanup(func() {
		for name := range c.servers {
			c.stop(name)
		}
	})
	ctx := testContext(t)
	for !c.ready() {
		if err := failure.Pause(ctx, 50*time.Millisecond); err != nil {
			t.Fatal("no leader: ", err)
		}
	}
	return c
}

// start runs a server, for the first time or again with its store.
func (c *cluster) start(t *testing.T, name string) {
	t.Helper()
	srv, err := server.NewServer(c.options[name].Clone())
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	c.servers[name] = srv
}

func (c *cluster) stop(name string) {
	if srv := c.servers[name]; srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		delete(c.servers, name)
	}
}

// ready reports whether all servers accept clients and one of them leads the whole cluster.
func (c *cluster) ready() bool {
	led := false
	for _, srv := range c.servers {
		if !srv.ReadyForConnections(time.Millisecond) {
			return false
		}
		led = led || srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == len(c.options)
	}
	return led
}

// addr returns the addresses of all servers, for connectTo.
func (c *cluster) addr() string {
	var all []string
	for _, o := range c.options {
		all = append(all, net.JoinHostPort(o.Host, fmt.Sprint(o.Port)))
	}
	return strings.Join(all, ",nats://")
}

// follower names a server that neither leads the log's stream nor has the queue's connection.
func (c *cluster) follower(t *testing.T, q *Queue, l *Log) string {
	t.Helper()
	leader := leaderOf(t, l)
	for name := range c.servers {
		if name != leader && name != q.conn.NC.ConnectedServerName() {
			return name
		}
	}
	t.Fatal("no follower")
	return ""
}

func leaderOf(t *testing.T, l *Log) (leader string) {
	t.Helper()
	ctx := testContext(t)
	if err := conn.Retry(ctx, func() error {
		info, err := l.q.conn.StreamInfo(ctx, l.stream)
		if err == nil {
			leader = info.Cluster.Leader
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return leader
}

// claimIn makes a log in a cluster that may still be electing, and claims it.
func claimIn(t *testing.T, q *Queue) *Writer {
	t.Helper()
	ctx := testContext(t)
	var l *Log
	err := conn.Retry(ctx, func() (err error) { l, err = q.CreateLog(ctx, "Orders", "t0ken"); return err })
	if err != nil {
		t.Fatal(err)
	}
	return claim(t, l, "a")
}

// appendAndRecover appends an entry. When the outcome is unknown it recovers: the entry may be
// stored, or not.
func appendAndRecover(ctx context.Context, w *Writer, body any, data []byte) error {
	_, err := w.Append(ctx, body, data)
	for errors.Is(err, ErrOutcomeUnknown) && ctx.Err() == nil {
		err = w.Recover(ctx)
	}
	return err
}

// With three copies: leaders step down and are stopped, the writer recovers, nothing is lost or
// stored twice.
func TestLeaderChangesUnderTheWriter(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	w := claimIn(t, q)
	l := w.Log()
	put := func(body any, data []byte) {
		t.Helper()
		if err := appendAndRecover(ctx, w, body, data); err != nil {
			t.Fatal(err)
		}
	}
	put(&checkpoint.Start{Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	for round := range 8 {
		if round == 2 || round == 4 {
			if err := conn.Retry(ctx, func() error {
				_, err := q.conn.NC.Request("$JS.API.STREAM.LEADER.STEPDOWN."+l.name, nil, 5*time.Second)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if round == 6 {
			c.stop(leaderOf(t, l))
		}
		for w.State().Changes < uint64(round+1)*50 {
			frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 5, 100))[0]
			put(frame.Body, frame.Data)
		}
	}
	s := w.State()
	if d := cmp.Diff(sequences(1, int(s.Changes)), readSeqs(t, l, s.Seq)); d != "" {
		t.Fatal(d)
	}
	sameState(t, fold(t, l), s)
}

// TestLeaderWithoutAMajorityIsNotBelieved: for ten seconds and more it answers how far the log goes,
// while nothing can be appended. A replica that waits for the log would take the owner for silent.
func TestLeaderWithoutAMajorityIsNotBelieved(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	l := claimIn(t, q).Log()
	for {
		leader := leaderOf(t, l)
		for name := range maps.Clone(c.servers) {
			if name != leader {
				c.stop(name)
			}
		}
		if notBelieved(ctx, t, l, leader) {
			return
		}
		for name := range c.options {
			if c.servers[name] == nil {
				c.start(t, name)
			}
		}
	}
}

// notBelieved asks a leader without a majority until its answers are refused. It returns false
// where the leader stepped down without having been asked: that happens on a busy machine.
func notBelieved(ctx context.Context, t *testing.T, l *Log, leader string) bool {
	t.Helper()
	var believed time.Time
	for {
		ask, cancel := context.WithTimeout(ctx, 5*time.Second)
		raw, rawErr := l.stream.Info(ask)
		_, err := l.Info(ask)
		cancel()
		leads := rawErr == nil && raw.Cluster.Leader == leader
		switch {
		case leads && errors.Is(err, conn.ErrNoLeader):
			return true
		case leads && err == nil:
			believed = time.Now()
		case rawErr == nil && raw.Cluster.Leader == "", rawErr != nil:
			if time.Since(believed) < 3*time.Second {
				t.Fatal("it is believed until it steps down")
			}
			return false
		}
		if failure.Pause(ctx, 20*time.Millisecond) != nil {
			t.Fatal(err, rawErr)
		}
	}
}
