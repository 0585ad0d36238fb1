package balance

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/presence"
)

// asked decides about a request of another member.
func (s *Balancer) asked(r presence.Request) (refused string) {
	now := time.Now()
	members, _ := s.members(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := members[slices.IndexFunc(members, func(m Member) bool { return m.Name == s.o.Me })]
	i := slices.IndexFunc(own.Logs, func(l Log) bool { return l.Table == r.Table && l.Epoch == r.Epoch })
	_, given := s.given[r.Table]
	switch {
	case i < 0 || given:
		return "it does not own the log any more"
	case s.leaving:
		return "it ends, and hands its logs over"
	case r.Why == presence.WhySick:
		m := presence.Message{Services: s.o.Answer()}
		if !failing(&m, sickAfter) {
			return "every service answers it"
		}
	default:
		if refused := refusedShare(members, own, own.Logs[i], now.Sub(s.moved), s.moved.IsZero()); refused != "" {
			return refused
		}
	}
	s.given[r.Table], s.moved = now, now
	s.o.Logger.Info("hand a log over to another replica", zap.String("table", r.Table), zap.String("to", r.From),
		zap.String("why", r.Why))
	s.o.HandOver(r.Table, r.From)
	return ""
}

// refusedShare returns why a member keeps a log although another one has less work; "": it does not.
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
