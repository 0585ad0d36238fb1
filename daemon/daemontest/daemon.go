package daemontest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/daemon"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Daemon is a replicator that runs in the process of the test.
type Daemon struct {
	w        *World
	cfg      *config.Config
	clients  *clients.Clients
	services pipeline.Services
	pipeline *pipeline.Pipeline
	stop     context.CancelFunc
	over     chan struct{}
	err      error // when it is over
}

// Run starts a replicator with the configuration of this moment. It ends with the test, or by Stop.
func (w *World) Run() *Daemon {
	w.t.Helper()
	d := &Daemon{w: w, cfg: w.Config, over: make(chan struct{})}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	d.stop = stop
	if err := d.open(ctx); err != nil {
		stop()
		w.t.Fatalf("start replicator: %v", err)
	}
	go func() {
		defer close(d.over)
		d.err = d.pipeline.Run(ctx)
	}()
	w.daemon = d
	w.t.Cleanup(d.end)
	return d
}

func (d *Daemon) open(ctx context.Context) error {
	reg := prometheus.NewRegistry()
	d.clients = clients.ForDaemon(d.cfg, zap.NewNop(), reg, &d.services)
	src, err := d.clients.Source(ctx)
	if err != nil {
		return err
	}
	q, err := d.clients.Queue(ctx)
	if err != nil {
		return err
	}
	sink, err := d.clients.Bigtable(ctx)
	if err != nil {
		return err
	}
	o := daemon.PipelineOptions(d.cfg, src)
	o.Owner, o.Services, o.Adopt = daemon.OwnerName(), &d.services, d.w.Adopt
	if d.w.Options != nil {
		d.w.Options(&o)
	}
	d.pipeline = pipeline.New(o, src, q, sink, zap.NewNop(), reg)
	return nil
}

// Stop ends the replicator with all progress stored.
func (d *Daemon) Stop() {
	d.w.t.Helper()
	d.end()
	if d.err != nil {
		d.w.t.Errorf("replicator: %v", d.err)
	}
}

func (d *Daemon) end() {
	d.stop()
	<-d.over
	_ = d.clients.Close()
	if d.w.daemon == d {
		d.w.daemon = nil
	}
}

// Table returns the status of a table.
func (d *Daemon) Table(name string) pipeline.TableStatus {
	for _, t := range d.pipeline.Status().Tables {
		if t.Source == name {
			return t
		}
	}
	return pipeline.TableStatus{}
}

// Rehearsals returns the rehearsals of cutovers that status shows.
func (d *Daemon) Rehearsals() []status.Rehearsed { return d.pipeline.Status().Rehearsals }

// Settle waits until everything that was written so far is applied, and older items are copied.
func (d *Daemon) Settle() {
	d.w.t.Helper()
	now := d.w.Clock.Now()
	d.w.Until("everything written is applied", func() bool {
		d.w.hasten()
		through, known := d.pipeline.AppliedThrough()
		return known && through.After(now) && !slices.ContainsFunc(d.pipeline.Status().Tables, copies)
	})
}

func copies(t pipeline.TableStatus) bool { return t.Copy != nil }

// state is what a wait that fails prints.
func (w *World) state() any {
	if w.daemon == nil {
		return "no replicator runs"
	}
	return w.daemon.pipeline.Status()
}

// ended returns an error once the replicator has ended by itself.
func (w *World) ended() error {
	if w.daemon == nil {
		return nil
	}
	select {
	case <-w.daemon.over:
		return errors.Join(errors.New("the replicator has ended"), fmt.Errorf("because: %w", w.daemon.err))
	default:
		return nil
	}
}
