package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
)

// archiveSink is an archive that somebody closes.
type archiveSink interface {
	pipeline.Archive
	Close() error
}

// openArchive opens where archival events go; nil where none are wanted.
func openArchive(context.Context, *config.Config, *queue.Queue, *zap.Logger, prometheus.Registerer) (archiveSink, error) {
	return nil, nil
}
