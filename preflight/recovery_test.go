package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// answers are what a store answers to the questions for a row, one after the other.
type answers struct {
	staterow.Store
	errs []error
}

func (a *answers) LoadState(context.Context, string, string) (*bigtable.State, error) {
	err := a.errs[0]
	a.errs = a.errs[1:]
	if err != nil {
		return nil, err
	}
	return &bigtable.State{Life: 7}, nil
}

// Rule 13: the row that `recover` stores again, or the life that it begins, must not rest on one
// answer.
func TestRowIsNotGoneByOneAnswer(t *testing.T) {
	none, other := fmt.Errorf("load: %w", bigtable.ErrNoState), errors.New("unavailable")
	for name, c := range map[string]struct {
		errs  []error
		there bool
		err   error
	}{
		"there":           {[]error{nil}, true, nil},
		"not found once":  {[]error{none, nil}, true, nil},
		"not found twice": {[]error{none, none}, false, nil},
		"then an error":   {[]error{none, other}, false, other},
	} {
		row, err := loadRow(t.Context(), &answers{errs: c.errs}, "shop", "Orders")
		if (row != nil) != c.there || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, row, err)
		}
	}
}

// Rule 13: a log that cannot be read while its volume gives errors is not replaced by another life,
// whether the store cannot open it or was open before.
func TestLogOfAVolumeThatIsAwayIsNotRecovered(t *testing.T) {
	for name, opened := range map[string]bool{"when the store is opened": false, "while it is open": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg, problems := config.Parse(fmt.Appendf(nil, `pipeline: shop
source: {region: us-east-1}
queue: {dir: %q}
archive: {url: %q}
tables:
- {source: Orders, archive: {}}
`, dir+"/data", "file://"+dir+"/archive"), "tailrace.yaml")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			makeLog(t, cfg.Queue.Dir)
			clients := clients.ForCommand(cfg, func(zapcore.Level) *zap.Logger { return zap.NewNop() })
			defer clients.Close()
			if opened {
				if _, err := clients.Queue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			blocks, err := filepath.Glob(filepath.Join(cfg.Queue.Dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
			if err != nil || len(blocks) == 0 {
				t.Fatal(blocks, err)
			}
			err = errors.Join(os.Rename(blocks[0], filepath.Join(dir, "kept")), os.Symlink(blocks[0], blocks[0]))
			if err != nil {
				t.Fatal(err)
			}
			tables := &catalog.Catalog{Tables: []*catalog.Table{{Table: cfg.Tables[0]}}}
			lives, err := PlanRecoveries(t.Context(), cfg, clients, tables, "")
			if !errors.Is(err, queue.ErrVolume) || len(lives) > 0 {
				t.Errorf("%+v, %v", lives, err)
			}
		})
	}
}

// makeLog makes the log of the table Orders in an embedded store.
func makeLog(t *testing.T, dir string) {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Pipeline: "shop", Dir: dir}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.CreateLog(t.Context(), "Orders", "t0ken")
	var w *queue.Writer
	if err == nil {
		w, err = l.Claim(t.Context(), queue.ClaimOptions{Owner: "a", TTL: time.Second, Alone: true})
	}
	if err == nil {
		_, err = w.Append(t.Context(), &checkpoint.Beat{Date: 1}, nil)
	}
	if err = errors.Join(err, q.Close()); err != nil {
		t.Fatal(err)
	}
}
