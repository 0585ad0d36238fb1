package render

import "time"

// timeOfDay is the layout of a time without its date.
const timeOfDay = "15:04:05Z"

// All times are printed in UTC, as in JSON and in the logs: one time is then the same text
// wherever it is read.

// Time returns a date and time for people, to the second.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ClockTime returns a time of the day for people, with the date if that is another day.
func ClockTime(t time.Time) string {
	if t = t.UTC(); t.Format(time.DateOnly) != time.Now().UTC().Format(time.DateOnly) {
		return Time(t)
	}
	return t.Format(timeOfDay)
}

// GapTime returns the time of an end of a gap; nil is unknown.
func GapTime(t *time.Time) string {
	if t == nil {
		return "unknown"
	}
	if t.Unix() <= 0 { // the gap of a copy that was cancelled
		return "the beginning"
	}
	return Time(*t)
}
