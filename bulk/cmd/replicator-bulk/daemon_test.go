package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/pipeline"
)

// until waits while the sandbox's time goes on and exports are written.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	w.Until(what, func() bool {
		w.DynamoDB.FinishExports()
		w.Clock.Advance(100 * time.Millisecond)
		return ok()
	})
}

// delegate runs a daemon, which opens the order of its copy, a job that waits for the order, and a
// writer. stop ends the writer. Behind a closed order the daemon waits as long as closing says.
func (w *world) delegate(items, files int, closing time.Duration) (job *program, stop func()) {
	w.t.Helper()
	w.Options = func(o *pipeline.Options) { o.Periods.Order, o.Periods.Closing = 50*time.Millisecond, closing }
	w.t.Setenv("AWS_ENDPOINT_URL_S3", w.S3.URL())
	w.DynamoDB.SetExports(0, files)
	w.daemon = w.Run()
	job = w.launch()
	w.until("the order is open", func() bool {
		seen, err := w.sink.LoadOrder(w.t.Context(), "shop", tableName)
		if err == nil {
			w.order = seen.Order
		}
		return w.order.Open()
	})
	writing, end := context.WithCancel(w.t.Context())
	var writer errgroup.Group
	writer.Go(func() error { w.write(writing, items, *copySeed); return nil })
	return job, func() {
		end()
		_ = writer.Wait()
	}
}

// TestDaemonGivesTheOrder is the way of a user: the daemon asks for an export and gives the order,
// a job that waited for it is killed, the next one ends with 0, and the daemon completes the copy.
// Every cell must be equal in the end, beside writers.
func TestDaemonGivesTheOrder(t *testing.T) {
	const items, files = 1200, 16
	w := fill(t, items, "{from: export, bucket: backups, by: workers}", func(i int) bool { return i%500 == 499 })
	first, stop := w.delegate(items, files, time.Second)
	least := 1 + rand.New(rand.NewPCG(*copySeed, 9)).IntN(files/2)
	w.until("the first job has stored marks", func() bool { return len(w.marks()) >= least })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.over
	second := w.launch()
	code, text := w.wait(second)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, text)
	}
	stop()
	w.until("the copy is complete", func() bool { return w.daemon.Table(tableName).Copy == nil })
	seen, err := w.sink.LoadOrder(t.Context(), "shop", tableName)
	if err != nil || seen.Order.Open() || seen.Order.Reason != delegation.CloseDone {
		t.Errorf("%+v, %v", seen, err)
	}
	if code, text := w.wait(w.launch()); code != 0 {
		t.Errorf("a job after the copy ends with %d:\n%s", code, text)
	}
	w.daemon.Settle()
	w.equal()
}

// TestCopyIsTakenBack half-way: a cutover is refused while workers may write, their job ends with
// 3, the daemon copies the rest, and then the cutover is certified.
func TestCopyIsTakenBack(t *testing.T) {
	const items, files = 1200, 16
	w := fill(t, items, "{from: export, bucket: backups, by: workers}", func(int) bool { return false })
	job, stop := w.delegate(items, files, 5*time.Second)
	w.until("the job has stored marks", func() bool { return len(w.marks()) >= 1 })
	var refused *cutover.Refused
	if cert, err := w.cutOver(); !errors.As(err, &refused) {
		t.Errorf("a cutover while workers may write: %+v, %v", cert, err)
	}
	w.Control(tableName, "take the copy back", checkpoint.Control{
		Copy: &checkpoint.CopyOrder{ID: w.order.Copy, Do: checkpoint.CopyTakeback},
	})
	if code, text := w.wait(job); code != 3 && code != 0 { // it may have been faster
		t.Errorf("the job ends with %d:\n%s", code, text)
	}
	w.until("the copy is complete", func() bool { return w.daemon.Table(tableName).Copy == nil })
	stop()
	w.daemon.Settle()
	w.equal()
	if cert, err := w.cutOver(); err != nil || cert.Verify.Items == 0 {
		t.Errorf("the cutover after it: %+v, %v", cert, err)
	}
}
