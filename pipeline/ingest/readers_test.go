package ingest

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/source"
)

// TestEndOfALifeReleasesThePagesThatWait: the write loop takes no more pages once an append has an
// unknown outcome. The memory of those that wait for it is given back, else the table, which holds
// its part, reads nothing until the process ends.
func TestEndOfALifeReleasesThePagesThatWait(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	src, err := source.Open(t.Context(), source.Options{
		Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", HTTPClient: forgotten{}, Attempts: 1,
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Life: &life.Life{Logger: zap.NewNop()}, Source: src, Row: &exactRow{}}
	h := newHandoff(time.Second)
	waits := []*source.Page{pageAhead(0), pageAhead(0)}
	for _, p := range waits {
		h.arrivals <- arrival{page: p}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readShards(ctx, o, h, newLister(o, nil, h, newProver(zap.NewNop()))); err != nil {
		t.Fatal(err)
	}
	for i, p := range waits {
		if p.Records != nil {
			t.Errorf("page %d is not released", i)
		}
	}
}
