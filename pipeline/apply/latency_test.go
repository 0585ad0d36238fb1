package apply

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
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
