package bigtable

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestExplainedErrorHasAHint about the role, the schema, the credentials or the instance.
func TestExplainedErrorHasAHint(t *testing.T) {
	for hint, err := range map[string]error{
		"bigtable.instance":    errors.New("plain"),
		"roles/bigtable.user":  status.Error(codes.PermissionDenied, "no"),
		"schema --apply":       status.Error(codes.NotFound, "no"),
		"gcloud auth":          fmt.Errorf("open: %w: google: none", errCredentials),
		"docs/credentials.md;": fmt.Errorf("open: %w: google: none", errCredentials),
	} {
		got := Explain(err)
		if class, has := failure.Of(got); class != failure.Unready || !strings.Contains(has, hint) || !errors.Is(got, err) {
			t.Errorf("%v: %s, %q, want a hint with %q", err, class, has, hint)
		}
	}
}
