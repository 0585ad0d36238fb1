// Package admin answers over HTTP what people, Prometheus and Kubernetes ask a running replicator: metrics, health, and
// a status page. It has no authentication and changes nothing; by default it listens on loopback.
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

// Health is what a replicator knows about itself. All methods are cheap and may be called at any time, from any goroutine.
type Health interface {
	// Live says why the process should be restarted, or nil: its loops turn and its queue answers.
	Live() error
	// Started says what is still missing before a rollout may go on, or nil: the state is loaded, and each table is
	// owned here or somebody else's.
	Started() error
	// Ready says whether all tables progress or are idle, and each reason why not.
	Ready() (bool, []string)
	// Status is what `replicator status --json` prints: something that encoding/json can write.
	Status() any
}

// shutdownGrace is what requests in flight get when the server ends.
const shutdownGrace = 2 * time.Second

// Serve answers on ln until ctx ends, then closes it. It returns nil after ctx ended, else why it could not go on.
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

// Handler routes the paths of the admin server.
func Handler(h Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) { verdict(w, r, causes(h.Live())) })
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, r *http.Request) { verdict(w, r, causes(h.Started())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		// Rule 10: ready means progress or idleness of every live shard, never "the process is up".
		ready, reasons := h.Ready()
		if !ready && len(reasons) == 0 {
			reasons = []string{"not ready"}
		}
		if ready {
			reasons = nil
		}
		verdict(w, r, reasons)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.Status()) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { front(w, h) })
	return mux
}

func causes(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// verdict is 200 without reasons and 503 with them, in words or, if asked for, as JSON.
func verdict(w http.ResponseWriter, r *http.Request, reasons []string) {
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

// front is the page for a person with a browser or curl.
func front(w http.ResponseWriter, h Health) {
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
	fmt.Fprint(w, "\n/status    what `replicator status --json` prints\n/metrics   Prometheus\n/livez     loops alive, queue healthy\n/startupz  state loaded, owning or standing by\n/readyz    every table progresses or is idle\n")
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
