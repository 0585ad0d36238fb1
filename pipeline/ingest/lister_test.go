package ingest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/source"
)

// forgotten answers as a service that knows no stream.
type forgotten struct{}

func (forgotten) Do(r *http.Request) (*http.Response, error) {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not found"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)},
		},
	}, nil
}

// quietSource returns a source that knows no stream.
func quietSource(t *testing.T) *source.Source {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	src, err := source.Open(t.Context(), source.Options{
		Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", HTTPClient: forgotten{}, Attempts: 1,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// The last owner stored a child whose parent no listing has shown yet, and for a day nobody read:
// by then the stream is gone, and no listing will ever show the parent.
func TestChildInAStreamThatIsGoneDoesNotWaitForItsParent(t *testing.T) {
	src := quietSource(t)
	h := newHandoff(time.Second)
	l := newLister(&Options{Life: &life.Life{Logger: zap.NewNop()}, Source: src}, nil, h, newProver(zap.NewNop()))
	l.summary = streamSummary{stream: "arn:aws:dynamodb:eu-west-1:1:table/T/stream/s", disabled: true}
	if err := l.listAll(t.Context()); source.Classify(err) == 0 {
		t.Fatalf("nothing waits, and the stream is gone: %v", err)
	}
	l.summary.missing = []string{"shard-parent"}
	stored := make(chan any, 1)
	go func() {
		r := <-h.requests
		stored <- r.body
		r.done <- nil
	}()
	if err := l.listAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := (<-stored).(*checkpoint.Graph)
	if d := cmp.Diff(l.summary.missing, g.Gone); d != "" || g.Complete || g.Date == 0 {
		t.Errorf("%+v: %s", g, d)
	}
}

// TestNextStreamIsAwaitedBehindAFence: a stream that ended is followed by the next one once
// everything of it is applied. Behind a fence nothing is to be applied to Bigtable, while reading
// and the archive go on: else what the application writes to the next stream would be counted by
// nothing.
func TestNextStreamIsAwaitedBehindAFence(t *testing.T) {
	for name, c := range map[string]struct {
		bigtable, archive uint64 // marks; the newest entry with changes is 9, and 6 before the fence
		fenced, want      bool
	}{
		"not applied":              {6, 9, false, false},
		"applied":                  {9, 9, false, true},
		"at the fence":             {6, 9, true, true},
		"not at the fence":         {5, 9, true, false},
		"the archive is behind it": {6, 8, true, false},
	} {
		s := checkpoint.NewState()
		s.Streams, s.LastFrame = []*checkpoint.Stream{{ARN: "s", Disabled: true}}, 9
		s.Shards["a"] = &checkpoint.Shard{ID: "a", Stream: "s", Phase: checkpoint.PhaseFinished}
		s.Marks = map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: c.bigtable}, "archive": {Seq: c.archive}}
		if c.fenced {
			s.Fence = &checkpoint.Fence{ID: "f", Seq: 7, Last: 6, Behind: 1}
		}
		s.Reindex()
		l := newLister(&Options{Life: &life.Life{}}, nil, nil, newProver(zap.NewNop()))
		l.update(s)
		if got := l.current().applied; got != c.want {
			t.Errorf("%s: the next stream may start: %t", name, got)
		}
	}
}
