package cutover

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// A change that is read between the last look behind the fence and the note of the certificate
// forbids the note, and with it the certificate. A fence that was taken away does so, too.
func TestCertificateIsNotNotedOverAChangeBehindTheFence(t *testing.T) {
	w := newWorld(t)
	w.fence("f1", false)
	w.cutover.id = "f1"
	w.expire("a", begin+1000)
	if err := w.cutover.Certify(t.Context()); err != nil {
		t.Fatalf("nothing but a deletion by TTL: %v", err)
	}
	state := func() *checkpoint.Fence {
		logs, err := w.folded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return logs[0].State.Fence
	}
	if f := state(); f.Certified == 0 || f.Behind != 0 {
		t.Errorf("noted: %+v", f)
	}
	w.fence("f1", true)
	w.fence("f2", false)
	refused := (*Refused)(nil)
	if err := w.cutover.Certify(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "taken away") {
		t.Errorf("another fence: %v", err)
	}
	w.cutover.id = "f2"
	w.write("a", begin+2000)
	err := w.cutover.Certify(t.Context())
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "1 that Bigtable") {
		t.Errorf("with a change behind the fence: %v", err)
	}
	if f := state(); f.Certified != 0 || f.Behind != 1 {
		t.Errorf("refused: %+v", f)
	}
}
