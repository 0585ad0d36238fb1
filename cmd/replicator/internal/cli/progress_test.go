package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
)

// TestWaitingCommandSaysHowFarItIs with a line every few seconds.
func TestWaitingCommandSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		report := reportProgress(&out, "Orders")
		for _, p := range []*control.RequestProgress{
			{Asked: 7, Why: "it is stuck"}, {Asked: 8, Why: "it is stuck"},
			{Done: 4, Asked: 8, All: true}, {Done: 5, Asked: 8, All: true}, nil,
		} {
			if err := failure.Pause(t.Context(), linePeriod/2+time.Millisecond); err != nil {
				t.Fatal(err)
			}
			report(p)
		}
		const want = "Orders: 0 of 8 items done, more are being asked for; it is stuck\n" +
			"Orders: 5 of 8 items done\n"
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
