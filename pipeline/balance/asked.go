package balance

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/presence"
)

// asked decides about a request of another member.
func (b *Balancer) asked(r presence.Request) (refused string) {
	now := time.Now()
	members, _ := b.members(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	own := members[slices.IndexFunc(members, func(m Member) bool { return m.Name == b.o.Me })]
	i := slices.IndexFunc(own.Logs, func(l Log) bool { return l.Table == r.Table && l.Epoch == r.Epoch })
	_, given := b.given[r.Table]
	switch {
	case i < 0 || given:
		return "it does not own the log any more"
	case b.leaving:
		return "it ends, and hands its logs over"
	case r.Why == presence.WhySick:
		m := presence.Message{Services: b.o.Answer()}
		if !failing(&m, sickAfter) {
			return "every service answers it"
		}
	default:
		if refused := refusedShare(members, own, own.Logs[i], now.Sub(b.moved), b.moved.IsZero()); refused != "" {
			return refused
		}
	}
	b.given[r.Table], b.moved = now, now
	b.o.Logger.Info("hand a log over to another replica", zap.String("table", r.Table), zap.String("to", r.From),
		zap.String("why", r.Why))
	b.o.HandOver(r.Table, r.From)
	return ""
}

// refusedShare returns why a member keeps a log although another one has less work; "": it does
// not.
func refusedShare(members []Member, own Member, l Log, lastMove time.Duration, never bool) string {
	mean := 0.0
	fit := fitMembers(members)
	for i := range fit {
		mean += fit[i].Load() / float64(len(fit))
	}
	switch {
	case !never && lastMove < moveInterval:
		return "a log was moved a moment ago"
	case l.Moved >= 0 && l.Moved < minStay:
		return "the log was moved lately"
	case own.Load() <= loadThreshold*mean:
		return "it has no more work than the others"
	}
	return ""
}
