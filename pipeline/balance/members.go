package balance

import (
	"time"

	"github.com/tailrace-cdc/replicator/queue/presence"
)

// members returns the members of the group, this one among them, and for how long it has listened.
func (b *Balancer) members(now time.Time) (all []Member, listening time.Duration) {
	others, listening := b.group.Members(now)
	for i := range others {
		all = append(all, memberOf(&others[i].Message))
	}
	own := b.say()
	own.Member = b.o.Me
	return append(all, memberOf(&own)), listening
}

// memberOf returns the member that a message describes.
func memberOf(m *presence.Message) Member {
	out := Member{Name: m.Member, Unfit: m.Leaving || failing(m, unfitAfter), Wanted: map[string]bool{}}
	for _, table := range m.Wanted {
		out.Wanted[table] = true
	}
	for _, l := range m.Logs {
		out.Logs = append(out.Logs, Log{Table: l.Table, Epoch: l.Epoch, Rate: l.Rate, Moved: ageOr(l.Moved)})
	}
	out.Moved = ageOr(m.Moved)
	return out
}

// ageOr returns an age of a message; negative for an unknown one.
func ageOr(ms int64) time.Duration {
	if d, known := presence.Age(ms); known {
		return d
	}
	return -1
}

// failing reports whether a member has had no answer of a service for d, while it called.
func failing(m *presence.Message, d time.Duration) bool {
	for _, s := range m.Services {
		if s.Failing >= d.Milliseconds() {
			return true
		}
	}
	return false
}
