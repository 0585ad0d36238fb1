package admin

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// eventRow is a line of the timeline.
type eventRow struct{ At, Table, Text, Tone string }

func eventRows(events []status.Happening) (rows []eventRow) {
	for i := range events {
		e := &events[i]
		r := eventRow{At: clockText(e.Last), Table: e.Table, Text: e.Text, Tone: e.Tone}
		if e.Times > 1 {
			r.Text += fmt.Sprintf(" (%d times since %s)", e.Times, clockText(e.At))
		}
		rows = append(rows, r)
	}
	return rows
}

// reason is why something is not ready: its begin, and what is shown on demand.
type reason struct{ Text, Rest []textPart }

// longestReason is how much of a reason is shown at once, in bytes: errors of SDKs are longer.
const longestReason = 280

func foldedReasons(texts []string) (all []reason) {
	for _, text := range texts {
		begin, rest := cutReason(text)
		all = append(all, reason{textParts(begin), textParts(rest)})
	}
	return all
}

// cutReason cuts a long reason between two words, and in no command.
func cutReason(text string) (begin, rest string) {
	if len(text) <= longestReason {
		return text, ""
	}
	for at := longestReason; at < len(text); at++ {
		if text[at] == ' ' && strings.Count(text[:at], "`")%2 == 0 {
			return text[:at], text[at+1:]
		}
	}
	return text, ""
}
