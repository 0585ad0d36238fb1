package apply

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/change"
)

// TestLatencyIsThatOfTheStream: from creation to durable, by the service's clock, for each change
// that became durable; a resync of an old item is no change that was late.
func TestLatencyIsThatOfTheStream(t *testing.T) {
	x := newTable(t, nil)
	l := x.begin()
	const prompt, late = 20, 5
	for i := range prompt {
		l.Put("Orders", fmt.Sprint("item", i), "x", "")
	}
	l.settle()
	observed := l.sink.o.Stats.Latency.Counts()
	if n := observed.Total(); n != prompt {
		t.Errorf("%d latencies of %d changes", n, prompt)
	}
	x.Bigtable.Faults.RefuseRow([]byte("item"), codes.Unavailable, -1)
	for i := range late {
		l.Put("Orders", fmt.Sprint("item", i), "x", `"v":{"N":"2"}`)
	}
	l.Until("the changes wait", func() bool {
		n, known := l.sink.Pending(prompt + late) // as many as the log holds
		return known && n == late
	})
	began := l.now()
	l.Clock.Advance(5 * time.Minute)
	l.Until("the service's clock has moved", func() bool { return l.now() > began+299_000 })
	x.Bigtable.Faults.Calm()
	l.settle()
	all := l.sink.o.Stats.Latency.Counts()
	delayed := all.Since(&observed)
	if n, p50 := delayed.Total(), delayed.Quantile(0.01); n != late || p50 < 180 {
		t.Errorf("%d latencies of %d changes that waited for five minutes, the least %v s", n, late, p50)
	}
	l.resync(l.readLater("item0", "x"))
	if got := l.sink.o.Stats.Latency.Counts(); got != all {
		t.Errorf("a resync was counted: %d latencies instead of %d", got.Total(), all.Total())
	}
	if n, known := l.sink.Pending(prompt + late); n != 0 || !known {
		t.Errorf("%d changes are pending in the end, known %v", n, known)
	}
}

// TestLatencyOfWhatIsOlderThanTheLog is counted from the begin of the log: a stream that is read
// from its trim horizon holds changes of a day.
func TestLatencyOfWhatIsOlderThanTheLog(t *testing.T) {
	s := NewMetrics(nil).Table("Orders", zap.NewNop())
	const began = change.Millis(1_000_000_000)
	s.From(began)
	of := func(created change.Millis) *job { return &job{c: change.Change{Created: created}} }
	s.noteDurable([]*job{of(began - 3_600_000), of(began + 1000)}, began+2000)
	counts := s.Latency.Counts()
	if n, most := counts.Total(), counts.Quantile(1); n != 2 || most > 3 {
		t.Errorf("%d latencies, the highest %v s, want 2 of at most two seconds and what the histogram rounds", n, most)
	}
}
