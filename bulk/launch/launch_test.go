package launch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/delegation"
)

// TestClosedOrders: one that is done is no failure, and each says why nothing is copied.
func TestClosedOrders(t *testing.T) {
	for reason, want := range map[delegation.CloseReason]string{
		delegation.CloseDone: "every file is copied", delegation.CloseTakeback: "takeback",
		delegation.CloseCancel: "cancelled",
		delegation.ClosePause:  "paused", delegation.CloseUnfit: "mapping", "later": "later",
	} {
		var closed *ClosedError
		err := closedBy(&delegation.Order{Closed: 1, Reason: reason})
		done := reason == delegation.CloseDone
		if !errors.As(err, &closed) || closed.Done != done || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestTallyCountsTheFilesOfTheOrder: files that were durable before need no mark.
func TestTallyCountsTheFilesOfTheOrder(t *testing.T) {
	o := &delegation.Order{
		Export: delegation.Export{Files: 2500, Items: 5000},
		Copied: []delegation.Range{{First: 0, Last: 9}, {First: 1000, Last: 1999}},
	}
	c := newTally(o)
	if c.wanted != 1490 || len(c.rows) != 3 || c.wantedIn(0) != 990 || c.wantedIn(1) != 0 || c.wantedIn(2) != 500 {
		t.Errorf("%d files, %d rows with %d, %d, %d", c.wanted, len(c.rows), c.wantedIn(0), c.wantedIn(1), c.wantedIn(2))
	}
	if c.complete() {
		t.Error("complete without a mark")
	}
	c.add(sum{files: 1490, items: 3000})
	if !c.complete() || !strings.HasPrefix(c.summary(), "1490 of 1490 files, 3000 items") {
		t.Error(c.summary())
	}
	if got := speed(c, 1000, 10*time.Second); got != "100 items/s · about 20s left" {
		t.Error(got)
	}
	if got := speed(c, 0, time.Hour); !strings.Contains(got, "no file was finished") {
		t.Error(got)
	}
}
