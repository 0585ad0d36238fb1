package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// unknown stands for what is not known.
const unknown = "–"

// part is a piece of a text: a command or prose.
type part struct {
	Text string
	Code bool
}

// parts splits a text at its backquotes.
func parts(text string) (all []part) {
	for i, piece := range strings.Split(text, "`") {
		if piece != "" {
			all = append(all, part{piece, i%2 == 1})
		}
	}
	return all
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}

// clock returns a time of day in UTC, with its date where that is another one than today.
func clock(t time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		return t.Format(time.DateTime) + "Z"
	}
	return t.Format(time.TimeOnly) + "Z"
}

// period returns a number of seconds as people say it.
func period(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case math.IsNaN(seconds) || seconds < 0:
		return unknown
	case d >= time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
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

// whole returns a number that is counted.
func whole(n float64) string {
	if math.IsNaN(n) {
		return unknown
	}
	return humanize.Comma(int64(n))
}
