package rollout

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// stores returns a store of each kind that needs no server.
func stores(t *testing.T) map[string]Store {
	b, err := bucket.Open(t.Context(), "file://"+t.TempDir(), bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Store{
		"memory": &memory{},
		"bucket": InBucket(b, func(context.Context) error { return nil }),
	}
}

// memory is a store as Bigtable is one: a swap compares what is stored.
type memory struct {
	mu  sync.Mutex
	row *Row
}

func (m *memory) Load(context.Context, string) (*Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.row, nil
}

func (m *memory) Swap(_ context.Context, _ string, old, next *Row) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row != old {
		return false, nil
	}
	m.row = next
	return true, nil
}

// TestRowIsOnlyEverRaised: of those who raise it at once the highest wins, and nobody lowers it.
func TestRowIsOnlyEverRaised(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for what, s := range stores(t) {
		if row, err := s.Load(t.Context(), "shop"); row != nil || err != nil {
			t.Fatalf("%s: a new pipeline has %+v, %v", what, row, err)
		}
		var g errgroup.Group
		for _, to := range []int{4, 5, 3, 5, 6, 4} {
			g.Go(func() error {
				row, err := Raise(ctx, s, "shop", Row{Log: to, Build: "b"})
				if err == nil && row.Log < to {
					t.Errorf("%s: raised to %d, it is %d", what, to, row.Log)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if row, err := Raise(ctx, s, "shop", Row{Log: 2}); err != nil || row.Log != 6 || row.Build != "b" {
			t.Errorf("%s: %+v, %v", what, row, err)
		}
		if row, err := s.Load(t.Context(), "other"); what == "bucket" && (row != nil || err != nil) {
			t.Errorf("%s: another pipeline has %+v, %v", what, row, err)
		}
	}
}

// Rule 11: also the row has a format, and a pipeline of a newer format is refused with what to do.
func TestNewerRowsAreRefused(t *testing.T) {
	newer := (*bigtable.NewerFormatError)(nil)
	if _, err := decode([]byte(`{"format":2,"log":4}`)); !errors.As(err, &newer) || newer.Have != 2 {
		t.Errorf("row of format 2: %v", err)
	}
	if refused := (*Row)(nil).Check("shop"); refused != nil {
		t.Error(refused)
	}
	if refused := (&Row{Log: checkpoint.Format}).Check("shop"); refused != nil {
		t.Error(refused)
	}
	refused := (&Row{Log: checkpoint.Format + 1, Build: "1.9.0"}).Check("shop")
	if refused == nil || !strings.Contains(refused.What, "pipeline shop has format") ||
		!strings.Contains(refused.Hint, "version 1.9.0 or later") {
		t.Errorf("pipeline of a newer format: %+v", refused)
	}
}
