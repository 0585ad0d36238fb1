package staterow

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Start is where the first life of a table begins to read; used only while the log holds no start.
// The zero Start is five minutes before the first start with a backfill, else the trim horizon.
type Start struct {
	Horizon bool // the trim horizon, asked for by name
	Latest  bool
	At      time.Time
}

// Mode returns how the start is spelled in the log.
func (s Start) Mode() string {
	switch {
	case s.Latest:
		return "latest"
	case s.At.IsZero():
		return "trim_horizon"
	}
	return s.At.UTC().Format(time.RFC3339Nano)
}

// IsZero reports whether the configuration leaves the start to the pipeline.
func (s Start) IsZero() bool { return !s.Horizon && !s.Latest && s.At.IsZero() }

// Began reports whether a log that spells its start as mode can have begun with this one.
func (s Start) Began(mode string) bool {
	return mode == s.Mode() || s.IsZero() && mode == protocol.ModeBackfill
}

// Time returns the start as a time on the service's clock. LATEST itself is never sent: it has no
// durable position, and a crash during the first start would lose or flood.
func (s Start) Time(date change.Millis) (change.Millis, error) {
	switch {
	case s.Latest:
		return date, nil
	case s.At.IsZero():
		return 0, nil
	case change.MillisOf(s.At) > date:
		return 0, &outcome.RefusedError{
			What: "source.start lies in the future: " + s.Mode(),
			Hint: "use latest, trim_horizon or a time in the last 24 hours",
		}
	}
	return change.MillisOf(s.At), nil
}
