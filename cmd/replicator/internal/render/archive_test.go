package render

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/archiving"
)

// TestReasonOfAHaltIsSaidOnce: status says it already, above the tables.
func TestReasonOfAHaltIsSaidOnce(t *testing.T) {
	a := &archiving.Status{Objects: true, ObjectsTrouble: "no space left"}
	if text := archiveText(a, nil); !strings.Contains(text, "no space left") {
		t.Errorf("trouble without a halt: %s", text)
	}
	halts := map[string]string{archiving.SinkObjects: "no space left"}
	if text := archiveText(a, halts); strings.Contains(text, "no space left") {
		t.Errorf("trouble that is a halt: %s", text)
	}
}
