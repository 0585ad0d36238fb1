package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// BenchmarkChain stores prepared pages as fast as the write loop takes them: pages of 64 shards with
// records of two images of 1 KB, in a log that is fsynced, with marks and trims. The source is left
// out, and the sink has applied everything at once. ack is how much later acknowledgements arrive, as
// in a cluster over several zones.
func BenchmarkChain(b *testing.B) {
	for _, ack := range []time.Duration{0, 5 * time.Millisecond} {
		b.Run("ack="+ack.String(), func(b *testing.B) { benchmarkChain(b, ack) })
	}
}

func benchmarkChain(b *testing.B, ack time.Duration) {
	log, frames := chainLog(b, ack)
	c := newChain(b, log)
	c.start(b.Context())
	b.ResetTimer()
	for b.Loop() {
		if err := c.feed(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := c.end(); !errors.Is(err, errEnough) && !errors.Is(err, queue.ErrOutcomeUnknown) { // of the last append
		b.Fatal(err)
	}
	s := log.State()
	b.ReportMetric(float64(s.Changes)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(s.Changes)/frames(), "records/frame")
	b.ReportMetric(0, "ns/op")
}

// TestCommandAppendsBetweenFramesThatArePackedAhead: a command reads the newest entry and appends its
// own behind it, while frames follow each other without a break.
func TestCommandAppendsBetweenFramesThatArePackedAhead(t *testing.T) {
	log, _ := chainLog(t, 0)
	c := newChain(t, log)
	c.start(t.Context())
	fed := make(chan error, 1)
	go func() {
		for {
			if err := c.feed(); err != nil {
				fed <- err
				return
			}
		}
	}()
	began := time.Now()
	if _, err := log.Log().AppendControl(t.Context(), &checkpoint.Control{Clear: true, By: "other"}); err != nil {
		t.Fatal(err)
	}
	t.Logf("after %v", time.Since(began))
	if err := <-fed; !errors.Is(err, queue.ErrOutcomeUnknown) {
		t.Errorf("the owner goes on with %v, want an unknown outcome", err)
	}
	c.stop(nil)
}

// chain is a write loop that is fed with prepared pages of many shards.
type chain struct {
	w      *writer
	pages  []change.Page
	stored int
	bytes  int // of a page
	stop   context.CancelCauseFunc
	ended  chan error
}

func newChain(t testing.TB, log *queue.Writer) *chain {
	t.Helper()
	const shards, perPage = 64, 430
	start := &checkpoint.Start{Stream: "arn", Date: 1_790_000_000_000}
	for i := range shards {
		start.Shards = append(start.Shards, checkpoint.ShardSeen{ID: fmt.Sprintf("shardId-%020d", i)})
	}
	if _, err := log.Append(t.Context(), start, nil); err != nil {
		t.Fatal(err)
	}
	c := &chain{w: chainWriter(t, log), ended: make(chan error, 1)}
	for i := range shards {
		c.pages = append(c.pages, change.Page{
			Feed: change.Feed{Stream: "arn", Shard: start.Shards[i].ID}, Date: start.Date,
			Records: chainRecords(t, perPage, uint64(i)),
		})
	}
	for i := range c.pages[0].Records {
		c.bytes += len(c.pages[0].Records[i].Raw)
	}
	return c
}

// start runs the write loop until stop.
func (c *chain) start(ctx context.Context) {
	ctx, c.stop = context.WithCancelCause(ctx)
	go func() { c.ended <- c.w.run(ctx) }()
}

// feed hands over the next page of each shard. It returns the error with which the write loop ends.
func (c *chain) feed() error {
	for i := range c.pages {
		p := &c.pages[i]
		c.stored += len(p.Records)
		p.From, p.ClockFrom = p.To, p.Clock
		p.To = change.Position{After: change.SequenceNumber(fmt.Sprintf("1%020d", c.stored))}
		p.Clock += change.Version(len(p.Records))
		p.Bytes = c.bytes
		select {
		case c.w.handoff.arrivals <- arrival{page: &source.Page{Page: *p}}:
		case err := <-c.ended:
			return err
		}
	}
	return nil
}

// end ends the write loop, and returns its error.
func (c *chain) end() error {
	c.stop(errEnough)
	return <-c.ended
}

var errEnough = errors.New("enough")

// chainLog claims a new log. It returns how many frames the log has stored, too.
func chainLog(b testing.TB, ack time.Duration) (log *queue.Writer, frames func() float64) {
	b.Helper()
	o := queue.Options{Pipeline: "bench", MaxBytes: 8 << 30, ReplayWindow: -1}
	if o.Dir = b.TempDir(); ack > 0 {
		srv, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: o.Dir, SyncAlways: true,
			NoSigs: true, NoLog: true, JetStreamMaxStore: 16 << 30, MaxPayload: queue.MaxPayload,
		})
		if err != nil {
			b.Fatal(err)
		}
		srv.Start()
		b.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
		if !srv.ReadyForConnections(time.Minute) {
			b.Fatal("server is not ready")
		}
		o.Dir, o.URL = "", "nats://"+far(b, srv.Addr().String(), ack)
	}
	metrics := prometheus.NewRegistry()
	q, err := queue.Open(b.Context(), o, zap.NewNop(), metrics)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = q.Close() })
	l, err := q.CreateLog(b.Context(), "Orders", "token")
	if err != nil {
		b.Fatal(err)
	}
	if log, err = l.Claim(b.Context(), queue.ClaimOptions{Owner: "me"}); err != nil {
		b.Fatal(err)
	}
	return log, func() (n float64) {
		families, err := metrics.Gather()
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetName() == "kind" && label.GetValue() == "frame" && strings.HasSuffix(f.GetName(), "appends_total") {
						n += m.GetCounter().GetValue()
					}
				}
			}
		}
		return n
	}
}

// far passes connections on to a server, and delays what the server answers.
func far(b testing.TB, to string, delay time.Duration) (address string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go answerLater(client, server, delay)
		}
	}()
	return l.Addr().String()
}

// answerLater passes on what a server answers, each read so much later.
func answerLater(client io.WriteCloser, server io.Reader, delay time.Duration) {
	type answer struct {
		data []byte
		due  time.Time
	}
	answers := make(chan answer, 1024)
	go func() {
		for a := range answers {
			<-time.After(time.Until(a.due))
			_, _ = client.Write(a.data)
		}
		_ = client.Close()
	}()
	defer close(answers)
	for {
		buf := make([]byte, 16<<10)
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		answers <- answer{buf[:n], time.Now().Add(delay)}
	}
}

// chainWriter returns the write loop of a life whose sink has applied everything.
func chainWriter(b testing.TB, log *queue.Writer) *writer {
	b.Helper()
	b.Setenv("AWS_ACCESS_KEY_ID", "x")
	b.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	src, err := source.Open(b.Context(), source.Options{
		Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", HTTPClient: forgotten{},
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	o := &Options{
		Life: &life.Life{Logger: zap.NewNop()}, Source: src, MaxPayload: queue.MaxPayload, Row: agreeing{},
		Periods: Periods{Beat: 5 * time.Second, Mark: time.Second, Trim: time.Second},
		Observe: func(*checkpoint.State, queue.Pressure) {}, Beating: func(bool) {},
	}
	w := newWriter(o, log, newLister(o, log.Log(), newHandoff(time.Second), newProver(zap.NewNop())), queue.Pressure{})
	w.sinks = []Sink{appliedSink{log}}
	go func() {
		for range w.handoff.shards { // nothing reads
		}
	}()
	return w
}

// appliedSink has applied all that is in the log.
type appliedSink struct{ log *queue.Writer }

func (appliedSink) Name() string { return checkpoint.SinkBigtable }

func (s appliedSink) Acked() (checkpoint.Mark, uint64) {
	at := s.log.State()
	return checkpoint.Mark{Seq: at.Seq, Hash: at.Hash}, at.LastFrame
}

func (appliedSink) Drain(uint64) {}

func (appliedSink) Drained() bool { return true }

// agreeing is a row that always agrees.
type agreeing struct{ Row }

func (agreeing) Agrees() bool { return true }

// chainRecords returns records with two images of 1 KB each, half random and half repeated.
func chainRecords(b testing.TB, n int, seed uint64) []change.Record {
	b.Helper()
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	rng := rand.New(rand.NewPCG(seed, 1))
	var text strings.Builder
	image := func() string {
		v := make([]byte, 990)
		for i := range v {
			if v[i] = "electrical-goods"[i%16]; i/16%2 == 0 {
				v[i] = letters[rng.IntN(len(letters))]
			}
		}
		return string(v)
	}
	text.WriteString(`{"Records":[`)
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		key := fmt.Sprintf(`{"pk":{"S":"item-%d"}}`, i)
		fmt.Fprintf(&text, `{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":1790000000,"Keys":%s,`+
			`"NewImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},"OldImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},`+
			`"SequenceNumber":"1%020d","SizeBytes":2000,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventID":"e%d",`+
			`"eventName":"MODIFY","eventSource":"aws:dynamodb","eventVersion":"1.1"}`, key, i, image(), i, image(), i+1, i)
	}
	text.WriteString(`]}`)
	records, _, err := change.ScanPage([]byte(text.String()), nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range records {
		records[i].Version, records[i].KeyHash = change.Version(1_790_000_000_000+i), change.HashKey(records[i].Keys)
	}
	return records
}
