package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestDamagedLogIsResumed: a log that cannot be folded is what `resume` is for, as `status` says.
func TestDamagedLogIsResumed(t *testing.T) {
	s := newStored(t)
	s.killed(&checkpoint.Beat{Date: now + 4321}, &checkpoint.Beat{Date: now + 5000})
	s.damage("1790000004321")
	s.run("pause --table Orders", 3, "cannot be read: the store is damaged")
	s.run("resume --table Orders", 0, "Orders is resumed")
	s.run("pause --table Orders", 0, "Orders is paused")
}

// killed appends entries as an owner that is killed then: no snapshot follows them.
func (s *stored) killed(entries ...any) {
	s.t.Helper()
	ctx := s.t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: filepath.Join(s.dir, "data")}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := l.Claim(ctx, queue.ClaimOptions{Owner: "killed"})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := w.Append(ctx, e, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

// damage flips a byte of the entry that holds a text.
func (s *stored) damage(text string) {
	s.t.Helper()
	blocks, err := filepath.Glob(filepath.Join(s.dir, "data", "jetstream", "*", "streams", "*Orders*", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		s.t.Fatalf("%d blocks: %v", len(blocks), err)
	}
	b, err := os.ReadFile(blocks[0])
	if err != nil {
		s.t.Fatal(err)
	}
	at := bytes.Index(b, []byte(text))
	if at < 0 {
		s.t.Fatalf("no entry holds %q", text)
	}
	b[at] ^= 0x40
	if err := os.WriteFile(blocks[0], b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}
