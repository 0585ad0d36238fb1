package clients

import (
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Explain adds class and hint to an error that ends a command, where it is what a service answered
// and no caller has explained it: the environment has failed, not the command. Any other error is
// returned as it is.
func Explain(err error) error {
	switch {
	case err == nil, failure.Known(err):
		return err
	case bigtable.Answered(err):
		return bigtable.Explain(err)
	case source.Answered(err):
		return source.Explain(err)
	case queue.Answered(err):
		return failure.With(failure.Unready, "see `replicator check`; then the same command again", err)
	}
	return err
}
