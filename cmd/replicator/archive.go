package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive"
)

// archiveSink is an archive that somebody closes.
type archiveSink interface {
	pipeline.Archive
	Close() error
}

// openArchive opens where archival events go; nil where none are wanted.
func openArchive(ctx context.Context, cfg *config.Config, q *queue.Queue, log *zap.Logger, reg prometheus.Registerer) (archiveSink, error) {
	if cfg.Archive == (config.Archive{}) {
		return nil, nil
	}
	o := archive.Options{Dir: cfg.Archive.File, Subject: cfg.Archive.Subject}
	if o.Subject != "" {
		o.Conn = q.Conn()
	}
	arch, err := archive.Open(ctx, o, log.Named("archive"), reg)
	if err != nil {
		return nil, exit.Environment(fmt.Errorf("open archive: %w", err), "archive.file must be a directory that this user may write and no other process has")
	}
	return arch, nil
}
