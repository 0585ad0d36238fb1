package cutover

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// files returns the folders in scratch that hold sorted runs of the table: runs of resyncs, and of
// comparisons of its target if no other table writes to it.
func (r *Retirement) files(ctx context.Context) ([]string, error) {
	dirs := []string{filepath.Join(r.cfg.Scratch, "resync", "resync", r.cfg.Pipeline, r.Table)}
	shared, err := r.shared(ctx)
	if err != nil {
		return nil, err
	}
	if r.Kept.Target != "" && !shared {
		for _, what := range []string{"cutover", "verify"} {
			dirs = append(dirs, filepath.Join(r.cfg.Scratch, what, r.cfg.Pipeline, r.Kept.Target))
		}
	}
	there := []string{}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			there = append(there, dir)
		}
	}
	return there, nil
}

// shared reports whether another table of the pipeline writes to the target.
func (r *Retirement) shared(ctx context.Context) (shared bool, err error) {
	if r.sink == nil {
		return false, nil
	}
	target := r.sink.TargetName(r.Kept.Target)
	err = r.sink.States(ctx, func(s *bigtable.State) error {
		id := s.Identity
		shared = shared || id.Target == target && (id.Pipeline != r.cfg.Pipeline || id.Table != r.Table)
		return nil
	})
	if err != nil {
		return false, bigtable.Explain(err)
	}
	return shared, nil
}
