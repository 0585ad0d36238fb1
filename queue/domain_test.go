package queue

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestLogBehindALeafNode: a replicator at a leaf node keeps its log in the hub's domain. Both
// servers have JetStream, so a request without the domain would make the log in the wrong one.
func TestLogBehindALeafNode(t *testing.T) {
	port := reservePorts(t, 1)[0]
	hub := startExternalWith(t, func(o *server.Options) {
		o.JetStreamDomain = "hub"
		o.LeafNode.Host, o.LeafNode.Port = "127.0.0.1", port
	})
	leaf := startExternalWith(t, func(o *server.Options) {
		o.JetStreamDomain = "edge"
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{
			{Scheme: "nats-leaf", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))},
		}}}
	})
	eventually(t, "the leaf is connected", func() bool { return leaf.srv.NumLeafNodes() == 1 })

	q, err := openAt(t, "nats://"+leaf.addr(), func(o *Options) { o.Domain = "hub" })
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	l, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w := claim(t, l, "a")
	if _, err := w.Append(ctx, &checkpoint.Beat{}, nil); err != nil {
		t.Errorf("append: %v", err)
	}
	for addr, want := range map[string]error{hub.addr(): nil, leaf.addr(): jetstream.ErrStreamNotFound} {
		nc, err := nats.Connect("nats://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Stream(ctx, l.name); !errors.Is(err, want) {
			t.Errorf("the stream at %s: %v, want %v", addr, err, want)
		}
	}
	if _, err := openAt(t, "nats://"+leaf.addr(), func(o *Options) { o.Domain = "nowhere" }); err == nil {
		t.Error("a domain that does not exist was opened")
	}
}
