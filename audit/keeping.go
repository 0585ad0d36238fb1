package audit

import (
	"context"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// record begins to record the comparison, if it is one of all tables of the target. Parts that an
// earlier process has read are removed unless the record goes on where that one began: they are
// older than the logs now.
func (r *run) record(ctx context.Context, cfg *config.Config, dir string) error {
	if !r.all() {
		return nil
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "part-*"))
	if err != nil {
		return err
	}
	o := RecordOptions{
		Dir: r.base, Pipeline: cfg.Pipeline, Strong: r.o.Strong, Along: r.o.Along, ByWorkers: r.o.Workers != nil,
	}
	if len(parts) > 0 {
		o.DropParts = func() error { return removeParts(dir) }
	}
	if r.o.Workers != nil && hasJob(dir) {
		o.DropParts = func() error { return forgetJob(dir) }
	}
	r.recorder, _, err = Record(ctx, r.pair, o)
	return err
}

func (r *run) along(ctx context.Context, compare func(context.Context) error) error {
	if r.recorder == nil {
		return compare(ctx)
	}
	return r.recorder.Along(ctx, compare)
}

// keep keeps the result. Where the logs could not be read along, the tables are not proven equal
// for a cutover.
func (r *run) keep() error {
	if r.recorder == nil {
		return nil
	}
	why, err := r.recorder.Keep(r.result)
	if err != nil || why == "" || !r.o.Along {
		return err
	}
	for i := range r.result {
		if t := &r.result[i]; t.Verdict == report.Equal {
			t.Verdict, t.Why = report.Unproven, why
		}
	}
	return nil
}

func (r *run) stopRecording() {
	if r.recorder != nil {
		_ = r.recorder.Close() // what is kept is complete by then
	}
}
