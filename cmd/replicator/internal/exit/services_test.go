package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestErrorsOfServicesCarryTheirHint: each ends with 3, keeps its cause, and says what to do.
func TestErrorsOfServicesCarryTheirHint(t *testing.T) {
	inside, outside := config.Default(), config.Default()
	inside.Queue.Dir, outside.Queue.Dir, outside.Queue.URL = "./data", "", "nats://x"
	plain := errors.New("plain")
	for _, c := range []struct {
		err, cause error
		hint       string
	}{
		{Source(plain), plain, "aws sts get-caller-identity"},
		{Bigtable(plain), plain, "bigtable.instance"},
		{Bigtable(status.Error(codes.PermissionDenied, "no")), nil, "roles/bigtable.user"},
		{Bigtable(status.Error(codes.NotFound, "no")), nil, "schema --apply"},
		{Bigtable(errors.New("google: could not find default credentials")), nil, "gcloud auth"},
		{Queue(fmt.Errorf("open: %w", queue.ErrLocked), &inside), queue.ErrLocked, "the process with that pid has ./data"},
		{Queue(queue.ErrNoSpace, &inside), queue.ErrNoSpace, "TailraceDiskLow"},
		{Queue(fs.ErrPermission, &inside), fs.ErrPermission, "run it as the user that owns ./data"},
		{Queue(queue.ErrDenied, &outside), queue.ErrDenied, "queue.creds"},
		{Queue(plain, &inside), plain, "the embedded queue in ./data"},
		{Queue(queue.ErrUnreachable, &outside), queue.ErrUnreachable, "is queue.url right"},
		{Queue(plain, &outside), plain, "cannot keep logs"},
	} {
		var known *Error
		if !errors.As(c.err, &known) || known.Code != CodeEnvironment || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%v: %+v, want a hint with %q", c.err, known, c.hint)
		}
		if c.cause != nil && !errors.Is(c.err, c.cause) {
			t.Errorf("%v has lost its cause", c.err)
		}
	}
}
