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

// TestArchiveText: what waits, what a full stream does to events, and since when a sink has them.
func TestArchiveText(t *testing.T) {
	for want, a := range map[string]archiving.Status{
		"1 entry of the stream not on the subject yet":   {Subject: true, Unpublished: 1},
		"archive: 1 event waits for an object;":          {Objects: true, Waiting: 1},
		"archive: 2 events wait for an object;":          {Objects: true, Waiting: 2},
		"the stream is FULL: the mark stands":            {Stalled: true, OnStall: "hold"},
		"the stream is FULL: events become dead letters": {Stalled: true, OnStall: "letter"},
		"objects only since 2026-05-04T13:00:00Z":        {Objects: true, ObjectsSince: "2026-05-04T13:00:00Z"},
		"the subject only since 2026-05-04T13:00:00Z":    {Subject: true, SubjectSince: "2026-05-04T13:00:00Z"},
	} {
		if text := archiveText(&a, nil); !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if text := archiveText(&archiving.Status{Subject: true}, nil); strings.Contains(text, "subject") {
		t.Errorf("a subject that is not behind: %s", text)
	}
}
