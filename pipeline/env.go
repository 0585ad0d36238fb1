package pipeline

import (
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/balance"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// env is what all parts of a table use and none of them changes.
type env struct {
	Table
	o        *Options // of the pipeline
	source   *source.Source
	queue    *queue.Queue
	bigtable *bigtable.Client
	families *targetFamilies
	settings *settings.Watch
	format   *rollout.Format // of the pipeline
	// copyMemory bounds the pages of copies, all tables together.
	copyMemory *resync.Memory
	archives   *archiving.Metrics
	balancer   *balance.Balancer // nil: there are no other processes
	log        *zap.Logger
}

// now returns the service's clock; this machine's clock until the first answer of the service.
func (e *env) now() change.Millis { return serviceTime(e.source) }

// instance returns the project and the instance of the target; "" for a table without one.
func (e *env) instance() string {
	if e.bigtable == nil {
		return ""
	}
	return e.bigtable.Project() + "/" + e.bigtable.Instance()
}

func serviceTime(src *source.Source) change.Millis {
	if ms, ok := src.Now(); ok {
		return ms
	}
	return change.Millis(time.Now().UnixMilli())
}

// all returns the tables now. The slice never changes.
func (p *Pipeline) all() []*table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tables
}
