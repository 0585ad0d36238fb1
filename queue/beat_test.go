package queue

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// A beat is due some time after the last frame or beat. Marks do not count (Attack 37 of
// test/attacklist_test.go), because otherwise the lag of an idle table would never be known.
func TestMarksDoNotDelayTheBeat(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 3, 10)
	reported := w.lastReport
	markAll(t, w)
	if w.lastReport != reported {
		t.Fatal("a mark counted as a report about the source")
	}
	if in := w.BeatDueIn(); in > w.ttl/3 {
		t.Fatalf("beat due in %v, TTL is %v", in, w.ttl)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	if !w.lastReport.After(reported) {
		t.Fatal("a beat did not count as a report about the source")
	}
}

// Attack 14 of test/attacklist_test.go: after most of TTL without a successful append, ClaimValid
// returns false.
func TestClaimIsInvalidAfterMostOfTTLWithoutAnAppend(t *testing.T) {
	w := owned(t, connectTo(t, startExternal(t).addr(), nil))
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	if w.ttl = time.Hour; !w.ClaimValid() {
		t.Fatal("not held right after an append")
	}
	if w.sentBefore(50 * time.Minute); w.ClaimValid() {
		t.Fatal("held 50 minutes after the last success, TTL is an hour")
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	w.mu.Lock() // an append is on its way
	if !w.ClaimValid() {
		t.Error("not held after the next success")
	}
	w.mu.Unlock()
	asleep := time.Now().Add(-50 * time.Minute).Round(0) // a monotonic clock that stood still would not show it
	if w.lastSent.Store(&asleep); w.ClaimValid() {
		t.Error("held by a machine that was suspended for 50 minutes")
	}
	if e := owned(t, embeddedQueue(t)); !e.ClaimValid() {
		t.Error("another process can claim a log of the embedded server")
	} else if e.sentBefore(time.Hour); !e.ClaimValid() {
		t.Error("another process can claim a log of the embedded server after an hour")
	}
}

// sentBefore makes the last acknowledged append older.
func (w *Writer) sentBefore(d time.Duration) {
	sent := w.lastSent.Load().Add(-d)
	w.lastSent.Store(&sent)
}

func TestMetricsCountAppendsReadsAndForeignMessages(t *testing.T) {
	reg := prometheus.NewRegistry()
	q, err := Open(testContext(t), Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, logger(t), reg)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	w := owned(t, q)
	appendPage(t, w, 3, 10)
	if _, err := q.conn.JS.Publish(testContext(t), w.l.subject.Entry, []byte("stray")); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Append(testContext(t), &checkpoint.Beat{}, nil)
	if err := w.Recover(testContext(t)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, &checkpoint.Beat{}, nil)
	readSeqs(t, w.l, w.State().Seq)
	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"tailrace_queue_appends_total": 4, "tailrace_queue_append_seconds": 4, "tailrace_queue_fenced_total": 1,
		"tailrace_queue_foreign_total": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"tailrace_queue_append_bytes_total", "tailrace_queue_read_bytes_total",
		"tailrace_queue_stored_bytes", "tailrace_queue_used_ratio"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}
