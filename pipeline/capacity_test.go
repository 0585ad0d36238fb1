package pipeline_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// A stall so long that frames stop at 80 % of the log and beats and listings at 90 %, before there
// was any snapshot. When the sink is back the marks are stored and the log is trimmed: while
// running, at the next start, and with another limit.
func TestLongStallLeavesRoomForTheMarks(t *testing.T) {
	for name, limit := range map[string]int64{"while running": 0, "after a restart": 2 << 20,
		"after a restart with a larger log":  64 << 20,
		"after a restart with a smaller log": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = 2<<20, -1 }
			w.opts = func(o *pipeline.Options) { o.Periods.Beat, o.Periods.Shutdown = 2*time.Millisecond, time.Second }
			r := w.start("Orders")
			r.settle()
			w.front.Faults.Outage(0)
			noise := newNoise(26)
			for range 400 {
				w.put("Orders", "p", noise.word(4), `"big":{"S":"`+noise.word(8<<10)+`"}`)
			}
			r.until("the log is full", func() bool { return used(r) > 0.85 })
			refused := r.metric("tailrace_queue_refused_total")
			r.until("beats are refused", func() bool { return r.metric("tailrace_queue_refused_total") > refused+200 })
			if u := used(r); u < 0.88 || u > 0.901 {
				t.Errorf("beats stopped at %.3f of the limit, want 0.9", u)
			}
			if why := strings.Join(r.table("Orders").Reasons, "; "); !strings.Contains(why, "reading pauses: 9") ||
				strings.Contains(why, "no sign of life") {
				t.Errorf("the table is not ready because %s", why)
			}
			if limit > 0 {
				if err := r.stop(); err != nil {
					t.Fatal(err)
				}
				w.qopts = func(o *queue.Options) { o.MaxBytes, o.ReplayWindow = limit, -1 }
			}
			w.front.Faults.Recover()
			if limit > 0 {
				r = w.start("Orders")
			}
			r.settle()
			r.equal()
			r.until("the log is trimmed", func() bool { return used(r) < 0.7 })
		})
	}
}

// Reading pauses while the volume of the log has little room left, whatever the log's own limit is,
// and goes on by itself.
func TestCrowdedVolumePausesReading(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.createTable("Orders")
	var available atomic.Uint64
	available.Store(90 << 30)
	w.qopts = func(o *queue.Options) {
		o.DiskCheck = 10 * time.Millisecond
		o.Volume = func(string) (embedded.Volume, error) {
			return embedded.Volume{Available: available.Load(), Total: 100 << 30}, nil
		}
	}
	r := w.start("Orders")
	r.settle()
	available.Store(1 << 30)
	r.until("reading pauses", func() bool {
		return strings.Contains(strings.Join(r.table("Orders").Reasons, "; "),
			"the volume of "+w.dir+" has 1.0 GiB left for the logs")
	})
	r.until("the metric says so", func() bool { return r.metric("tailrace_queue_disk_low") == 1 })
	w.changeItems("Orders", 33, 50)
	before := r.folded("Orders").Seq
	r.until("the owner goes on meanwhile", func() bool { return r.folded("Orders").Seq > before+5 })
	if n := r.table("Orders").Changes; n != 0 {
		t.Errorf("%d changes were read into a log without room", n)
	}
	available.Store(90 << 30)
	r.settle()
	r.equal()
	r.until("the metric says so", func() bool { return r.metric("tailrace_queue_disk_low") == 0 })
}

// Another program takes the volume's last byte. Nothing is stored, the store opens again by itself,
// and all that was written meanwhile arrives.
func TestFullVolumeIsOutlived(t *testing.T) {
	long(t, "6 s")
	w := newWorld(t)
	w.createTable("Orders")
	if err := sandbox.SmallVolume(t, w.dir, "64m"); err != nil {
		t.Skip(err)
	}
	w.qopts = func(o *queue.Options) {
		o.MaxBytes, o.LettersMaxBytes, o.ReplayWindow, o.DiskCheck, o.AckTimeout = 32<<20, 1<<20, -1, 50*time.Millisecond,
			time.Second
	}
	r := w.start("Orders")
	r.settle()
	w.changeItems("Orders", 34, 100)
	r.settle()
	filler := filepath.Join(w.dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(piece)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	w.changeItems("Orders", 35, 100)
	r.until("the store is opened again with its reserve", func() bool {
		return w.logged.FilterMessage("store of the queue opened again after its volume was full").Len() > 0
	})
	r.until("reading pauses", func() bool {
		return strings.Contains(strings.Join(r.table("Orders").Reasons, "; "), "the volume of "+w.dir)
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.equal()
	if st := r.table("Orders"); st.State != "running" || st.Gaps+st.DeadLetters > 0 {
		t.Errorf("state %q, %d gaps, %d letters", st.State, st.Gaps, st.DeadLetters)
	}
}
