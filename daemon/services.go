package daemon

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// outagesKept is how many begins and ends of failures a process remembers.
const outagesKept = 100

// outages remembers the begins and ends of failures of services. Its zero value is ready for use, by
// any number of goroutines.
type outages struct {
	mu   sync.Mutex // covers list
	list []status.Happening
}

func (o *outages) add(h status.Happening) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == outagesKept {
		o.list = o.list[1:]
	}
	o.list = append(o.list, h)
}

func (o *outages) all() []status.Happening {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

// noteService logs and remembers that a service fails, once it has for longer than a retry takes, and
// that it is back.
func (d *Daemon) noteService(c pipeline.ServiceChange) {
	d.outages.add(c.Happening(time.Now()))
	if c.Back {
		d.log.Info("a service is back", zap.String("service", c.Service), zap.Duration("after", c.After))
		return
	}
	d.log.Warn("a service fails", zap.String("service", c.Service), zap.Duration("for", c.After), zap.Error(c.Err))
}
