package archiving

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// TestWriterThatIsOvertakenEndsItsLife: an append that fails leaves the end of the stream unknown, so nothing more is
// appended behind it, and the life ends.
func TestWriterThatIsOvertakenEndsItsLife(t *testing.T) {
	w := newWorld(t)
	l := w.life()
	must(t, w.writer().append(t.Context(), &ledger.Subject{Seq: 1}))
	for range 2 {
		if err := l.w.append(t.Context(), &ledger.Subject{Seq: 2}); !errors.Is(err, archive.ErrAway) {
			t.Errorf("append: %v", err)
		}
	}
	select {
	case <-l.w.failed:
	default:
		t.Error("the life goes on")
	}
}
