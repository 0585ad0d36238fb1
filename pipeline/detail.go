package pipeline

import (
	"context"

	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Detail returns the content of a table's page beside its status: the shards and gaps as the owner
// last found them, nil where this process does not own the table, and the points of the last hour.
// It is false for an unknown table.
func (p *Pipeline) Detail(ctx context.Context, source string) (d *status.Detail, hour []latency.Point, ok bool) {
	for _, t := range p.all() {
		if t.Source == source {
			return t.view.detail.Get(ctx), t.view.history.Hour(), true
		}
	}
	return nil, nil, false
}
