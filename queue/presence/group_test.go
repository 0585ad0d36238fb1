package presence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
	sandnats "github.com/tailrace-cdc/replicator/sandbox/nats"
)

// peer is a process of a group: what it says can be changed.
type peer struct {
	*Group
	conn *conn.Conn
	mu   sync.Mutex
	says Message
	stop func()
}

func join(t *testing.T, url, name string, asked func(Request) string) *peer {
	t.Helper()
	c, err := conn.Dial(t.Context(), conn.Options{URL: url, Name: name, AckTimeout: 10 * time.Second}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{conn: c}
	p.Group = New(Options{
		Subject: "tailrace-presence.test", Me: name, Every: 500 * time.Millisecond, Logger: zap.NewNop(), Asked: asked,
		Say: func() Message {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.says
		},
	}, c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.Close()
	})
	t.Cleanup(p.stop)
	return p
}

func (p *peer) say(m Message) {
	p.mu.Lock()
	p.says = m
	p.mu.Unlock()
	p.Announce()
}

func until(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !fact(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func server(t *testing.T) string {
	t.Helper()
	s, err := sandnats.Open(sandnats.Options{Addr: "127.0.0.1:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.URL()
}

// TestMembersHearOfEachOther: what each owns, in messages of several parts too, who owns a log now,
// and who is gone.
func TestMembersHearOfEachOther(t *testing.T) {
	url := server(t)
	a, b := join(t, url, "a.host", nil), join(t, url, "b.host", nil)
	var many []Log
	for i := range 2*logsPerPart + 1 {
		many = append(many, Log{Table: fmt.Sprint("T", i), Epoch: 1, Seq: uint64(i)})
	}
	a.say(Message{Build: "v1", Logs: many, Wanted: []string{"X", "Y"}})
	_, changed := b.Sight("T1000")
	<-changed
	until(t, "b hears of the last log", func() bool {
		s, _ := b.Sight("T1000")
		return s != nil && s.Member == "a.host" && s.Seq == 1000
	})
	members, _ := b.Members(time.Now())
	if len(members) != 1 || len(members[0].Logs) != len(many) || members[0].Build != "v1" ||
		len(members[0].Wanted) != 2 {
		t.Fatalf("%d members", len(members))
	}
	c := join(t, url, "c.host", nil)
	c.say(Message{Logs: []Log{{Table: "T1000", Epoch: 2, Seq: 1007}}})
	until(t, "the newer claim counts", func() bool { s, _ := b.Sight("T1000"); return s != nil && s.Member == "c.host" })
	a.say(Message{Logs: many}) // it has not noticed yet
	until(t, "a is heard again", func() bool {
		all, _ := b.Members(time.Now())
		return len(all) == 2 && all[0].Wanted == nil
	})
	if s, _ := b.Sight("T1000"); s == nil || s.Member != "c.host" {
		t.Errorf("a former owner took the log back: %+v", s)
	}
	_, changed = b.Sight("T1000")
	c.stop()
	<-changed
	until(t, "the member that has ended is not listed", func() bool { return !b.Hears("c.host") })
}

// TestOwnerIsAskedForALog: it hands it over or says why not; one that does not answer has not
// agreed.
func TestOwnerIsAskedForALog(t *testing.T) {
	url := server(t)
	var got Request
	asked := func(r Request) string {
		got = r
		if r.Table == "Kept" {
			return "it is mine"
		}
		return ""
	}
	a, _ := join(t, url, "a", nil), join(t, url, "b.host", asked)
	until(t, "b is heard", func() bool { return a.Hears("b.host") })
	if err := a.Ask(t.Context(), "b.host", Request{Table: "Orders", Epoch: 3, Why: WhyLoad}); err != nil {
		t.Fatal(err)
	}
	if want := (Request{From: "a", Table: "Orders", Epoch: 3, Why: WhyLoad}); got != want {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
	if err := a.Ask(t.Context(), "b.host", Request{Table: "Kept"}); !errors.Is(err, ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	if err := a.Ask(t.Context(), "nobody", Request{Table: "Orders"}); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("nobody: %v", err)
	}
}

// TestStrangeMessagesAreIgnored: anybody may publish on the subject.
func TestStrangeMessagesAreIgnored(t *testing.T) {
	g := New(Options{Me: "a", Logger: zap.NewNop()}, &conn.Conn{})
	for _, data := range []string{
		"", "{}", `{"member":"x"}`, `{"member":"x","parts":1,"part":1}`, `{"member":"x","parts":-1}`,
		`{"member":"a","parts":1,"number":5}`,
	} {
		g.hear([]byte(data))
	}
	if all, _ := g.Members(time.Now()); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestEachPartFitsIntoAMessage, of a process that owns or can take thousands of tables with long
// names.
func TestEachPartFitsIntoAMessage(t *testing.T) {
	m := Message{Member: "a"}
	for i := range 5000 {
		name := fmt.Sprint(strings.Repeat("T", 250), i)
		m.Wanted, m.Logs = append(m.Wanted, name), append(m.Logs, Log{Table: name})
	}
	wanted, logs := 0, 0
	for _, p := range m.split() {
		wanted, logs = wanted+len(p.Wanted), logs+len(p.Logs)
		if data, err := json.Marshal(p); err != nil || len(data) > 1<<20 {
			t.Errorf("a message of %d bytes: no server takes more than %d, and the process is never heard", len(data), 1<<20)
		}
	}
	if wanted != 5000 || logs != 5000 {
		t.Errorf("%d wanted tables and %d logs in all parts", wanted, logs)
	}
}

// TestDuplicatedPartIsNotTheWholeMessage: a part that arrives twice must not stand for the one that
// is missing.
func TestDuplicatedPartIsNotTheWholeMessage(t *testing.T) {
	url := server(t)
	b := join(t, url, "b", nil)
	send := func(n uint64, part int, tables ...string) {
		m := Message{Member: "a", Number: n, Part: part, Parts: 2}
		for _, table := range tables {
			m.Logs = append(m.Logs, Log{Table: table, Epoch: 1, Seq: n})
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.hear(data)
	}
	send(1, 0, "x")
	send(1, 1, "y")
	if s, _ := b.Sight("y"); s == nil {
		t.Fatal("not heard")
	}
	send(2, 0, "x")
	send(2, 0, "x")
	if s, _ := b.Sight("y"); s == nil {
		t.Error("half of a message, heard twice, says that the owner has given up the logs of the other half")
	}
}

// TestOvertakenMessageIsIgnored: what a member said before is not what it says now.
func TestOvertakenMessageIsIgnored(t *testing.T) {
	b := join(t, server(t), "b", nil)
	send := func(n uint64, part, parts int, tables ...string) {
		m := Message{Member: "a", Number: n, Part: part, Parts: parts}
		for _, table := range tables {
			m.Logs = append(m.Logs, Log{Table: table, Epoch: 1, Seq: n})
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b.hear(data)
	}
	send(5, 0, 1, "x")
	send(4, 0, 1, "y")
	if s, _ := b.Sight("y"); s != nil {
		t.Errorf("an older message counts: %+v", s)
	}
	send(7, 0, 2, "x")
	send(6, 0, 1)
	send(7, 1, 2, "z")
	for _, table := range []string{"x", "z"} {
		if s, _ := b.Sight(table); s == nil || s.Seq != 7 {
			t.Errorf("a message was dropped for one that it has overtaken: %s %+v", table, s)
		}
	}
}

// TestMemberThatIsNotHeardIsForgotten: its name is never used again, as it is another one at each
// start.
func TestMemberThatIsNotHeardIsForgotten(t *testing.T) {
	b := join(t, server(t), "b", nil)
	b.hear([]byte(`{"member":"a","parts":1,"number":1,"logs":[{"table":"x","epoch":1,"seq":1}]}`))
	_, changed := b.Sight("x")
	b.forget(time.Now().Add(forgetAfter / 2))
	if s, _ := b.Sight("x"); s == nil {
		t.Fatal("forgotten after half of the time")
	}
	b.forget(time.Now().Add(2 * forgetAfter))
	select {
	case <-changed:
	default:
		t.Error("who waits for its log is not woken")
	}
	if s, _ := b.Sight("x"); s != nil || len(b.members)+len(b.owners) > 0 {
		t.Errorf("not forgotten: %+v", s)
	}
}
