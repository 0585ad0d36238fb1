package restore

import (
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// Range is a time from From up to To, which is not included. A zero time is no bound.
type Range struct{ From, To time.Time }

// ParseRange reads --from and --to; "" is no bound.
func ParseRange(from, to string, now time.Time) (r Range, err error) {
	if r.From, err = ParseTime("--from", from, now); err != nil {
		return r, err
	}
	if r.To, err = ParseTime("--to", to, now); err != nil {
		return r, err
	}
	if !r.To.IsZero() && !r.From.Before(r.To) {
		return r, failure.Usagef("--to is not included in the time", "--from is not before --to")
	}
	return r, nil
}

// ParseTime reads a time, a day, an hour, or how long ago it was.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, form := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, failure.Usagef(
		"2026-05-04, 2026-05-04T13, 2026-05-04T13:00:00Z, all UTC, or how long ago, as in 36h or 30d",
		"%s: %q is not a time", flag, text)
}

// Hours returns the hours of the range, for manifest.Options: the last one is not included, and 0
// is no bound.
func (r Range) Hours() (from, to layout.Hour) {
	if !r.From.IsZero() {
		from = layout.HourOf(r.From)
	}
	if !r.To.IsZero() {
		to = layout.HourOf(r.To.Add(time.Hour - 1))
	}
	return from, to
}

// hour reports whether some of an hour is in the range.
func (r Range) hour(h layout.Hour) bool {
	from, to := r.Hours()
	return h >= from && (to == 0 || h < to)
}

// contains reports whether a time is in the range.
func (r Range) contains(at time.Time) bool {
	return !at.Before(r.From) && (r.To.IsZero() || at.Before(r.To))
}
