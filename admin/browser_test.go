package admin

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// changing is a replicator whose table halts once a page was read, and that ends some looks later.
type changing struct {
	health
	looks atomic.Int64
	end   func()
}

func (c *changing) Status() pipeline.Status {
	h := health{}
	n := c.looks.Add(1)
	if n > 3 {
		h.reasons = []string{"Orders: the stream is disabled"}
	}
	if n > 12 {
		c.end()
	}
	return h.Status()
}

// TestOpenPageFollowsAndSaysWhenItIsAlone: in a real browser, by the page's own script.
func TestOpenPageFollowsAndSaysWhenItIsAlone(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	switch {
	case err != nil && os.Getenv("TAILRACE_BROWSER") != "":
		t.Fatal("no Chromium is installed, and TAILRACE_BROWSER asks for it: apt-get install chromium")
	case err != nil:
		t.Skip("no Chromium is installed: apt-get install chromium; make check needs it")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(t.Context())
	defer end()
	h, ended := &changing{end: end}, make(chan error, 1)
	o := Options{Health: h, Metrics: prometheus.NewRegistry(), Log: zaptest.NewLogger(t)}
	go func() { ended <- Serve(serving, ln, o) }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// The browser's own clock runs ahead while nothing is to be done, and the page is printed when
	// that is over.
	out, err := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=30000", "--dump-dom",
		"http://"+ln.Addr().String()+"/").Output()
	if err != nil {
		t.Fatal(err)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	page := string(out)
	if !strings.Contains(page, "the stream is disabled") {
		t.Errorf("the page has not followed:\n%s", page)
	}
	if !strings.Contains(page, "No connection to the replicator since") {
		t.Errorf("the page does not say that it is old:\n%s", page)
	}
}
