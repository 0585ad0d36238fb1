package catalog

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

// Found is a configuration with the tables that its selections choose.
type Found struct {
	*config.Config
	Problems []problem.Problem // each about one table, which is left out
	// Unlisted is why DynamoDB cannot be listed; then the tables are those that have a log. Nil: it
	// was listed.
	Unlisted error
}

// ForCommand looks for the tables of a command. Without DynamoDB it takes those that have a log:
// commands about the queue need no more. An error means that neither can be had.
func ForCommand(ctx context.Context, cfg *config.Config, logger clients.Logger) (*Found, error) {
	if !cfg.Selecting() {
		return &Found{Config: cfg}, nil
	}
	clients := clients.ForCommand(cfg, logger)
	defer clients.Close()
	logged, queueErr := logs(ctx, clients)
	src, err := clients.Source(ctx)
	var listed []config.Listed
	if err == nil {
		listed, err = newLister(src).list(ctx, cfg, logged)
	}
	f := &Found{Unlisted: err}
	if err != nil {
		if queueErr != nil || len(logged) == 0 {
			return nil, failure.With(failure.Unready, source.Hint(err), fmt.Errorf("look for tables: %w", err))
		}
		listed = unlisted(logged)
	}
	f.Config, f.Problems = cfg.Expand(listed)
	return f, nil
}

// Logged returns the tables that have a log in the queue of a configuration; none when it cannot be
// asked.
func Logged(ctx context.Context, cfg *config.Config, logger clients.Logger) []string {
	clients := clients.ForCommand(cfg, logger)
	defer clients.Close()
	names, _ := logs(ctx, clients) // what a shell completes is worth no error
	return names
}

// logs returns the tables that have a log in the queue.
func logs(ctx context.Context, clients *clients.Clients) ([]string, error) {
	q, err := clients.Queue(ctx)
	if err != nil {
		return nil, err
	}
	return q.Tables(ctx)
}
