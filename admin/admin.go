// Package admin serves metrics, health and a status page of a running replicator over HTTP, for people, Prometheus and
// Kubernetes. It has no authentication and changes nothing. By default it listens on loopback.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Health reports the health of a replicator. All methods are cheap and may be called at any time, from any goroutine.
type Health interface {
	// Live returns why the process should be restarted, or nil: its loops run and its queue answers.
	Live() error
	// Started returns what a rollout has to wait for, or nil: the state is loaded, and each table is owned by this process
	// or another one.
	Started() error
	// Ready reports whether all tables progress or are idle, and each reason why not.
	Ready() (bool, []string)
	// Status returns what `replicator status --json` prints, as a value for encoding/json.
	Status() any
}

// shutdownGrace is the time for requests in flight when the server ends.
const shutdownGrace = 2 * time.Second

// Serve serves on ln until ctx ends, then closes it and returns nil. It returns an error if the listener fails before.
func Serve(ctx context.Context, ln net.Listener, h Health, metrics prometheus.Gatherer, log *zap.Logger) error {
	server := &http.Server{
		Handler:           Handler(h, metrics),
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		ErrorLog:          zap.NewStdLog(log),
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		ended <- errors.Join(server.Shutdown(grace), server.Close())
	})
	log.Info("admin server listens", zap.Stringer("address", ln.Addr()))
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
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeFrontPage(w, h) })
	return mux
}

// reasonsOf returns the reason in an error, or none for nil.
func reasonsOf(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// writeProbe replies 200 without reasons and 503 with them, as text or, if the client accepts it, as JSON.
func writeProbe(w http.ResponseWriter, r *http.Request, reasons []string) {
	code := http.StatusOK
	if len(reasons) > 0 {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, code, map[string]any{"schema": 1, "ok": len(reasons) == 0, "reasons": append([]string{}, reasons...)})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	if len(reasons) == 0 {
		reasons = []string{"ok"}
	}
	fmt.Fprintln(w, strings.Join(reasons, "\n"))
}

// writeFrontPage writes the page for a person with a browser or curl.
func writeFrontPage(w http.ResponseWriter, h Health) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	ready, reasons := h.Ready()
	if ready {
		fmt.Fprintln(w, "Tailrace replicator: ready")
	} else {
		fmt.Fprintf(w, "Tailrace replicator: not ready\n  %s\n", strings.Join(reasons, "\n  "))
	}
	if s, ok := h.Status().(fmt.Stringer); ok {
		fmt.Fprintf(w, "\n%s\n", s)
	}
	fmt.Fprint(w, `
/status    what `+"`replicator status --json`"+` prints
/metrics   Prometheus
/livez     loops are running, the queue is healthy
/startupz  the state is loaded, owning or standing by
/readyz    every table progresses or is idle
`)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "encode status: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, "%s\n", body)
}
