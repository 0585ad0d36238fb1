package control

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
)

// showPeriod is the time between two looks at the progress.
const showPeriod = time.Second

// RequestProgress is how far a command is.
type RequestProgress struct {
	Done, Asked int64  // items
	All         bool   // everything that the command asks for is in Asked
	Why         string // what the owner waits for, if that takes longer than usual
}

// count is a RequestProgress while it changes.
type count struct {
	asked, done atomic.Int64
	all         atomic.Bool
}

// show calls r.Progress until the returned function is called.
func (r *Requester) show(ctx context.Context, n *count) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for failure.Pause(ctx, showPeriod) == nil {
			p := &RequestProgress{Done: n.done.Load(), Asked: n.asked.Load(), All: n.all.Load()}
			if r.Why != nil {
				p.Why = r.Why(ctx)
			}
			r.Progress(p)
		}
	}()
	return func() {
		cancel()
		<-ended
		r.Progress(nil)
	}
}

// WhyRequestsWait returns a Why that reads the reason from the daemon of a configuration.
func WhyRequestsWait(cfg *config.Config, table string) func(context.Context) string {
	return func(ctx context.Context) string {
		status := Daemon(ctx, cfg)
		if status == nil {
			return ""
		}
		for i := range status.Tables {
			if t := &status.Tables[i]; t.Source == table && t.Requests != nil {
				return t.Requests.Why
			}
		}
		return ""
	}
}
