package ingest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// A listing that no message takes needs format 2, which stores it in parts: the error names the way there.
func TestListingTooLargeForFormat1NamesTheUpgrade(t *testing.T) {
	tooLarge := fmt.Errorf("append: %w", queue.ErrTooLarge)
	old, newest := checkpoint.NewState(), checkpoint.NewState()
	old.Format, newest.Format = 1, checkpoint.Format
	err := hintUpgrade(old, tooLarge)
	if !strings.Contains(err.Error(), "upgrade --finalize") || !errors.Is(err, queue.ErrTooLarge) ||
		outcome.OfTable(t.Context(), err).Code != "log_format" {
		t.Errorf("format 1: %v, outcome %+v", err, outcome.OfTable(t.Context(), err))
	}
	if err := hintUpgrade(newest, tooLarge); err.Error() != tooLarge.Error() {
		t.Errorf("newest format: %v", err)
	}
	if err := hintUpgrade(old, queue.ErrFull); err.Error() != queue.ErrFull.Error() {
		t.Errorf("full log: %v", err)
	}
}
