package preflight

import (
	"strings"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/problem"
)

// NotDurable returns an error for each directory in which this operating system may lose synced
// files in a power cut: the replicator acknowledges what is there. The demo does without this
// check.
func NotDurable(cfg *config.Config) []problem.Problem { return notDurable(cfg, host.SyncsDirectories) }

// notDurable is NotDurable where directories can be synced, or not.
func notDurable(cfg *config.Config, syncsDirectories bool) (found []problem.Problem) {
	if syncsDirectories {
		return nil
	}
	const what = "this operating system cannot sync a directory: a power cut could lose files that were acknowledged"
	if cfg.Queue.URL == "" {
		found = append(found, errorf("queue_dir", "queue.dir",
			"set queue.url to a NATS cluster, or run on Linux or macOS", what))
	}
	if strings.HasPrefix(cfg.Archive.URL, "file:") {
		found = append(found, errorf("archive", "archive.url",
			"set archive.url to s3://, gs:// or azblob://, or run on Linux or macOS", what))
	}
	return found
}
