package admin

import (
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// unknown stands for what is not known.
const unknown = "–"

// textPart is a piece of a text: a command or prose.
type textPart struct {
	Text string
	Code bool
}

// textParts splits a text at its backquotes.
func textParts(text string) (all []textPart) {
	for i, piece := range strings.Split(text, "`") {
		if piece != "" {
			all = append(all, textPart{piece, i%2 == 1})
		}
	}
	return all
}

// countText returns a number with its noun.
func countText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}

// clockText returns a time of day in UTC, with its date where that is another one than today.
func clockText(t time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		return t.Format(time.DateTime) + "Z"
	}
	return t.Format(time.TimeOnly) + "Z"
}

// periodText returns a number of seconds as people say it.
func periodText(seconds float64) string {
	if math.IsNaN(seconds) || seconds < 0 {
		return unknown
	}
	return status.Period(time.Duration(seconds * float64(time.Second)))
}

// perSecond returns a rate: whole numbers from ten on.
func perSecond(rate float64) string {
	switch {
	case math.IsNaN(rate):
		return unknown
	case rate >= 10:
		return humanize.Comma(int64(rate))
	}
	return humanize.FtoaWithDigits(rate, 1)
}

// wholeText returns a number that is counted.
func wholeText(n float64) string {
	if math.IsNaN(n) {
		return unknown
	}
	return humanize.Comma(int64(n))
}
