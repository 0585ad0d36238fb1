package queue

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	dto "github.com/prometheus/client_model/go"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// busy is a client whose messages come too late, so many times: the owner has appended an entry
// just before.
type busy struct {
	jetstream.JetStream
	times  int
	append func()
}

func (b *busy) PublishMsg(
	ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if b.times > 0 {
		n := b.times - 1
		b.times = 0 // for the owner's own message
		b.append()
		b.times = n
	}
	return b.JetStream.PublishMsg(ctx, m, opts...)
}

// TestControlBesideABusyOwnerReadsTheLogOnce: an owner that appends more often than the log can be
// folded would keep the entry out for ever.
func TestControlBesideABusyOwnerReadsTheLogOnce(t *testing.T) {
	q := embeddedQueue(t)
	w := owned(t, q)
	for range 200 {
		mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	}
	l := w.Log()
	read := func() float64 {
		m := &dto.Metric{}
		if err := l.metrics.read.Write(m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	before := read()
	fold(t, l)
	once := read() - before
	const times = 5
	b := &busy{JetStream: q.conn.JS, times: times}
	b.append = func() { mustAppend(t, w, &checkpoint.Beat{Date: second}, nil) }
	q.conn.JS = b
	pause, last := true, w.State().Seq
	seq, err := l.AppendControl(testContext(t), &checkpoint.Control{Pause: &pause, By: "me"})
	q.conn.JS = b.JetStream
	if err != nil || seq != last+times+1 {
		t.Errorf("stored at %d, want %d: %v", seq, last+times+1, err)
	}
	if all := read() - before - once; all > 1.5*once {
		t.Errorf("%.0f bytes were read of a log of %.0f", all, once)
	}
	if s := fold(t, l); !s.Paused || s.Foreign > 0 {
		t.Errorf("paused %t, %d foreign messages", s.Paused, s.Foreign)
	}
}
