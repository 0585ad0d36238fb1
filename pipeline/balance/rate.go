package balance

import "time"

// rate is how many changes per second a log gets, over about a minute.
type rate struct {
	at      time.Time
	changes uint64
	value   float64
}

// perSecond returns the rate; 0 while none is known.
func (r *rate) perSecond() float64 {
	if r == nil {
		return 0
	}
	return r.value
}

// note counts changes: what happened a minute ago weighs a third.
func (r *rate) note(now time.Time, changes uint64) {
	passed := now.Sub(r.at).Seconds()
	if passed <= 0 {
		return
	}
	current := float64(changes-min(changes, r.changes)) / passed
	r.value += (current - r.value) * min(1, passed/60)
	r.at, r.changes = now, changes
}
