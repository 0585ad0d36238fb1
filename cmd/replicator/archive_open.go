package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/restore"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

// archiveFlags are the flags that all of these commands have.
type archiveFlags struct{ table, from, to string }

func (f *archiveFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.table, "table", "", "only this source table")
	cmd.Flags().StringVar(&f.from, "from", "", "a time (UTC), a day, an hour (2026-05-04T13), or how long ago (36h, 30d)")
	cmd.Flags().StringVar(&f.to, "to", "", "the end of the time, not included")
}

// archiveScope is what a command works on: the tables, the time, and the opened store.
type archiveScope struct {
	cfg    *config.Config
	tables []string
	in     restore.Range
	bucket bucket.Bucket
}

// close closes the store. Its error is ignored, because nothing was written.
func (s *archiveScope) close() { _ = s.bucket.Close() }

// open opens the store and reads the flags.
func (a *archiveCommands) open(ctx context.Context, f *archiveFlags) (*archiveScope, error) {
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, err
	}
	s := &archiveScope{cfg: cfg}
	if s.in, err = restore.ParseRange(f.from, f.to, time.Now()); err != nil {
		return nil, err
	}
	if s.bucket, err = restore.Open(ctx, cfg); err != nil {
		return nil, err
	}
	if s.tables, err = restore.Tables(ctx, s.bucket, cfg, f.table); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// bar returns what shows a bar on a terminal, and what removes it.
func (a *archiveCommands) bar(name string) (show func(done, all int64, text string), remove func()) {
	if !a.ShowsBars() {
		return func(int64, int64, string) {}, func() {}
	}
	drawn, began := render.NewBars(a.Errs), time.Now()
	return func(done, all int64, text string) {
		rate := float64(done) / max(time.Since(began).Seconds(), 0.001)
		drawn.Show([]render.Step{{Name: name, Percent: 100 * float64(done) / float64(max(all, 1)),
			Text: fmt.Sprintf("%s, %s/s", text, humanize.Bytes(uint64(rate)))}})
	}, drawn.Close
}
