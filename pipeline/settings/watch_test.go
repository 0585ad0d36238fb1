package settings

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/protocol"
)

// TestRuleThatMayNotBeReadAnyMoreStaysKnown, Rule 13: a permission that is taken away does not make
// an unsafe setting a safe one, however often the question is refused. Only a look that reads the
// setting does.
func TestRuleThatMayNotBeReadAnyMoreStaysKnown(t *testing.T) {
	unsafe := protocol.Premises{{Code: "gc", What: "orders", Unsafe: true}}
	denied := protocol.Premises{{Code: UnreadFamilies, What: "Bigtable", Unread: "denied"}}
	w := New(Options{Logger: zap.NewNop()})
	for i, step := range []struct {
		found    protocol.Premises
		err      error
		unsafe   bool
		answered bool
	}{
		{denied, nil, false, true},
		{unsafe, nil, true, true},
		{denied, nil, true, true},
		{denied, nil, true, true},
		{nil, errors.New("unavailable"), true, false},
		{nil, nil, false, true},
		{denied, nil, false, true},
	} {
		found, answered := w.look(t.Context(), "orders", time.Now(), func(context.Context) (protocol.Premises, error) {
			return step.found, step.err
		})
		if (found.Unsafe() != nil) != step.unsafe || answered != step.answered {
			t.Errorf("look %d: %+v, answered %t", i, found, answered)
		}
	}
}
