package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestExplainedErrorHasAHint for the embedded queue, and for a server of its own.
func TestExplainedErrorHasAHint(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		dir  string
		err  error
		hint string
	}{
		{"./data", fmt.Errorf("open: %w", ErrLocked), "the process with that pid has ./data"},
		{"./data", ErrNoSpace, "TailraceDiskLow"},
		{"./data", fs.ErrPermission, "run it as the user that owns ./data"},
		{"./data", plain, "the embedded queue in ./data"},
		{"", ErrDenied, "queue.creds"},
		{"", ErrOldServer, "one after the other"},
		{"", ErrUnreachable, "is queue.url right"},
		{"", plain, "cannot keep logs"},
	} {
		err := Explain(c.dir, c.err)
		class, hint := failure.Of(err)
		if class != failure.Unready || !strings.Contains(hint, c.hint) || !errors.Is(err, c.err) {
			t.Errorf("%v: %s, %q, want a hint with %q", c.err, class, hint, c.hint)
		}
	}
}
