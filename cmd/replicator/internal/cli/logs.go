package cli

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// TableLogs folds the logs of the tables that have one, or of one table; close the clients when
// done.
func (a *App) TableLogs(ctx context.Context, table string) (logs []*control.Log, clients *clients.Clients, err error) {
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	tables, err := catalog.Select(cfg, table)
	if err != nil {
		return nil, nil, err
	}
	clients = a.Clients(cfg)
	q, err := clients.Queue(ctx)
	if err == nil {
		logs, err = control.OpenAll(ctx, q, tables)
	}
	if err != nil {
		_ = clients.Close()
		return nil, nil, err
	}
	for _, l := range logs {
		l.Clock = clients.ServiceTime
	}
	return logs, clients, nil
}

// OpenLetters opens the dead letters of a table, or of all. The caller closes the clients.
func (a *App) OpenLetters(
	ctx context.Context, cfg *config.Config, table string,
) (*clients.Clients, []control.LettersOf, error) {
	tables, err := catalog.Select(cfg, table)
	if err != nil {
		return nil, nil, err
	}
	clients := a.Clients(cfg)
	q, err := clients.Queue(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := control.OpenLetters(ctx, q, tables)
	if err != nil {
		_ = clients.Close()
	}
	return clients, all, err
}

// FindLetter returns a dead letter by its id, and the letters of its table. The caller closes the
// clients.
func (a *App) FindLetter(
	ctx context.Context, id string,
) (*clients.Clients, control.LettersOf, *deadletter.Letter, error) {
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, control.LettersOf{}, nil, err
	}
	clients, all, err := a.OpenLetters(ctx, cfg, "")
	if err != nil {
		return nil, control.LettersOf{}, nil, err
	}
	of, letter, err := control.FindLetter(ctx, all, id)
	if err != nil {
		_ = clients.Close()
	}
	return clients, of, letter, err
}

// Requester returns what asks the owner of a table to do something with its items. It says on
// stderr how far that is.
func (a *App) Requester(cfg *config.Config, clients *clients.Clients, table string) *control.Requester {
	progress := reportProgress(a.Errs, table)
	if a.ShowsBars() {
		progress = drawProgress(a.Errs, table)
	}
	return &control.Requester{
		Table: table, Clients: clients, ClaimTTL: time.Duration(cfg.Protocol.ClaimTTL), By: control.Whoami(),
		Progress: progress, Why: control.WhyRequestsWait(cfg, table), Away: reportAway(a.Errs, table),
	}
}
