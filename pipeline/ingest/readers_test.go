package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// waiting returns a handoff in which two pages wait, and what readShards needs to end at once.
func waiting(t *testing.T) (*Options, *handoff, []*source.Page) {
	t.Helper()
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
	return o, h, waits
}

// endReading runs readShards in a context that has ended.
func endReading(t *testing.T, o *Options, h *handoff) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readShards(ctx, o, h, newLister(o, nil, h, newProver(zap.NewNop()))); err != nil {
		t.Fatal(err)
	}
}

// TestEndOfALifeReleasesThePagesThatWait: the write loop takes no more pages once an append has an
// unknown outcome. The memory of those that wait for it is given back, else the table, which holds
// its part, reads nothing until the process ends.
func TestEndOfALifeReleasesThePagesThatWait(t *testing.T) {
	for name, end := range map[string]func(*Options, *handoff){
		"the readers last":    func(o *Options, h *handoff) { h.leave(); endReading(t, o, h) },
		"the write loop last": func(o *Options, h *handoff) { endReading(t, o, h); h.leave() },
	} {
		t.Run(name, func(t *testing.T) {
			o, h, waits := waiting(t)
			end(o, h)
			for i, p := range waits {
				if p.Records != nil {
					t.Errorf("page %d is not released", i)
				}
			}
		})
	}
}

// TestEndOfReadingDropsNothingBesideTheWriteLoop: Rules 2 and 10. The write loop still takes what
// waits when the readers end. Were a page dropped beside it, it would store the one behind.
func TestEndOfReadingDropsNothingBesideTheWriteLoop(t *testing.T) {
	o, h, waits := waiting(t)
	endReading(t, o, h)
	for i, p := range waits {
		select {
		case a := <-h.arrivals:
			if a.page != p || p.Records == nil {
				t.Errorf("page %d was dropped", i)
			}
		default:
			t.Errorf("page %d does not wait any more", i)
		}
	}
}

// TestNothingIsHandedOverOnceReadingEnds: Rule 2. There is room for each page, so that a select
// alone would hand over half of them, by chance, and drop those between them.
func TestNothingIsHandedOverOnceReadingEnds(t *testing.T) {
	h := newHandoff(time.Second)
	g, ctx := errgroup.WithContext(t.Context())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	r := &readers{handoff: h, g: g}
	for range 20 {
		p := pageAhead(0)
		if err := r.send(ended, arrival{page: p}); err != nil || p.Records != nil {
			t.Errorf("send: %v; released: %v", err, p.Records == nil)
		}
		if err := r.send(ended, arrival{gap: request{body: &checkpoint.Gap{}}}); err != nil {
			t.Error(err)
		}
	}
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := len(h.arrivals); n > 0 {
		t.Errorf("%d arrivals were handed over", n)
	}
}

// TestShardThatIsReadAgainKeepsWhatWasListedOfIt: its end is decided by what was read then, without
// another listing. Where none of its children was listed they are looked for behind the end.
func TestShardThatIsReadAgainKeepsWhatWasListedOfIt(t *testing.T) {
	o, h, _ := waiting(t)
	c := newConfirmer(o, newLister(o, nil, h, newProver(zap.NewNop())))
	c.verdicts = make(chan verdict, 1)
	decided := func(v verdict) verdict {
		c.decide(t.Context(), v)
		return <-c.verdicts
	}
	for _, childless := range []bool{true, false} {
		of := doubt{reader: o.Source.NewReader(source.Start{Feed: change.Feed{Stream: "arn", Shard: "s"}})}
		decided(verdict{doubt: of, fate: protocol.ReadAgain, childless: childless})
		if v := decided(verdict{doubt: of, fate: protocol.ReadToEnd}); v.childless != childless {
			t.Errorf("without children %t: looked for behind the end: %t", childless, v.childless)
		}
	}
	if len(c.children) > 0 {
		t.Errorf("%d shards are kept behind their ends", len(c.children))
	}
}
