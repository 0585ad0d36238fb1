package archiving

import (
	"testing"
	"time"
)

// TestBacklogOfDaysIsCopiedOnce: what waited in the table's log for days is copied in a moment. A
// mark behind it need not have been stored when the owner ends, so that all of it comes again.
func TestBacklogOfDaysIsCopiedOnce(t *testing.T) {
	for name, roll := range map[string]time.Duration{"no object yet": time.Hour, "objects": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.edit = func(o *Options) { o.Roll = roll; o.CutAt = 1 << 20 }
			r := w.start()
			for _, e := range w.deleted(0, 6) {
				e.Shard = "closed long ago"
			}
			w.deleted(100, 6)
			r.store(w.records)
			r.end()
			r = w.start()
			r.store(w.records)
			w.proven(r.closed(100))
		})
	}
}
