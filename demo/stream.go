package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// Stream splits and rotates the tables' shards while they are read, mostly the catalogue's, and
// hides the children for a while as the service does.
type Stream struct {
	Sandbox *sandbox.Sandbox
	Seed    uint64
	Every   time.Duration

	splits, rotations atomic.Int64
}

// Splits returns how many shards were split so far, and how often all were rotated.
func (s *Stream) Splits() (splits, rotations int64) { return s.splits.Load(), s.rotations.Load() }

// Run splits a shard or rotates all shards of a table at every tick until ctx ends, and returns nil
// then.
func (s *Stream) Run(ctx context.Context) error {
	r := rand.New(rand.NewPCG(s.Seed, 99))
	s.Sandbox.Stream.Faults().HideChildren(300 * time.Millisecond)
	defer s.Sandbox.Stream.Faults().Calm()
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		table := Table
		if r.IntN(3) == 0 {
			table = Examples[r.IntN(len(Examples))].Source
		}
		open := s.Sandbox.Stream.OpenShards(table)
		if len(open) == 0 {
			continue
		}
		if len(open) > 12 || r.IntN(3) == 0 {
			s.Sandbox.Stream.Rotate(table)
			s.rotations.Add(1)
			continue
		}
		if _, err := s.Sandbox.Stream.Split(open[r.IntN(len(open))], 2); err != nil {
			return fmt.Errorf("split shard: %w", err)
		}
		s.splits.Add(1)
	}
}
