package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/demo"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// probes measures how long a write takes to its row.
type probes struct {
	mu   sync.Mutex // covers lags
	lags []time.Duration
}

func (p *probes) add(lag time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lags = append(p.lags, lag)
}

// last is the newest lag in milliseconds, -1 before the first.
func (p *probes) last() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lags) == 0 {
		return -1
	}
	return float64(p.lags[len(p.lags)-1].Microseconds()) / 1000
}

// probe writes an item again and again, and looks how long it takes to its row.
func (d *stage) probe(ctx context.Context) error {
	sink, err := d.a.bigtable(ctx, d.cfg, nil)
	if err != nil {
		return err
	}
	defer sink.Close()
	for n := 0; ctx.Err() == nil; n++ {
		if err := d.sandbox.DynamoDB.Put(demo.Table, fmt.Appendf(nil, `{"pk":{"S":"probe"},"sk":{"S":"%06d"},"n":{"N":"%d"}}`, n, n)); err != nil {
			return fmt.Errorf("write probe: %w", err)
		}
		wrote := time.Now()
		found, err := arrived(ctx, sink, fmt.Sprintf("probe#%06d", n))
		if err != nil {
			return err
		}
		if found {
			d.probes.add(time.Since(wrote))
		}
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// arrived waits until a row is there; false when ctx ended before.
func arrived(ctx context.Context, sink *bigtable.Client, row string) (bool, error) {
	found := errors.New("found")
	for ctx.Err() == nil {
		err := sink.Rows(ctx, demo.Target, row, row+"\x00", []bigtable.View{{Family: "d", Versions: 1}}, func(*bigtable.Row) error { return found })
		switch {
		case errors.Is(err, found):
			return true, nil
		case err != nil && ctx.Err() == nil:
			return false, exit.Bigtable(fmt.Errorf("read probe: %w", err))
		}
		pause(ctx, 5*time.Millisecond)
	}
	return false, nil
}

// pause waits, but not longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
