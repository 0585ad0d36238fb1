package control

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestStatusShowsTheOthersBesideADamagedLog: one table's log has an entry that cannot be read. The
// status shows that table as halted, and the others as usual.
func TestStatusShowsTheOthersBesideADamagedLog(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	open := func() *queue.Queue {
		q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: dir}, zap.NewNop(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	for _, table := range []string{"Orders", "Users"} {
		l, err := q.CreateLog(ctx, table, "t0ken")
		if err != nil {
			t.Fatal(err)
		}
		w, err := l.Claim(ctx, queue.ClaimOptions{Owner: "a"})
		for i := int64(1); i <= 3 && err == nil; i++ {
			_, err = w.Append(ctx, &checkpoint.Beat{Date: change.Millis(i)}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*Orders*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%d blocks: %v", len(blocks), err)
	}
	b, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	beats := regexp.MustCompile("TRLG.b").FindAllIndex(b, -1)
	b[beats[1][1]+10] ^= 0x40
	if err := os.WriteFile(blocks[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	q = open()
	defer q.Close()
	cfg := &config.Config{Pipeline: "shop", Tables: []config.Table{{Source: "Orders"}, {Source: "Users"}}}
	status, _, err := NewObserver(cfg, cfg.Tables, clients.ForCommand(cfg, nil)).look(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	if x := status.Tables[0]; x.State != "halted" || x.Code != "log_damaged" || !strings.Contains(x.Halt, "resume") {
		t.Errorf("the damaged log: %s %s: %s", x.State, x.Code, x.Halt)
	}
	if x := status.Tables[1]; x.State == "halted" {
		t.Errorf("the other log: %s: %s", x.State, x.Halt)
	}
}
