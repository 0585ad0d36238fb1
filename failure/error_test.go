package failure

import (
	"errors"
	"fmt"
	"testing"
)

// TestOutermostClassCounts: whoever adds a class or a hint knows more than what it was called with.
func TestOutermostClassCounts(t *testing.T) {
	cause := errors.New("no route to host")
	inner := With(Transient, "is the server up?", cause)
	for _, c := range []struct {
		err      error
		class    Class
		hint     string
		reported bool
		known    bool
	}{
		{nil, None, "", false, false},
		{cause, None, "", false, false},
		{With(None, "read the log", cause), None, "read the log", false, true},
		{inner, Transient, "is the server up?", false, true},
		{fmt.Errorf("read stream: %w", inner), Transient, "is the server up?", false, true},
		{With(Unready, "start it", fmt.Errorf("read stream: %w", inner)), Unready, "start it", false, true},
		{Usagef("see --help", "%d tables", 2), Usage, "see --help", false, true},
		{Reported(Different), Different, "", true, true},
	} {
		class, hint := Of(c.err)
		if class != c.class || hint != c.hint || IsReported(c.err) != c.reported || Known(c.err) != c.known {
			t.Errorf("%v: %s, %q, reported %t", c.err, class, hint, IsReported(c.err))
		}
	}
	if !errors.Is(With(Unready, "", inner), cause) {
		t.Error("the cause is lost")
	}
}
