package queue

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
	"github.com/tailrace-cdc/replicator/sandbox"
)

// smallVolume mounts a file system of that size. Where that is not permitted only the tests with an
// injected volume run.
func smallVolume(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := sandbox.SmallVolume(t, dir, size); err != nil {
		t.Skip(err)
	}
	return dir
}

// fillVolume fills a volume up to `left` bytes, as another program may, until release is called.
func fillVolume(t *testing.T, dir string, left uint64) (release func()) {
	t.Helper()
	f, err := os.CreateTemp(dir, "filler")
	if err != nil {
		t.Fatal(err)
	}
	for {
		v, err := embedded.VolumeOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		if v.Available <= left {
			break
		}
		if _, err := f.Write(make([]byte, min(v.Available-left, 1<<20))); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// runQueue runs Queue.Run until the test ends.
func runQueue(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !fact(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until ", what)
		}
		if err := failure.Pause(testContext(t), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func volumeOptions(o *Options) {
	o.MaxBytes, o.DiskCheck = 32<<20, 10*time.Millisecond
}

// The volume fills up to its last byte. The store goes on by itself: marks are stored and the log
// is trimmed while the volume is still full, frames when there is room again.
func TestStoreOnAFullVolumeGoesOnByItself(t *testing.T) {
	long(t, "10 s")
	ctx := testContext(t)
	q := embeddedIn(t, smallVolume(t, "64m"), volumeOptions)
	runQueue(t, q)
	w := owned(t, q)
	for range 60 {
		appendPage(t, w, 100, 1500)
	}
	changes := w.State().Changes
	release := fillVolume(t, q.opts.Dir, 0)
	if p := pressure(t, w); !p.Pause || p.Reason == "" {
		t.Fatalf("reading does not pause on a full volume: %+v", p)
	}
	frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 100, 1500))[0]
	if _, err := w.Append(ctx, frame.Body, frame.Data); !errors.Is(err, ErrFull) {
		t.Fatalf("append of a frame: %v, want full", err)
	}
	var err error
	for n := int64(1); err == nil; n++ {
		_, err = w.Append(ctx, &checkpoint.Beat{Date: second + change.Millis(n)}, nil)
	}
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("beat on a full volume: %v, want an unknown outcome", err)
	}
	eventually(t, "the reserve is given up and the store opened again", func() bool {
		return !embedded.HasReserve(q.opts.Dir) && q.Health(ctx) == nil
	})
	recovered := func() {
		t.Helper()
		eventually(t, "what is stored is known again", func() bool { return w.Recover(ctx) == nil })
	}
	recovered()
	if got := w.State().Changes; got != changes {
		t.Fatalf("%d changes are stored, %d were acknowledged", got, changes)
	}
	markAll(t, w)
	for range 2 {
		trim(t, w, math.MaxUint64)
	}
	if p := pressure(t, w); p.Fraction > shortenWindowAt {
		t.Fatalf("%.2f of the limit in use after trimming", p.Fraction)
	}
	release()
	eventually(t, "reading goes on", func() bool { return !pressure(t, w).Pause })
	appendPage(t, w, 100, 1500)
	sameState(t, fold(t, w.Log()), w.State())
	eventually(t, "there is a reserve again", func() bool { return embedded.HasReserve(q.opts.Dir) })
}

func TestStoreOnAFullVolumeCanBeOpened(t *testing.T) {
	ctx := testContext(t)
	dir := smallVolume(t, "64m")
	q := embeddedIn(t, dir, volumeOptions)
	w := owned(t, q)
	if !embedded.HasReserve(dir) {
		t.Fatal("there is no reserve")
	}
	appendPage(t, w, 100, 1500)
	changes := w.State().Changes
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	release := fillVolume(t, dir, 0)
	q = embeddedIn(t, dir, volumeOptions)
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	w = claim(t, l, "b")
	if got := w.State().Changes; got != changes {
		t.Fatalf("%d changes, want %d", got, changes)
	}
	markAll(t, w)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	again := fillVolume(t, dir, 0) // and the reserve is gone now
	o := q.opts
	if _, err := Open(ctx, o, logger(t), nil); !errors.Is(err, ErrNoSpace) {
		t.Fatalf("open without any room: %v", err)
	}
	release()
	again()
	q = embeddedIn(t, dir, volumeOptions)
	if l, err = q.Log(ctx, "Orders"); err != nil {
		t.Fatal(err)
	}
	appendPage(t, claim(t, l, "c"), 100, 1500)
}

// The thresholds, with an injected volume: this test needs no permission to mount one.
func TestReadingPausesWhileTheVolumeHasLittleRoom(t *testing.T) {
	ctx := testContext(t)
	var available atomic.Uint64
	available.Store(100 << 30)
	var silent atomic.Bool
	q := embeddedIn(t, t.TempDir(), func(o *Options) {
		o.MaxBytes, o.Logs = 10<<30, 4
		o.Volume = func(string) (embedded.Volume, error) {
			if silent.Load() {
				return embedded.Volume{}, fs.ErrPermission
			}
			return embedded.Volume{Available: available.Load(), Total: 500 << 30}, nil
		}
	})
	w := owned(t, q)
	refused := func() bool {
		t.Helper()
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 1, 10))[0]
		no := refuses(t, w, frame.Body, frame.Data)
		if p := pressure(t, w); p.Pause != no || (p.Reason != "") != no {
			t.Fatalf("frame refused: %v, yet pause %v for %q", no, p.Pause, p.Reason)
		}
		return no
	}
	const threshold = 8 << 30 // a fifth of four times 10 GiB
	for _, step := range []struct {
		available uint64
		refused   bool
	}{{threshold + 1<<20, false}, {threshold - 1<<20, true}, {threshold + 1<<20, true}, {threshold*3/2 + 1, false},
		{threshold + 1<<20, false}} {
		available.Store(step.available)
		if refused() != step.refused {
			t.Fatalf("with %d bytes left: refused %v, want %v", step.available, !step.refused, step.refused)
		}
		mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
		mustAppend(t, w, &checkpoint.Control{Clear: true}, nil)
	}
	if d, ok := q.Disk(); !ok || d.Left >= d.Untaken || d.Untaken > 40<<30 || d.Untaken < 40<<30-1<<20 {
		t.Fatalf("the logs may take %d bytes, %d are left", d.Untaken, d.Left)
	}
	silent.Store(true)
	if refused() {
		t.Fatal("a volume that cannot be asked pauses reading")
	}
	if _, err := w.l.Info(ctx); err != nil {
		t.Fatal(err)
	}
}

// The store was opened again while the writer was idle: what it knows may differ from what is
// stored.
func TestReopenedStoreMakesTheOutcomeUnknown(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	if err := q.embedded.Reopen(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client is connected again", func() bool { return q.Health(ctx) == nil })
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	appendPage(t, w, 5, 10)
}
