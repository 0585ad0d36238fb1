package dryrun

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Options are what a dry run needs. Zero periods get their defaults.
type Options struct {
	Source  *source.Source
	Tables  []Table
	Horizon bool          // begin at the trim horizon, up to 24 hours ago; else now
	Listing time.Duration // between two listings of a stream: a minute
	Every   time.Duration // between two calls of Show: two seconds
	Show    func(*Report) // may be nil
	Logger  *zap.Logger
}

// Table is a table as it is described, with its compiled mapping.
type Table struct {
	Source, Target string
	Info           source.TableInfo
	Program        *transform.Program
}

func (o Options) withDefaults() Options {
	if o.Listing == 0 {
		o.Listing = time.Minute
	}
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	return o
}

// Run reads until ctx ends and returns what it counted. An error of one table ends all; the report
// shows what was counted before.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	began := time.Now()
	tables := make([]*table, len(o.Tables))
	for i, t := range o.Tables {
		tables[i] = newTable(&o, t, began)
	}
	g, inner := errgroup.WithContext(ctx)
	for _, t := range tables {
		g.Go(func() error { return t.run(inner) })
	}
	if o.Show != nil {
		g.Go(func() error {
			for failure.Pause(inner, o.Every) == nil {
				o.Show(reportOf(tables, began, time.Now()))
			}
			return nil
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		err = nil // it was asked to end
	}
	return reportOf(tables, began, time.Now()), err
}
