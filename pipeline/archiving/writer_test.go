package archiving

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// TestWriterThatIsOvertakenEndsItsLife: an append that fails leaves the end of the stream unknown,
// so nothing more is appended behind it, and the life ends.
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

// TestFoldBesideAnOwnerThatTrims: what a newer snapshot replaces while another process reads is not
// missing.
func TestFoldBesideAnOwnerThatTrims(t *testing.T) {
	w := newWorld(t)
	owner := w.writer()
	ended := make(chan error, 1)
	go func() {
		ended <- func() error {
			for range 300 {
				owner.mu.Lock()
				err := owner.snapshot(t.Context())
				first := owner.state.SnapshotFirst
				owner.mu.Unlock()
				if err == nil {
					err = owner.journal.Trim(t.Context(), first)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	j := w.journal()
	for {
		if _, _, _, err := fold(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
