package source

import (
	"errors"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestExplainedErrorHasAHint where the error has none of its own, too.
func TestExplainedErrorHasAHint(t *testing.T) {
	plain := errors.New("plain")
	class, hint := failure.Of(Explain(plain))
	if class != failure.Unready || !strings.Contains(hint, "aws sts get-caller-identity") {
		t.Errorf("%s, %q", class, hint)
	}
	own := &Error{Class: failure.Denied, Hint: "grant it", Err: plain}
	if _, hint := failure.Of(Explain(own)); hint != "grant it" || !errors.Is(Explain(own), plain) {
		t.Errorf("%q", hint)
	}
}
