package raw

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Instant is a moment of this process. The monotonic clock stands still while the process is
// suspended; the wall clock goes on, and may be set.
type Instant struct {
	Mono time.Duration
	Wall change.Millis
}

// Dates judges Date headers: which of them are the service's time. It is pure, and not safe for
// concurrent use.
//
// Rule 13: a Date that is far from both estimates, the last good one plus the time since by the
// monotonic and by the wall clock, is dropped. It is believed when such Dates have advanced with
// the monotonic clock for as long as Trust.
type Dates struct {
	Trust time.Duration // 0: every Date is believed at once

	good, doubted, begun *dated
	uncertain            bool
	apart                change.Millis
}

// dated is a Date and the moment at which its reply came.
type dated struct {
	date change.Millis
	at   Instant
}

// dateTolerance is how far a Date may be from an estimate.
const dateTolerance change.Millis = 30_000

// Judgement is what becomes of a Date.
type Judgement uint8

// The judgements.
const (
	DateGood     Judgement = iota // near an estimate
	DateFirst                     // the first one, near the wall clock
	DateApart                     // the first one, far from the wall clock: the time is uncertain
	DateDropped                   // far from both estimates
	DateBelieved                  // far from both, and steady for as long as Trust
)

// Judge judges the Date of a reply that came at a moment and took so long.
func (d *Dates) Judge(date change.Millis, at Instant, took change.Millis) Judgement {
	now := &dated{date, at}
	if d.Trust > 0 {
		d.apart = max(date-at.Wall, at.Wall-took-1000-date, 0)
	}
	if d.good == nil {
		d.good, d.begun = now, now
		if d.uncertain = d.Trust > 0 && !near(date, at.Wall, took); d.uncertain {
			return DateApart
		}
		return DateFirst
	}
	wall := d.good.date + at.Wall - d.good.at.Wall
	if near(date, d.good.after(at), took) || near(date, wall, took) {
		d.good, d.doubted = now, nil
		d.uncertain = d.uncertain && !d.steady(d.begun, now, took)
		return DateGood
	}
	if d.doubted == nil || !near(date, d.doubted.after(at), took) {
		d.doubted = now
	}
	if d.steady(d.doubted, now, took) {
		d.good, d.doubted, d.uncertain = now, nil, false
		return DateBelieved
	}
	return DateDropped
}

// Uncertain reports whether the service's time is uncertain: the first Date was far from the wall
// clock, and none has shown yet that Dates advance as time does.
func (d *Dates) Uncertain() bool { return d.uncertain }

// Apart returns how far the Date of the newest reply is from the wall clock, also one that was
// dropped; 0 where every Date is believed at once.
func (d *Dates) Apart() change.Millis { return d.apart }

// steady reports whether Dates have advanced with the monotonic clock from one to another for as
// long as Trust.
func (d *Dates) steady(from, to *dated, took change.Millis) bool {
	return to.at.Mono-from.at.Mono >= d.Trust && near(to.date, from.after(to.at), took)
}

// after returns the Date that is due at a moment, by the monotonic clock.
func (d *dated) after(at Instant) change.Millis {
	return d.date + change.Millis((at.Mono - d.at.Mono).Milliseconds())
}

// near reports whether the Date of a reply that took so long is near an estimate of the time at
// which it came. Dates are cut to whole seconds.
func near(date, estimate, took change.Millis) bool {
	return date <= estimate+dateTolerance && date >= estimate-took-1000-dateTolerance
}
