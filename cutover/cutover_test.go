package cutover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

// TestInterruptedBehindTheFenceSaysThatItStays: before the fence nothing has changed; behind it
// Bigtable gets nothing more, and who has pressed ^C must know.
func TestInterruptedBehindTheFenceSaysThatItStays(t *testing.T) {
	interrupt := fmt.Errorf("read log: %w", context.Canceled)
	err := (&Cutover{}).interrupted(interrupt)
	if class, hint := failure.Of(err); class != failure.None || !strings.Contains(hint, "raised no fence") {
		t.Errorf("before the fence: %v, %s, %q", err, class, hint)
	}
	err = (&Cutover{id: "f1"}).interrupted(interrupt)
	if class, hint := failure.Of(err); class != failure.None || !strings.Contains(hint, "cutover f1 stays") {
		t.Errorf("behind the fence: %v, %s, %q", err, class, hint)
	}
	other := errors.New("other")
	if err := (&Cutover{id: "f1"}).interrupted(other); !errors.Is(err, other) || failure.Known(err) {
		t.Errorf("another error: %v", err)
	}
	if err := (&Cutover{id: "f1"}).interrupted(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

// TestCertificateNamesOnlyTheQuietTimeThatWasWaitedFor: the process that goes on with another one's
// fence does not know how long that one waited.
func TestCertificateNamesOnlyTheQuietTimeThatWasWaitedFor(t *testing.T) {
	c := &Cutover{Options: Options{Quiet: time.Minute}, quiet: 1000, fenced: 90_000}
	at := func(ms change.Millis) time.Time { return ms.Time().UTC() }
	got := c.times(91_000, 92_000)
	if got.Quiet != "1m0s" || !got.QuietSince.Equal(at(1000)) || !got.Fenced.Equal(at(90_000)) ||
		!got.Drained.Equal(at(91_000)) || !got.Certified.Equal(at(92_000)) {
		t.Errorf("its own fence: %+v", got)
	}
	c.quiet = 0
	if got := c.times(91_000, 92_000); got.Quiet != "" || !got.QuietSince.IsZero() {
		t.Errorf("the fence of another process: %+v", got)
	}
}
