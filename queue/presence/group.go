package presence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Options of a Group.
type Options struct {
	Subject string // of the pipeline: below it are the messages and the requests
	Me      string // this process, as in claims
	// Say returns this process's message; the Group fills in Member and Number. It must be fast.
	Say func() Message
	// Asked decides about a request of another member to hand a log over to it; empty: it is handed
	// over, else why not.
	Asked func(Request) (refused string)
	// Every is the time between two messages; 0: protocol.PresencePeriod. Tests shorten it.
	Every  time.Duration
	Logger *zap.Logger
}

// Group holds the last messages of the pipeline's other processes, and publishes this one's.
type Group struct {
	o    Options
	conn *conn.Conn

	announce chan struct{} // capacity 1: publish now

	mu      sync.Mutex // covers what follows
	began   time.Time  // when Run subscribed; zero before
	number  uint64
	members map[string]*Member
	owners  map[string]string        // by table: the member that owns its log
	changed map[string]chan struct{} // by table: closed when another member owns its log, or none
}

// Member is another process, as of its last message.
type Member struct {
	Message              // with the logs of all its parts
	At         time.Time // when it was heard; Connection: on which connection
	Connection uint64

	parts []Message // of a message that is not complete
}

// Sight is the owner's last report on a log.
type Sight struct {
	Log
	Member     string
	At         time.Time
	Connection uint64
}

// Ago returns how long before the message the owner had appended; negative: not reported.
func (s *Sight) Ago() time.Duration {
	if ago, known := Age(s.Appended); known {
		return ago
	}
	return -1
}

// New returns a group that receives nothing until Run.
func New(o Options, c *conn.Conn) *Group {
	if o.Every == 0 {
		o.Every = protocol.PresencePeriod
	}
	return &Group{
		o: o, conn: c, announce: make(chan struct{}, 1),
		members: map[string]*Member{}, owners: map[string]string{}, changed: map[string]chan struct{}{},
	}
}

// Run receives and publishes messages until ctx ends. Then it publishes that the process is gone.
// It returns an error only when it cannot subscribe, as where permissions forbid the subject.
func (g *Group) Run(ctx context.Context) error {
	heard, err := g.conn.NC.Subscribe(g.o.Subject+".is", func(m *nats.Msg) { g.hear(m.Data) })
	if err != nil {
		return fmt.Errorf("listen for other replicas: %w", err)
	}
	defer func() { _ = heard.Unsubscribe() }()
	asked, err := g.conn.NC.Subscribe(g.o.Subject+".ask."+token(g.o.Me), g.answer)
	if err != nil {
		return fmt.Errorf("listen for requests of other replicas: %w", err)
	}
	defer func() { _ = asked.Unsubscribe() }()
	g.mu.Lock()
	g.began = time.Now()
	g.mu.Unlock()
	tick := time.NewTicker(g.o.Every)
	defer tick.Stop()
	for {
		g.say(false)
		select {
		case <-ctx.Done():
			g.say(true)
			return nil
		case <-tick.C:
			g.forget(time.Now())
		case <-g.announce:
			_ = failure.Pause(ctx, gather) // many tables announce at once, as at a start
		}
	}
}

// gather is how long an announcement waits for others.
const gather = 20 * time.Millisecond

// Listen returns the members that publish within d, for a command: it publishes nothing itself.
// Members publish every two seconds.
func (g *Group) Listen(ctx context.Context, d time.Duration) ([]Member, error) {
	heard, err := g.conn.NC.Subscribe(g.o.Subject+".is", func(m *nats.Msg) { g.hear(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("listen for replicas: %w", err)
	}
	defer func() { _ = heard.Unsubscribe() }()
	if err := failure.Pause(ctx, d); err != nil {
		return nil, err
	}
	all, _ := g.Members(time.Now())
	return all, nil
}

// Announce publishes this process's message now, because it has claimed or released a log.
func (g *Group) Announce() {
	if g == nil {
		return
	}
	select {
	case g.announce <- struct{}{}:
	default:
	}
}

// say publishes this process's message. Nothing is lost when it fails: the next message comes soon.
func (g *Group) say(gone bool) {
	m := g.o.Say()
	g.mu.Lock()
	g.number++
	m.Member, m.Number, m.Gone = g.o.Me, g.number, gone
	g.mu.Unlock()
	if gone {
		m.Leaving, m.Logs, m.Wanted = true, nil, nil
	}
	for _, p := range m.split() {
		data, err := json.Marshal(p)
		if err == nil {
			err = g.conn.NC.Publish(g.o.Subject+".is", data)
		}
		if err != nil {
			g.o.Logger.Debug("presence not published", zap.Error(err))
			return
		}
	}
	_ = g.conn.NC.FlushTimeout(g.o.Every) // at the end of the process the connection is closed next
}

// hear notes a message of another member.
func (g *Group) hear(data []byte) {
	m, err := decode(data)
	if err != nil {
		g.o.Logger.Debug("presence message ignored", zap.Error(err))
		return
	}
	if m.Member == g.o.Me {
		return
	}
	now, connection := time.Now(), g.conn.Connections.Load()
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.members[m.Member]
	if old == nil {
		old = &Member{}
		g.Announce() // it should not have to wait for this one's message
	}
	if m.Number <= old.Number && old.Number > 0 || len(old.parts) > 0 && m.Number < old.parts[0].Number {
		return // overtaken on the way
	}
	var parts []Message
	if len(old.parts) > 0 && old.parts[0].Number == m.Number {
		parts = old.parts
	}
	if slices.ContainsFunc(parts, func(p Message) bool { return p.Part == m.Part || p.Parts != m.Parts }) {
		return // again, or not of the same message
	}
	parts = append(slices.Clip(parts), m)
	if len(parts) < m.Parts {
		old.parts = parts
		if g.members[m.Member] == nil {
			g.members[m.Member] = old
		}
		return
	}
	full := parts[0]
	full.Logs, full.Wanted = nil, nil
	for _, p := range parts {
		full.Logs = append(full.Logs, p.Logs...)
		full.Wanted = append(full.Wanted, p.Wanted...)
	}
	g.replace(&Member{Message: full, At: now, Connection: connection})
}

// replace puts a member in place of its earlier message, and wakes the claims that wait for a log
// that has another owner now. The caller holds g.mu.
func (g *Group) replace(m *Member) {
	owned := map[string]bool{}
	for _, l := range m.Logs {
		owned[l.Table] = true
		if g.owners[l.Table] != m.Member {
			if other := g.sight(l.Table); other != nil && other.Epoch > l.Epoch {
				continue // a former owner that has not noticed yet
			}
			g.owners[l.Table] = m.Member
			g.wake(l.Table)
		}
	}
	for table, owner := range g.owners {
		if owner == m.Member && !owned[table] {
			delete(g.owners, table)
			g.wake(table)
		}
	}
	if g.members[m.Member] = m; m.Gone {
		delete(g.members, m.Member)
	}
}

func (g *Group) wake(table string) {
	if c := g.changed[table]; c != nil {
		close(c)
		delete(g.changed, table)
	}
}

// forgetAfter is after how long without a message a member is not listed any more.
const forgetAfter = time.Minute

// forget drops the members without a message for forgetAfter.
func (g *Group) forget(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, m := range g.members {
		if now.Sub(m.At) > forgetAfter {
			g.replace(&Member{Message: Message{Member: name, Gone: true}})
		}
	}
}

// sight returns the owner's last report on a table's log; nil if no owner is known. The caller
// holds g.mu.
func (g *Group) sight(table string) *Sight {
	m := g.members[g.owners[table]]
	if m == nil {
		return nil
	}
	i := slices.IndexFunc(m.Logs, func(l Log) bool { return l.Table == table })
	if i < 0 {
		return nil
	}
	return &Sight{Log: m.Logs[i], Member: m.Member, At: m.At, Connection: m.Connection}
}

// Sight returns the owner's last report on a table's log, and a channel that is closed when another
// member, or none, reports that it owns the log. The sight is nil while no member does.
func (g *Group) Sight(table string) (s *Sight, changed <-chan struct{}) {
	if g == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.changed[table]
	if c == nil {
		c = make(chan struct{})
		g.changed[table] = c
	}
	return g.sight(table), c
}

// Members returns the other members with a message within the last four periods, in order of their
// names, and for how long this process has listened.
func (g *Group) Members(now time.Time) (all []Member, listening time.Duration) {
	if g == nil {
		return nil, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if now.Sub(m.At) < 4*g.o.Every && m.Number > 0 {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Member, b.Member) })
	if !g.began.IsZero() {
		listening = now.Sub(g.began)
	}
	return all, listening
}

// Hears reports whether a message of a member has arrived within the last four periods.
func (g *Group) Hears(member string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[member]
	return m != nil && m.Number > 0 && time.Since(m.At) < 4*g.o.Every
}

// token makes one word of a name, for a subject.
func token(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '*' || r == '>' || r <= ' ' {
			return '-'
		}
		return r
	}, name)
}
