package balance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/presence"
	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

// process is a process of a pipeline whose tables only exist in this test.
type process struct {
	*Balancer
	name string

	mu      sync.Mutex
	tables  []Table
	failing map[string]time.Duration // by service
	unable  map[string]bool          // tables that it cannot work with
	proved  int
	handed  map[string]string // logs that it was told to hand over, and to whom
}

func processes(t *testing.T, names ...string) (all []*process) {
	t.Helper()
	srv, err := sandnats.Open(sandnats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	for _, name := range names {
		p := &process{
			name:    name,
			failing: map[string]time.Duration{},
			unable:  map[string]bool{},
			handed:  map[string]string{},
		}
		c, err := conn.Dial(
			t.Context(),
			conn.Options{URL: srv.URL(), Name: name, AckTimeout: 10 * time.Second},
			zap.NewNop(),
		)
		if err != nil {
			t.Fatal(err)
		}
		p.Balancer = New(Options{
			Me: name, Tables: p.all, Answer: p.answers, Prove: p.prove, HandOver: p.handOver, Logger: zap.NewNop(),
		}, func(o presence.Options) *presence.Group {
			o.Subject, o.Logger, o.Every = "tailrace-presence.test", zap.NewNop(), 20*time.Millisecond
			return presence.New(o, c)
		})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- p.group.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			c.Close()
		})
		all = append(all, p)
	}
	return all
}

func (p *process) all() []Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.tables)
}

func (p *process) answers() Services {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Services{}
	for name, d := range p.failing {
		all[name] = presence.Service{Success: d.Milliseconds(), Failing: d.Milliseconds()}
	}
	return all
}

func (p *process) prove(_ context.Context, table string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proved++
	if p.unable[table] {
		return errors.New("no permission")
	}
	return nil
}

// fails lets a service fail for so long; cannot says whether the process cannot work with a table.
func (p *process) fails(service string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing[service] = d
}

func (p *process) cannot(table string, unable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unable[table] = unable
}

func (p *process) handOver(table, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed[table] = to
}

// own gives a process tables; wait lets it wait for others.
func (p *process) own(tables ...string) { p.set(Table{Owned: true, Epoch: 1}, tables) }

func (p *process) wait(tables ...string) { p.set(Table{Waiting: true}, tables) }

func (p *process) set(as Table, tables []string) {
	p.mu.Lock()
	for _, name := range tables {
		p.tables = slices.DeleteFunc(p.tables, func(t Table) bool { return t.Name == name })
		as.Name = name
		p.tables = append(p.tables, as)
	}
	p.mu.Unlock()
	p.group.Announce()
}

func (p *process) to(table string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handed[table]
}

// hears waits until a process hears what another one says.
func (p *process) hears(t *testing.T, of *process, fact func(*presence.Message) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		members, _ := p.group.Members(time.Now())
		for i := range members {
			if members[i].Member == of.name && fact(&members[i].Message) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never heard it of %s; last heard: %+v", p.name, of.name, members)
		}
	}
}

// listened lets a process be as if it had listened for long.
func (p *process) listened() { p.startupListen, p.startupListenAlone = -time.Hour, -time.Hour }

// TestSickMemberHandsItsTablesOver: it does not reach a service, and another one proves that it
// reaches the table.
func TestSickMemberHandsItsTablesOver(t *testing.T) {
	for _, c := range []struct {
		name    string
		failing time.Duration
		unable  bool // the other one cannot work with the table
		leaves  bool
	}{
		{"a minute without an answer", time.Minute, false, true},
		{"not yet a minute", 59 * time.Second, false, false},
		{"it is the table's fault", time.Hour, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := processes(t, "a", "b")
			a, b := ps[0], ps[1]
			a.fails("Bigtable", c.failing)
			b.cannot("Orders", c.unable)
			a.own("Orders")
			b.wait("Orders")
			b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 1 && len(m.Services) == 1 })
			b.listened()
			b.pull(t.Context())
			b.pull(t.Context())
			if got := a.to("Orders") == "b"; got != c.leaves {
				t.Errorf("handed over: %v, want %v", got, c.leaves)
			}
			if c.unable && b.proved != 1 {
				t.Errorf("b proved it %d times: a table with which it failed is not asked for again", b.proved)
			}
		})
	}
}

// TestMemberThatGaveItsTablesAwayTriesTheServices: it makes no other calls, so nothing else shows
// that they answer.
func TestMemberThatGaveItsTablesAwayTriesTheServices(t *testing.T) {
	a := processes(t, "a")[0]
	for _, c := range []struct {
		name    string
		failing time.Duration
		waits   bool
		proved  int
	}{
		{"all services answer", 0, true, 0},
		{"one fails for a moment", 9 * time.Second, true, 0},
		{"one fails, and no table waits", time.Minute, false, 0},
		{"one fails", time.Minute, true, 1},
		{"tried a moment ago", time.Minute, true, 1},
	} {
		if a.fails("Bigtable", c.failing); c.waits {
			a.wait("Orders")
		}
		if a.pull(t.Context()); a.proved != c.proved {
			t.Errorf("%s: %d tries, want %d", c.name, a.proved, c.proved)
		}
		a.mu.Lock()
		a.tables = nil
		a.mu.Unlock()
	}
}

// TestLogIsAskedForOnceAndKept: the owner hands a log over once, not to a second one that asks, and
// not right after another move.
func TestLogIsAskedForOnceAndKept(t *testing.T) {
	ps := processes(t, "a", "b", "c")
	a, b, c := ps[0], ps[1], ps[2]
	a.own("t1", "t2", "t3", "t4")
	b.wait("t1", "t2", "t3", "t4")
	c.wait("t1", "t2", "t3", "t4")
	wants := func(m *presence.Message) bool { return len(m.Wanted) == 4 }
	a.hears(t, b, wants)
	a.hears(t, c, wants)
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 4 })
	b.hears(t, c, wants)
	b.listened()
	b.pull(t.Context())
	if a.to("t1") != "b" || len(a.handed) != 1 {
		t.Fatalf("handed over: %v, want t1 to b", a.handed)
	}
	for _, table := range []string{"t1", "t2"} {
		err := c.group.Ask(t.Context(), "a", presence.Request{Table: table, Epoch: 1, Why: presence.WhyLoad})
		if !errors.Is(err, presence.ErrRefused) || len(a.handed) != 1 {
			t.Errorf("c asked for %s a moment later: %v, handed over: %v", table, err, a.handed)
		}
	}
}

// TestOwnerDecidesByWhatItKnows: the one that asks may be wrong about the claim, and about the
// services.
func TestOwnerDecidesByWhatItKnows(t *testing.T) {
	a := processes(t, "a")[0]
	a.own("t1", "t2")
	ask := func(table string, epoch uint64) string {
		return a.asked(presence.Request{From: "b", Table: table, Epoch: epoch, Why: presence.WhySick})
	}
	if refused := ask("t1", 1); refused == "" {
		t.Error("hands a log over as a sick one, and every service answers it")
	}
	a.fails("Bigtable", time.Hour)
	if refused := ask("t1", 7); refused == "" {
		t.Error("hands over what was asked for with another claim")
	}
	if refused := ask("t1", 1); refused != "" || a.to("t1") != "b" {
		t.Errorf("keeps a log that it was rightly asked for: %s", refused)
	}
	if refused := ask("t1", 1); refused == "" {
		t.Error("promises a log that it hands over already")
	}
	a.Leave()
	if refused := ask("t2", 1); refused == "" || a.to("t2") != "" {
		t.Error("hands a log over to the one that asks, while it ends and divides its logs itself")
	}
}

// TestMemberAsksForNothingAfterARefusal: the two see the group differently, for a while.
func TestMemberAsksForNothingAfterARefusal(t *testing.T) {
	ps := processes(t, "a", "b")
	a, b := ps[0], ps[1]
	a.own("t1", "t2")
	b.wait("t1", "t2")
	a.hears(t, b, func(m *presence.Message) bool { return len(m.Wanted) == 2 })
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 2 })
	b.listened()
	b.askedAt = time.Now()
	if b.pull(t.Context()); b.proved > 0 {
		t.Error("it asks again right after a refusal")
	}
	b.askedAt = time.Now().Add(-afterRefusal)
	if b.pull(t.Context()); b.proved != 1 || a.to("t1") != "b" {
		t.Errorf("it never asks again: %d times, handed over: %v", b.proved, a.handed)
	}
}

// TestMemberAsksForTheNextLogWhenItHasTheLastOne: a log on its way counts to nobody's work, so a
// member whose log takes longer than the time between two moves would ask for more than its share.
func TestMemberAsksForTheNextLogWhenItHasTheLastOne(t *testing.T) {
	ps := processes(t, "a", "b")
	a, b := ps[0], ps[1]
	a.own("t1", "t2", "t3")
	b.wait("coming", "t1", "t2", "t3")
	a.hears(t, b, func(m *presence.Message) bool { return len(m.Wanted) == 4 })
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 3 })
	b.listened()
	b.pulled["coming"] = pull{from: "a", at: time.Now().Add(-2 * moveInterval)}
	if b.pull(t.Context()); b.proved > 0 || len(a.handed) > 0 {
		t.Errorf("it asks for a second log while the first one is on its way: %v", a.handed)
	}
	b.own("coming")
	b.review(time.Now())
	if b.pull(t.Context()); b.proved != 1 || a.to("t1") != "b" {
		t.Errorf("it never asks for the next one: handed over: %v", a.handed)
	}
}

// TestMemberClaimsFreeLogsBeforeItAsksForOthers: two that start together would else ask for each
// other's first logs.
func TestMemberClaimsFreeLogsBeforeItAsksForOthers(t *testing.T) {
	ps := processes(t, "a", "b")
	a, b := ps[0], ps[1]
	a.own("t1", "t2")
	b.wait("free", "t1", "t2")
	a.hears(t, b, func(m *presence.Message) bool { return len(m.Wanted) == 3 })
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 2 })
	b.startupListen, b.startupListenAlone = -time.Second, -time.Second // it has listened for long enough, a second ago
	if b.pull(t.Context()); b.proved > 0 || len(a.handed) > 0 {
		t.Errorf("it asks for a log while it is first for a free one: %v", a.handed)
	}
	b.listened() // nobody says who has the log, but somebody has it
	if b.pull(t.Context()); b.proved != 1 || a.to("t1") != "b" {
		t.Errorf("it never asks: handed over: %v", a.handed)
	}
}

// TestLogThatFailsGoesBack to the member that it came from, and is not asked for again for a while.
func TestLogThatFailsGoesBack(t *testing.T) {
	ps := processes(t, "a", "b")
	a, b := ps[0], ps[1]
	a.own("t1", "t2")
	b.wait("t1", "t2")
	a.hears(t, b, func(m *presence.Message) bool { return len(m.Wanted) == 2 })
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 2 })
	b.listened()
	b.pull(t.Context())
	if a.to("t1") != "b" {
		t.Fatalf("handed over: %v", a.handed)
	}
	if to := b.Failed("t1"); to != "a" {
		t.Errorf("t1 goes back to %q", to)
	}
	if to := b.Failed("t2"); to != "" {
		t.Errorf("t2, which was never moved, goes to %q", to)
	}
	a.hears(t, b, func(m *presence.Message) bool { return slices.Equal(m.Wanted, []string{"t2"}) })
}

// TestFreeLogsAreDividedAtTheStart: nobody claims before it has listened, and then each log has one
// that is first.
func TestFreeLogsAreDividedAtTheStart(t *testing.T) {
	ps := processes(t, "a", "b", "c")
	tables := []string{"t1", "t2", "t3", "t4", "t5", "t6"}
	for _, p := range ps {
		p.wait(tables...)
	}
	for _, p := range ps {
		for _, of := range ps {
			if p != of {
				p.hears(t, of, func(m *presence.Message) bool { return len(m.Wanted) == 6 })
			}
		}
		if turn := p.ClaimDelay("t1"); turn != never {
			t.Errorf("%s claims after %s, before it has listened", p.name, turn)
		}
		p.startupListen, p.startupListenAlone = 0, 0
		if turn := p.ClaimDelay("t1"); turn == claimHandicap {
			t.Errorf("%s claims a log that may have been free for long before the one that is first has listened", p.name)
		}
		p.firstAt = time.Time{}
		p.listened()
	}
	for _, table := range tables {
		first := 0
		for _, p := range ps {
			switch turn := p.ClaimDelay(table); turn {
			case 0:
				first++
			case claimHandicap:
			default:
				t.Errorf("%s leaves %s for %s", p.name, table, turn)
			}
		}
		if first != 1 {
			t.Errorf("%d processes are first for %s", first, table)
		}
	}
}

// TestOwnerAgreesWithTheAsker: both must reckon with the same members, or the one asks every second
// what the other one refuses every second, and nothing is shared.
func TestOwnerAgreesWithTheAsker(t *testing.T) {
	all := map[string]bool{"x": true, "y": true, "z": true}
	a := Member{
		Name:  "a",
		Moved: -1,
		Logs:  []Log{{Table: "x", Moved: -1}, {Table: "y", Moved: -1}, {Table: "z", Moved: -1}},
	}
	b := Member{Name: "b", Moved: -1, Wanted: all}
	c := Member{Name: "c", Moved: -1, Unfit: true, Logs: []Log{{Table: "big", Rate: 100, Moved: -1}}} // it ends
	members := []Member{a, b, c}
	m, ok := NextMove(members)
	if !ok || m.To != "b" {
		t.Fatalf("no move: %+v", m)
	}
	if refused := refusedShare(members, a, a.Logs[0], -1, true); refused != "" {
		t.Errorf("b asks a for %s, and a refuses: %s", m.Table, refused)
	}
}

// TestLogOfASickMemberDoesNotGoRound: what nobody reaches makes each owner sick after a minute. A
// log that was moved for that reason must not be moved again for it.
func TestLogOfASickMemberDoesNotGoRound(t *testing.T) {
	ps := processes(t, "a", "b")
	a, b := ps[0], ps[1]
	a.fails("Bigtable", 61*time.Second)
	a.pulled["Orders"] = pull{from: "b", at: time.Now().Add(-61 * time.Second), claimed: true}
	a.own("Orders")
	b.wait("Orders")
	b.hears(t, a, func(m *presence.Message) bool { return len(m.Logs) == 1 && len(m.Services) == 1 })
	b.listened()
	if b.pull(t.Context()); b.proved > 0 || a.to("Orders") != "" {
		t.Errorf("a log that came to its owner 61 s ago goes to %q", a.to("Orders"))
	}
}

// TestSlowHandOverKeepsItsMove: a log whose fold takes eleven seconds was moved all the same, and
// stays. One that is lost again, or never claimed, counts as failed.
func TestSlowHandOverKeepsItsMove(t *testing.T) {
	b := processes(t, "b")[0]
	for _, c := range []struct {
		name   string
		ago    time.Duration
		states []Table // one after the other
		moved  bool
		failed bool
	}{
		{"slow", 11 * time.Second, []Table{{Waiting: true}, {Owned: true}}, true, false},
		{"lost again", 20 * time.Second, []Table{{Owned: true}, {Waiting: true}}, false, true},
		{"lost after a while", 2 * time.Minute, []Table{{Owned: true}, {Waiting: true}}, false, false},
		{"never claimed", 2 * time.Minute, []Table{{Waiting: true}}, false, true},
	} {
		b.pulled["X"] = pull{from: "a", at: time.Now().Add(-c.ago)}
		delete(b.failed, "X")
		for _, s := range c.states {
			b.set(s, []string{"X"})
			b.review(time.Now())
		}
		if _, failed := b.failed["X"]; failed != c.failed {
			t.Errorf("%s: failed %v, want %v", c.name, failed, c.failed)
		}
		if m := b.say(); c.moved && (len(m.Logs) != 1 || m.Logs[0].Moved < 0) {
			t.Errorf("%s: it says that the log was not moved: %+v", c.name, m.Logs)
		}
	}
}
