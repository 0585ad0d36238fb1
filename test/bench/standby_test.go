package bench

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

// BenchmarkStandBy lets two members stand by for 100 tables that a third one owns. It reports how
// many messages the two together exchange with the NATS server in a second, in both directions,
// their own that come back among them; and how much of a core each of them uses: while nothing is
// written, and while 20 changes a second are.
//
// Members share their tables, one every five seconds. So that it stays as it is, a member that has
// no tables says all the time that it has just been given one.
func BenchmarkStandBy(b *testing.B) {
	for range b.N {
		g := newGroup(b, load{tables: 100, items: 1000}, 1)
		g.start(0)
		g.share(100)
		defer g.forbidMoves()()
		owners := connections(b, g.nats)
		g.start(0)
		g.start(0)
		g.share(100, 0, 0)
		<-time.After(2 * settles)
		g.standBy(owners, "idle")
		rest := g.writeSome(50 * time.Millisecond)
		g.standBy(owners, "busy")
		rest()
		g.share(100, 0, 0)
		b.ReportMetric(0, "ns/op")
		g.stop()
	}
}

// standByTime is how long the stand-bys are watched.
const standByTime = 30 * time.Second

// standBy watches the members but the first one. others are the connections that are not theirs.
func (g *group) standBy(others map[uint64]exchanged, name string) {
	g.b.Helper()
	used := func() (sum time.Duration) {
		for _, m := range g.members[1:] {
			sum += processorTime(g.b, m.cmd.Process.Pid)
		}
		return sum
	}
	messages := func() (sum exchanged) {
		for id, n := range connections(g.b, g.nats) {
			if _, other := others[id]; !other {
				sum.sent += n.sent
				sum.received += n.received
			}
		}
		return sum
	}
	cpu, before := used(), messages()
	<-time.After(standByTime)
	after := messages()
	s := standByTime.Seconds()
	g.b.ReportMetric(float64(after.sent-before.sent)/s, name+"_sent/s")
	g.b.ReportMetric(float64(after.received-before.received)/s, name+"_received/s")
	g.b.ReportMetric(float64(after.sent+after.received-before.sent-before.received)/s, name+"_messages/s")
	g.b.ReportMetric(100*(used()-cpu).Seconds()/s/float64(len(g.members)-1), name+"_%core/member")
}

// exchanged is how many messages a client has sent to the server, and received.
type exchanged struct{ sent, received int64 }

// connections returns what each connection of a server has exchanged.
func connections(b *testing.B, srv *server.Server) map[uint64]exchanged {
	b.Helper()
	all, err := srv.Connz(&server.ConnzOptions{Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	out := map[uint64]exchanged{}
	for _, c := range all.Conns {
		out[c.Cid] = exchanged{sent: c.InMsgs, received: c.OutMsgs}
	}
	return out
}

// forbidMoves is one more member, without tables, that keeps the others from asking for one.
func (g *group) forbidMoves() (stop func()) {
	g.b.Helper()
	ctx, cancel := context.WithCancel(g.b.Context())
	q, err := queue.OpenClient(ctx, queue.Options{Pipeline: "bench", URL: g.nats.ClientURL()}, zap.NewNop())
	if err != nil {
		g.b.Fatal(err)
	}
	group := q.Group(presence.Options{
		Me: "bench", Say: func() presence.Message { return presence.Message{Build: "bench", Reads: 1 << 20} },
		Asked: func(presence.Request) string { return "it has no tables" },
	})
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			g.b.Error(err)
		}
		_ = q.Close()
	}
}
