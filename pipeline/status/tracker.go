package status

import (
	"sync"
	"time"
)

// Tracker tracks since when a process has observed each trouble, whether or not the verdict names
// it. Its zero value is ready for use, by any number of goroutines.
type Tracker struct {
	mu   sync.Mutex // covers what follows
	seen map[trouble]*sight
	look int
}

// sight is a trouble as it was observed.
type sight struct {
	since, last time.Time
	look        int // the newest at which it was observed
}

// haltGrace is how long a halt may be gone and count as the same: each try of a halted table ends
// its halt for a moment, and the log then holds the last try alone.
const haltGrace = 2 * time.Minute

// Note sets Verdict.Since to the earlier of its own time and the time at which the state was first
// observed.
func (t *Tracker) Note(v *Verdict, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.look++; t.seen == nil {
		t.seen = map[trouble]*sight{}
	}
	for _, x := range append(v.troubles, trouble{v.State, v.Table}) {
		s := t.seen[x]
		if s == nil || s.look < t.look-1 && (x.state != StateHalted || now.Sub(s.last) > haltGrace) {
			s = &sight{since: now.UTC()}
			t.seen[x] = s
		}
		s.last, s.look = now, t.look
	}
	for x, s := range t.seen {
		if s.look < t.look && now.Sub(s.last) > haltGrace {
			delete(t.seen, x)
		}
	}
	since := t.seen[trouble{v.State, v.Table}].since
	v.notAfter(&since)
}

// notAfter sets since when the state lasts, if that is earlier than what is known.
func (v *Verdict) notAfter(since *time.Time) {
	if since != nil && (v.Since == nil || since.Before(*v.Since)) {
		v.Since = since
	}
}

// Adopt takes Since from a daemon's verdict about the same state, if it is earlier.
func (v *Verdict) Adopt(daemon *Verdict) {
	if v.State == daemon.State && v.Table == daemon.Table {
		v.notAfter(daemon.Since)
	}
}
