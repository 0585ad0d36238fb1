package balance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

const (
	reviewInterval = time.Second // between two looks at the others
	// startupListen is how long a process that starts listens before it claims a log without an
	// owner; startupListenAlone, where no other member has announced itself: each running member does
	// so every two seconds.
	startupListen, startupListenAlone = 5 * time.Second, 2500 * time.Millisecond
	// claimHandicap is for how long a process leaves a free log to the one that should claim it.
	claimHandicap = 3 * time.Second
	// never is a time that does not pass while a process starts.
	never = time.Hour
	// sickAfter is after how long without an answer of a service, while calls fail, a member's logs go to others.
	sickAfter = 60 * time.Second
	// unfitAfter is after how long such a member gets no more logs.
	unfitAfter = 10 * time.Second
	// avoidFor is for how long a member does not ask for a log with which it failed.
	avoidFor = 10 * time.Minute
	// afterRefusal is how long a member asks for nothing after a refusal: the two see the group differently.
	afterRefusal = 10 * time.Second
	// probation is how long a log that was moved here has to be claimed, and to be kept.
	probation = time.Minute
)

// Table is how a table of this process is.
type Table struct {
	Name    string
	Waiting bool // for its log, with everything else ready
	Owned   bool
	Epoch   uint64
	Seq     uint64
	Sent    time.Time // when the entry at Seq was sent
	Changes uint64    // in the log so far
}

// Options of a Balancer.
type Options struct {
	Me     string
	Build  string
	Reads  int             // highest format of logs that this build reads
	Tables func() []Table  // of this process
	Answer func() Services // how the services answer
	// Prove proves that this process can read a table and reaches its target. It is called before the log is asked for.
	Prove func(ctx context.Context, table string) error
	// HandOver begins to hand a log over.
	HandOver func(table, to string)
	Logger   *zap.Logger
}

// Services says how each service answers.
type Services map[string]presence.Service

// Balancer divides the tables with the other processes. Its methods may be called by any goroutine;
// those of a nil Balancer do what a process without others does.
type Balancer struct {
	o     Options
	group *presence.Group
	// listen and alone are for how long it listens before it claims what nobody has; tests begin later.
	startupListen, startupListenAlone time.Duration
	tried                             time.Time // when pull last called the services, because one failed

	mu      sync.Mutex // covers what follows
	leaving bool
	rates   map[string]*rate
	pulled  map[string]pull      // logs that this process asked for and was promised
	failed  map[string]time.Time // when it failed with them
	given   map[string]time.Time // logs that it hands over
	moved   time.Time            // when it last gave or took one
	askedAt time.Time            // when a member last did not agree to hand a log over
	first   map[string]string    // which member should claim each log that was free at firstAt
	firstAt time.Time
}

// pull is a log that another member hands over.
type pull struct {
	from    string
	at      time.Time
	claimed bool // it was owned here since
}

// New returns a balancer; join makes the group from its options, nil where there are no other processes.
func New(o Options, join func(presence.Options) *presence.Group) *Balancer {
	s := &Balancer{
		o: o, startupListen: startupListen, startupListenAlone: startupListenAlone, rates: map[string]*rate{},
		pulled: map[string]pull{}, failed: map[string]time.Time{}, given: map[string]time.Time{},
	}
	if s.group = join(presence.Options{Me: o.Me, Say: s.say, Asked: s.asked}); s.group == nil {
		return nil
	}
	return s
}

// Group returns what is heard of the others; nil for a nil Balancer.
func (s *Balancer) Group() *presence.Group {
	if s == nil {
		return nil
	}
	return s.group
}

// Run speaks, listens and asks for logs until ctx ends.
func (s *Balancer) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.group.Run(ctx); err != nil { // permissions: logs are claimed all the same, later
			s.o.Logger.Warn("replicas cannot hear each other: a log is taken over when it was silent for the claim's time, "+
				"and the work is not shared", zap.Error(err))
		}
		return nil
	})
	g.Go(func() error {
		for failure.Pause(ctx, reviewInterval) == nil {
			s.review(time.Now())
			s.pull(ctx)
		}
		return nil
	})
	return g.Wait()
}

// Leave says that this process ends, and returns which member gets which of its logs; empty: nobody.
func (s *Balancer) Leave() map[string]string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.group.Announce()
	members, _ := s.members(time.Now())
	return Successors(s.o.Me, members)
}

// ClaimDelay is for how long this process leaves a free log to others: at the start until it has
// heard who else there is, later while another one has less work. It is asked again and again.
func (s *Balancer) ClaimDelay(table string) time.Duration {
	if s == nil {
		return 0
	}
	members, listening := s.members(time.Now())
	if listening < s.startupListenAlone || len(members) > 1 && listening < s.startupListen {
		return never
	}
	switch first := s.firstOf(members)[table]; {
	case first == s.o.Me || first == "":
		return 0
	case listening < s.startupListen+claimHandicap:
		return never // the log may have been free since this process began
	}
	return claimHandicap
}

// firstFor is for how long the answer counts which member is first for each free log: all tables ask at once.
const firstFor = 100 * time.Millisecond

// firstOf returns which member should claim each log that is free now.
func (s *Balancer) firstOf(members []Member) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.firstAt) < firstFor {
		return s.first
	}
	free := []string{}
	for _, t := range s.o.Tables() {
		if sight, _ := s.group.Sight(t.Name); t.Waiting && sight == nil {
			free = append(free, t.Name)
		}
	}
	slices.Sort(free)
	s.first, s.firstAt = First(free, members), time.Now()
	return s.first
}

// Failed notes that this process cannot work with a log, and returns the member to which it goes back: the one that has
// handed it over a moment ago. Empty: it came otherwise.
func (s *Balancer) Failed(table string) (to string) {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	p, ok := s.pulled[table]
	if !ok || now.Sub(p.at) >= probation {
		return ""
	}
	delete(s.pulled, table)
	s.failed[table] = now
	return p.from
}

// say returns what this process says of itself.
func (s *Balancer) say() presence.Message {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := presence.Message{
		Build: s.o.Build, Reads: s.o.Reads, Leaving: s.leaving, Services: s.o.Answer(), Moved: presence.AgeOf(s.moved, now),
	}
	for _, t := range s.o.Tables() {
		switch {
		case t.Owned:
			m.Logs = append(m.Logs, presence.Log{
				Table: t.Name, Epoch: t.Epoch, Seq: t.Seq, Appended: presence.AgeOf(t.Sent, now),
				Rate: s.rates[t.Name].perSecond(), Moved: presence.AgeOf(s.pulled[t.Name].at, now),
			})
		case t.Waiting && !s.leaving && !s.avoids(t.Name, now):
			m.Wanted = append(m.Wanted, t.Name)
		}
	}
	return m
}

// avoids reports whether this process failed with a log lately. The caller holds s.mu.
func (s *Balancer) avoids(table string, now time.Time) bool {
	at, ok := s.failed[table]
	return ok && now.Sub(at) < avoidFor
}

// review counts changes, and notes with which logs this process failed.
func (s *Balancer) review(now time.Time) {
	tables := s.o.Tables()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tables {
		if !t.Owned {
			delete(s.rates, t.Name)
		} else if r := s.rates[t.Name]; r == nil {
			s.rates[t.Name] = &rate{at: now, changes: t.Changes}
		} else {
			r.note(now, t.Changes)
		}
		switch p, pulled := s.pulled[t.Name]; {
		case !pulled:
		case t.Owned:
			p.claimed = true
			s.pulled[t.Name] = p
		case p.claimed || now.Sub(p.at) > probation: // a fold may take long
			if delete(s.pulled, t.Name); now.Sub(p.at) < probation || !p.claimed {
				s.failed[t.Name] = now
				s.o.Logger.Warn("a log that another replica handed over was not kept: not asked for again for a while",
					zap.String("table", t.Name), zap.Duration("for", avoidFor))
			}
		}
		if at, given := s.given[t.Name]; given && (!t.Owned || now.Sub(at) > probation) {
			delete(s.given, t.Name)
		}
	}
}

// pull asks for the logs that this process should have.
func (s *Balancer) pull(ctx context.Context) {
	members, listening := s.members(time.Now())
	s.mu.Lock()
	wait := s.leaving || time.Since(s.askedAt) < afterRefusal
	s.mu.Unlock()
	s.tryServices(ctx)
	if wait || listening < s.startupListen {
		return
	}
	for _, m := range s.sick(members) {
		s.ask(ctx, m, presence.WhySick)
	}
	if m, ok := NextMove(members); ok && m.To == s.o.Me && !s.coming(time.Now(), members, listening) {
		s.ask(ctx, m, presence.WhyLoad)
	}
}

// coming reports whether there is a log that this process has not claimed yet and soon will: it was promised, or it is
// free at the start and this process is first. Such a log counts to nobody's work, so this process seems to have too
// little.
func (s *Balancer) coming(now time.Time, members []Member, listening time.Duration) bool {
	if listening < s.startupListen+probation {
		for _, first := range s.firstOf(members) {
			if first == s.o.Me {
				return true
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pulled {
		if !p.claimed && now.Sub(p.at) < probation {
			return true
		}
	}
	return false
}

// tryServices calls the services if one has not answered for a while: a process that has given its tables away makes no
// other calls, and would count as unfit for ever.
func (s *Balancer) tryServices(ctx context.Context) {
	m := presence.Message{Services: s.o.Answer()}
	if !failing(&m, unfitAfter) || time.Since(s.tried) < unfitAfter {
		return
	}
	tables := s.o.Tables()
	i := slices.IndexFunc(tables, func(t Table) bool { return t.Waiting })
	if i < 0 {
		return
	}
	s.tried = time.Now()
	ctx, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	_ = s.o.Prove(ctx, tables[i].Name) // whoever makes the calls notes their results
}

// sick returns the moves to this process of logs whose owner does not reach a service.
func (s *Balancer) sick(members []Member) (moves []Move) {
	others, _ := s.group.Members(time.Now())
	for i := range others {
		owner := &others[i].Message
		if owner.Leaving || !failing(owner, sickAfter) {
			continue
		}
		to := Successors(owner.Member, members)
		for _, l := range owner.Logs {
			moved, known := presence.Age(l.Moved)
			if known && moved < minStay {
				continue // what nobody reaches must not go round
			}
			if to[l.Table] == s.o.Me {
				moves = append(moves, Move{From: owner.Member, To: s.o.Me, Table: l.Table, Epoch: l.Epoch})
			}
		}
	}
	return moves
}

// proveTimeout is how long a proof may take.
const proveTimeout = 10 * time.Second

// ask proves that this process can take a log, and asks its owner for it.
func (s *Balancer) ask(ctx context.Context, m Move, why string) {
	proving, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	log := s.o.Logger.With(zap.String("table", m.Table), zap.String("owner", m.From), zap.String("why", why))
	now := time.Now()
	if err := s.o.Prove(proving, m.Table); err != nil {
		s.mu.Lock()
		s.failed[m.Table] = now
		s.mu.Unlock()
		log.Warn("a log of another replica is not asked for: this one could not work with it", zap.Error(err))
		return
	}
	s.mu.Lock()
	s.pulled[m.Table] = pull{from: m.From, at: now} // before the owner's answer: its release may be faster
	s.mu.Unlock()
	err := s.group.Ask(ctx, m.From, presence.Request{Table: m.Table, Epoch: m.Epoch, Why: why})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if errors.Is(err, presence.ErrRefused) {
			delete(s.pulled, m.Table) // else the owner's answer was lost, and its release may follow
		}
		s.askedAt = now
		if ctx.Err() == nil && !errors.Is(err, presence.ErrRefused) {
			log.Warn("another replica was asked for a log and did not answer", zap.Error(err))
		}
		return
	}
	s.moved = now
	log.Info("take a log over from another replica")
}
