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
	// owner; startupListenAlone, where no other member has announced itself: each running member
	// does so every two seconds.
	startupListen, startupListenAlone = 5 * time.Second, 2500 * time.Millisecond
	// claimHandicap is for how long a process leaves a free log to the one that should claim it.
	claimHandicap = 3 * time.Second
	// never is a time that does not pass while a process starts.
	never = time.Hour
	// sickAfter is after how long without an answer of a service, while calls fail, a member's logs
	// go to others.
	sickAfter = 60 * time.Second
	// unfitAfter is after how long such a member gets no more logs.
	unfitAfter = 10 * time.Second
	// avoidFor is for how long a member does not ask for a log with which it failed.
	avoidFor = 10 * time.Minute
	// afterRefusal is how long a member requests nothing after a refusal: the two have different
	// views of the group.
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
	// Prove proves that this process can read a table and reaches its target. It is called before
	// the log is asked for.
	Prove func(ctx context.Context, table string) error
	// HandOver begins to hand a log over.
	HandOver func(table, to string)
	Logger   *zap.Logger
}

// Services holds how each service answers.
type Services map[string]presence.Service

// Balancer divides the tables with the other processes. Its methods may be called by any goroutine;
// on a nil Balancer they do what a process without others does.
type Balancer struct {
	o     Options
	group *presence.Group
	// The constants of these names; tests set others.
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

// New returns a balancer; join makes the group from its options, nil where there are no other
// processes.
func New(o Options, join func(presence.Options) *presence.Group) *Balancer {
	b := &Balancer{
		o: o, startupListen: startupListen, startupListenAlone: startupListenAlone, rates: map[string]*rate{},
		pulled: map[string]pull{}, failed: map[string]time.Time{}, given: map[string]time.Time{},
	}
	if b.group = join(presence.Options{Me: o.Me, Say: b.say, Asked: b.asked}); b.group == nil {
		return nil
	}
	return b
}

// Group returns the group of the processes that announce themselves; nil for a nil Balancer.
func (b *Balancer) Group() *presence.Group {
	if b == nil {
		return nil
	}
	return b.group
}

// Run announces this process, listens to the others and requests logs until ctx ends.
func (b *Balancer) Run(ctx context.Context) error {
	if b == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := b.group.Run(ctx); err != nil { // permissions: logs are claimed all the same, later
			b.o.Logger.Warn("replicas cannot hear each other: a log is taken over when it was silent for the claim's time, "+
				"and the work is not shared", zap.Error(err))
		}
		return nil
	})
	g.Go(func() error {
		for failure.Pause(ctx, reviewInterval) == nil {
			b.review(time.Now())
			b.pull(ctx)
		}
		return nil
	})
	return g.Wait()
}

// Leave announces that this process ends, and returns which member gets which of its logs; empty if
// no member gets any.
func (b *Balancer) Leave() map[string]string {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.leaving = true
	b.mu.Unlock()
	b.group.Announce()
	members, _ := b.members(time.Now())
	return Successors(b.o.Me, members)
}

// ClaimDelay is for how long this process leaves a free log to others: at the start until it has
// listened for other members, later while another one has less work. It is called repeatedly.
func (b *Balancer) ClaimDelay(table string) time.Duration {
	if b == nil {
		return 0
	}
	members, listening := b.members(time.Now())
	if listening < b.startupListenAlone || len(members) > 1 && listening < b.startupListen {
		return never
	}
	switch first := b.firstOf(members)[table]; {
	case first == b.o.Me || first == "":
		return 0
	case listening < b.startupListen+claimHandicap:
		return never // the log may have been free since this process began
	}
	return claimHandicap
}

// firstFor is for how long the answer counts which member is first for each free log: all tables
// ask at once.
const firstFor = 100 * time.Millisecond

// firstOf returns which member should claim each log that is free now.
func (b *Balancer) firstOf(members []Member) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.firstAt) < firstFor {
		return b.first
	}
	free := []string{}
	for _, t := range b.o.Tables() {
		if sight, _ := b.group.Sight(t.Name); t.Waiting && sight == nil {
			free = append(free, t.Name)
		}
	}
	slices.Sort(free)
	b.first, b.firstAt = First(free, members), time.Now()
	return b.first
}

// Failed notes that this process cannot work with a log, and returns the member to which it goes
// back: the one that has handed it over a moment ago. Empty: it came otherwise.
func (b *Balancer) Failed(table string) (to string) {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	p, ok := b.pulled[table]
	if !ok || now.Sub(p.at) >= probation {
		return ""
	}
	delete(b.pulled, table)
	b.failed[table] = now
	return p.from
}

// say returns the message that announces the state of this process.
func (b *Balancer) say() presence.Message {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	m := presence.Message{
		Build: b.o.Build, Reads: b.o.Reads, Leaving: b.leaving, Services: b.o.Answer(), Moved: presence.AgeOf(b.moved, now),
	}
	for _, t := range b.o.Tables() {
		switch {
		case t.Owned:
			m.Logs = append(m.Logs, presence.Log{
				Table: t.Name, Epoch: t.Epoch, Seq: t.Seq, Appended: presence.AgeOf(t.Sent, now),
				Rate: b.rates[t.Name].perSecond(), Moved: presence.AgeOf(b.pulled[t.Name].at, now),
			})
		case t.Waiting && !b.leaving && !b.avoids(t.Name, now):
			m.Wanted = append(m.Wanted, t.Name)
		}
	}
	return m
}

// avoids reports whether this process failed with a log lately. The caller holds b.mu.
func (b *Balancer) avoids(table string, now time.Time) bool {
	at, ok := b.failed[table]
	return ok && now.Sub(at) < avoidFor
}

// review counts changes, and notes with which logs this process failed.
func (b *Balancer) review(now time.Time) {
	tables := b.o.Tables()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range tables {
		if !t.Owned {
			delete(b.rates, t.Name)
		} else if r := b.rates[t.Name]; r == nil {
			b.rates[t.Name] = &rate{at: now, changes: t.Changes}
		} else {
			r.note(now, t.Changes)
		}
		switch p, pulled := b.pulled[t.Name]; {
		case !pulled:
		case t.Owned:
			p.claimed = true
			b.pulled[t.Name] = p
		case p.claimed || now.Sub(p.at) > probation: // a fold may take long
			if delete(b.pulled, t.Name); now.Sub(p.at) < probation || !p.claimed {
				b.failed[t.Name] = now
				b.o.Logger.Warn("a log that another replica handed over was not kept: not asked for again for a while",
					zap.String("table", t.Name), zap.Duration("for", avoidFor))
			}
		}
		if at, given := b.given[t.Name]; given && (!t.Owned || now.Sub(at) > probation) {
			delete(b.given, t.Name)
		}
	}
}

// pull requests the logs that this process should have.
func (b *Balancer) pull(ctx context.Context) {
	members, listening := b.members(time.Now())
	b.mu.Lock()
	wait := b.leaving || time.Since(b.askedAt) < afterRefusal
	b.mu.Unlock()
	b.tryServices(ctx)
	if wait || listening < b.startupListen {
		return
	}
	for _, m := range b.sick(members) {
		b.ask(ctx, m, presence.WhySick)
	}
	if m, ok := NextMove(members); ok && m.To == b.o.Me && !b.coming(time.Now(), members, listening) {
		b.ask(ctx, m, presence.WhyLoad)
	}
}

// coming reports whether there is a log that this process has not claimed yet and soon will: it was
// promised, or it is free at the start and this process is first. No member counts such a log as
// work, so this process seems to have too little.
func (b *Balancer) coming(now time.Time, members []Member, listening time.Duration) bool {
	if listening < b.startupListen+probation {
		for _, first := range b.firstOf(members) {
			if first == b.o.Me {
				return true
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pulled {
		if !p.claimed && now.Sub(p.at) < probation {
			return true
		}
	}
	return false
}

// tryServices calls the services if one has not answered for a while: a process that has given its
// tables away makes no other calls, and would count as unfit for ever.
func (b *Balancer) tryServices(ctx context.Context) {
	m := presence.Message{Services: b.o.Answer()}
	if !failing(&m, unfitAfter) || time.Since(b.tried) < unfitAfter {
		return
	}
	tables := b.o.Tables()
	i := slices.IndexFunc(tables, func(t Table) bool { return t.Waiting })
	if i < 0 {
		return
	}
	b.tried = time.Now()
	ctx, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	_ = b.o.Prove(ctx, tables[i].Name) // whoever makes the calls notes their results
}

// sick returns the moves to this process of logs with an owner that does not reach a service.
func (b *Balancer) sick(members []Member) (moves []Move) {
	others, _ := b.group.Members(time.Now())
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
			if to[l.Table] == b.o.Me {
				moves = append(moves, Move{From: owner.Member, To: b.o.Me, Table: l.Table, Epoch: l.Epoch})
			}
		}
	}
	return moves
}

// proveTimeout is how long a proof may take.
const proveTimeout = 10 * time.Second

// ask proves that this process can take a log, and requests it from its owner.
func (b *Balancer) ask(ctx context.Context, m Move, why string) {
	proving, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	log := b.o.Logger.With(zap.String("table", m.Table), zap.String("owner", m.From), zap.String("why", why))
	now := time.Now()
	if err := b.o.Prove(proving, m.Table); err != nil {
		b.mu.Lock()
		b.failed[m.Table] = now
		b.mu.Unlock()
		log.Warn("a log of another replica is not asked for: this one could not work with it", zap.Error(err))
		return
	}
	b.mu.Lock()
	b.pulled[m.Table] = pull{from: m.From, at: now} // before the owner's answer: its release may be faster
	b.mu.Unlock()
	err := b.group.Ask(ctx, m.From, presence.Request{Table: m.Table, Epoch: m.Epoch, Why: why})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if errors.Is(err, presence.ErrRefused) {
			delete(b.pulled, m.Table) // else the owner's answer was lost, and its release may follow
		}
		b.askedAt = now
		if ctx.Err() == nil && !errors.Is(err, presence.ErrRefused) {
			log.Warn("another replica was asked for a log and did not answer", zap.Error(err))
		}
		return
	}
	b.moved = now
	log.Info("take a log over from another replica")
}
