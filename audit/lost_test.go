package audit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/queue"
)

// TestLogThatIsNotTheOneThatWasReadProvesNothing: a log that is trimmed, damaged, or resumed behind
// damage makes the comparison useless, which a full one repairs. One that does not answer is an
// error.
func TestLogThatIsNotTheOneThatWasReadProvesNothing(t *testing.T) {
	for _, err := range []error{queue.ErrTrimmed, queue.ErrDamaged, queue.ErrChain, queue.ErrGap, queue.ErrEmptied} {
		if why := lost("Orders", fmt.Errorf("read: %w", err)); !strings.Contains(why, "the log of Orders does not") {
			t.Errorf("%v: %q", err, why)
		}
	}
	for _, err := range []error{nil, errors.New("no route"), queue.ErrUnreachable} {
		if why := lost("Orders", err); why != "" {
			t.Errorf("%v: %q", err, why)
		}
	}
}
