package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// lags are the times from a write to its row, in the order in which they were measured.
type lags struct {
	mu  sync.Mutex // covers all
	all []time.Duration
}

func (l *lags) add(lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, lag)
}

// last returns the newest lag in milliseconds, -1 before the first.
func (l *lags) last() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return -1
	}
	return milliseconds(l.all[len(l.all)-1])
}

// Lag is the time from a write to its row in milliseconds, kills included.
type Lag struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// percentiles returns the median and the 99th percentile, 0 without a lag.
func (l *lags) percentiles() Lag {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return Lag{}
	}
	sorted := slices.Sorted(slices.Values(l.all))
	at := func(q float64) float64 { return milliseconds(sorted[int(q*float64(len(sorted)-1))]) }
	return Lag{P50: at(0.50), P99: at(0.99)}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

const (
	probePeriod = 100 * time.Millisecond // between two probes
	probePoll   = 5 * time.Millisecond   // between two reads of a probe's row
)

// probe writes items to the catalogue until ctx ends, and measures the time until each has a row.
func (s *Stage) probe(ctx context.Context) error {
	clients := clients.ForCommand(s.cfg, s.o.Logger)
	defer clients.Close()
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; n++ {
		item := fmt.Appendf(nil, `{"pk":{"S":"probe"},"sk":{"S":"%06d"},"n":{"N":"%d"}}`, n, n)
		if err := s.sandbox.DynamoDB.Put(Table, item); err != nil {
			return fmt.Errorf("write probe: %w", err)
		}
		wrote := time.Now()
		arrived, err := waitForRow(ctx, sink, fmt.Sprintf("probe#%06d", n))
		if err != nil {
			return err
		}
		if arrived {
			s.lags.add(time.Since(wrote))
		}
		_ = failure.Pause(ctx, probePeriod)
	}
	return nil
}

// waitForRow waits until the catalogue's target has a row; it returns false if ctx ends first.
func waitForRow(ctx context.Context, sink *bigtable.Client, row string) (bool, error) {
	found := errors.New("found")
	for ctx.Err() == nil {
		err := sink.Rows(ctx, Target, row, row+"\x00", []bigtable.View{{Family: "d", Versions: 1}},
			func(*bigtable.Row) error { return found })
		switch {
		case errors.Is(err, found):
			return true, nil
		case err != nil && ctx.Err() == nil:
			return false, bigtable.Explain(fmt.Errorf("read probe: %w", err))
		}
		_ = failure.Pause(ctx, probePoll)
	}
	return false, nil
}
