package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/pipeline/archiving"
)

// archiveText returns how far the archive of a table is, and what is in its way, but for what is
// named of a halted sink.
func archiveText(a *archiving.Status, halts map[string]string) string {
	var parts []string
	if a.Objects {
		text := archivedEvents(a.Waiting) + " wait"
		if a.Waiting == 1 {
			text += "s"
		}
		text += " for an object"
		if a.Oldest != "" {
			text += ", the oldest of the hour " + a.Oldest
		}
		parts = append(parts, text)
		if a.Closed != "" {
			parts = append(parts, "closed until "+a.Closed)
		}
	}
	if a.Subject && a.Unpublished > 0 {
		parts = append(parts, english.Plural(int(a.Unpublished), "entry", "entries")+" of the stream not on the subject yet")
	}
	if a.ObjectsSince != "" {
		parts = append(parts, "objects only since "+a.ObjectsSince)
	}
	if a.SubjectSince != "" {
		parts = append(parts, "the subject only since "+a.SubjectSince)
	}
	parts = append(parts, fmt.Sprintf("its stream holds %s of %s", humanize.IBytes(a.Bytes), humanize.IBytes(a.Limit)))
	switch {
	case a.Stalled && a.OnStall == "letter":
		parts = append(parts, "the stream is FULL: events become dead letters")
	case a.Stalled:
		parts = append(parts, "the stream is FULL: the mark stands, so the log is not trimmed")
	}
	if len(a.Lost) > 0 {
		parts = append(parts, "INCOMPLETE: "+strings.Join(a.Lost, ", "))
	}
	for _, trouble := range []string{a.Trouble, a.ObjectsTrouble, a.SubjectTrouble} {
		if trouble != "" && !slices.Contains(slices.Collect(maps.Values(halts)), trouble) {
			parts = append(parts, trouble)
		}
	}
	return "archive: " + strings.Join(parts, "; ")
}

func archivedEvents(n int64) string {
	if n == 1 {
		return "1 event"
	}
	return humanize.Comma(n) + " events"
}
