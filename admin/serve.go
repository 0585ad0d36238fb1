package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// Health reports the health of a replicator. All methods are cheap and may be called at any time,
// from any goroutine.
type Health interface {
	// Live returns why the process should be restarted, or nil: its loops run and its queue
	// answers.
	Live() error
	// Started returns what a rollout has to wait for, or nil: the state is loaded, and each table
	// is owned by this process or another one.
	Started() error
	// Ready reports whether all tables progress or are idle, and each reason why not.
	Ready() (bool, []string)
	// Status returns what `replicator status --json` prints.
	Status() pipeline.Status
	// Table returns what the page of a table shows beside the status; it may wait for a second. It
	// is false for an unknown table.
	Table(ctx context.Context, source string) (TablePage, bool)
	// Past returns how a table was in the last hour, and the newest events, at most so many; of every
	// table for "".
	Past(source string, events int) pipeline.Past
	// Version names the build.
	Version() string
}

// shutdownGrace is the time for requests in flight when the server ends.
const shutdownGrace = 2 * time.Second

// Options say what is served.
type Options struct {
	Health  Health
	Metrics prometheus.Gatherer
	Hosts   []string // further names by which the server answers
	Log     *zap.Logger
}

// Serve serves on ln until ctx ends, then closes it and returns nil. It returns an error if the
// listener fails before.
func Serve(ctx context.Context, ln net.Listener, o Options) error {
	return serveWithin(ctx, ln, o, Handler(o.Health, o.Metrics), defaultLimits)
}

// ServePage is Serve for a command without a replicator: it serves one page and the metrics, and
// Options.Health is not used. An error of page is shown.
func ServePage(ctx context.Context, ln net.Listener, o Options, page func(io.Writer) error) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		if err := page(&text); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = text.WriteTo(w) // the browser has gone
	})
	return serveWithin(ctx, ln, o, mux, defaultLimits)
}

func serveWithin(ctx context.Context, ln net.Listener, o Options, h http.Handler, l limits) error {
	server := &http.Server{
		Handler:           hostsOf(o.Hosts).refuseOthers(h),
		ReadHeaderTimeout: l.header,
		ReadTimeout:       l.read,
		WriteTimeout:      l.write,
		IdleTimeout:       l.idle,
		ConnState:         newConnections(l.connections).note,
		ErrorLog:          zap.NewStdLog(o.Log),
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		ended <- errors.Join(server.Shutdown(grace), server.Close())
	})
	o.Log.Info("admin server listens", zap.Stringer("address", ln.Addr()))
	err := server.Serve(ln)
	if stop() { // ctx has not ended: the listener failed
		return fmt.Errorf("serve admin: %w", err)
	}
	if err := <-ended; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop admin server: %w", err)
	}
	return nil
}

// Handler returns the handler of the admin server's paths.
func Handler(h Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) { writeProbe(w, r, reasonsOf(h.Live())) })
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, r *http.Request) {
		writeProbe(w, r, reasonsOf(h.Started()))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		// Rule 10: ready means progress or idleness of every live shard, never "the process is up".
		ready, reasons := h.Ready()
		if !ready && len(reasons) == 0 {
			reasons = []string{"not ready"}
		}
		if ready {
			reasons = nil
		}
		writeProbe(w, r, reasons)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.Status()) })
	p := pages{health: h}
	mux.HandleFunc("GET /{$}", p.serveFront)
	mux.HandleFunc("GET /table/{name}", p.serveTable)
	mux.Handle("GET /page/", pageAssets())
	return mux
}
