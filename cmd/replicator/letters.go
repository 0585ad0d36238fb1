package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// tableLetters is the dead letters of one table.
type tableLetters struct {
	*deadletter.Store
	source     string    // table of DynamoDB
	logCreated time.Time // when the table's log was made
}

// openLetters opens the dead letters of the tables that have a store of them. The caller closes the clients.
func (a *app) openLetters(
	ctx context.Context, cfg *config.Config, table string,
) (*wire.Clients, []tableLetters, error) {
	tables, err := catalog.Select(cfg, table)
	if err != nil {
		return nil, nil, err
	}
	clients := a.clients(cfg)
	q, err := clients.Queue(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []tableLetters
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) {
			continue
		}
		var letters *deadletter.Store
		if err == nil {
			letters, err = log.ExistingDeadLetters(ctx)
		}
		if err != nil {
			_ = clients.Close()
			return nil, nil, exit.Environment(fmt.Errorf("open dead letters of %s: %w", t.Source, err), "see `replicator check`")
		}
		if letters == nil {
			continue // the replicator has not made their stream yet
		}
		all = append(all, tableLetters{letters, t.Source, log.Created()})
	}
	return clients, all, nil
}

// findLetter returns a dead letter and the letters of its table.
func findLetter(ctx context.Context, all []tableLetters, id string) (tableLetters, *deadletter.Letter, error) {
	for _, t := range all {
		letter, err := t.Get(ctx, id)
		if errors.Is(err, deadletter.ErrNotFound) {
			continue
		}
		if err != nil {
			return t, nil, fmt.Errorf("read dead letter: %w", err)
		}
		return t, letter, nil
	}
	return tableLetters{}, nil, &exit.Error{Code: exit.CodeRuntime, Err: fmt.Errorf("no dead letter %q", id),
		Hint: "`replicator dlq list` shows them"}
}
