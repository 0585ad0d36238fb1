package protocol

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestAlive: Rule 14. An owner counts as alive up to SilentAfter, a halted table's process for the
// pause between two tries more, and a process that reports the table always.
func TestAlive(t *testing.T) {
	const ttl, retry, now = 10 * time.Second, 30 * time.Second, change.Millis(1_000_000)
	ago := func(d time.Duration) change.Millis { return now - change.Millis(d.Milliseconds()) }
	halt := func(at change.Millis) map[string]*checkpoint.Halt {
		return map[string]*checkpoint.Halt{checkpoint.SinkPipeline: {Sink: checkpoint.SinkPipeline, At: at}}
	}
	owned := func(seen change.Millis) *checkpoint.State {
		s := checkpoint.NewState()
		s.Format, s.Owner, s.Date = checkpoint.Format, "a", seen
		return s
	}
	released := func(seen change.Millis) *checkpoint.State {
		s := owned(seen)
		s.Released = true
		return s
	}
	for _, c := range []struct {
		what  string
		state func() *checkpoint.State
		extra func(*Owner)
		want  Life
	}{
		{"an empty log", checkpoint.NewState, nil, LifeNone},
		{"claimed, and nothing else stored", func() *checkpoint.State { return owned(0) }, nil, LifeSilent},
		{"a beat just now", func() *checkpoint.State { return owned(now) }, nil, LifeSeen},
		{"a beat from a clock ahead of this one", func() *checkpoint.State { return owned(now + 5000) }, nil, LifeSeen},
		{"three claims ago", func() *checkpoint.State { return owned(ago(3 * ttl)) }, nil, LifeSeen},
		{"longer than three claims ago", func() *checkpoint.State { return owned(ago(3*ttl) - 1) }, nil, LifeSilent},
		{"released", func() *checkpoint.State { return released(now) }, nil, LifeNone},
		{"silent, and a process reports the table", func() *checkpoint.State { return owned(ago(time.Hour)) },
			func(o *Owner) { o.Carried = true }, LifeSeen},
		{"released, and a process reports the table", func() *checkpoint.State { return released(ago(time.Hour)) },
			func(o *Owner) { o.Carried = true }, LifeSeen},
		{"a beat just now, and the store was closed", func() *checkpoint.State { return owned(now) },
			func(o *Owner) { o.Closed = true }, LifeNone},
		{"no beat fits into the log, and a sink has halted since", func() *checkpoint.State {
			s := owned(ago(time.Hour))
			s.Halts = map[string]*checkpoint.Halt{"bigtable": {Sink: "bigtable", At: ago(ttl)}}
			return s
		}, nil, LifeSeen},
		{"halted and released, before the next try", func() *checkpoint.State {
			s := released(ago(time.Hour))
			s.Halts = halt(ago(retry + 3*ttl))
			return s
		}, nil, LifeRetries},
		{"halted and released, and no try followed", func() *checkpoint.State {
			s := released(ago(time.Hour))
			s.Halts = halt(ago(retry+3*ttl) - 1)
			return s
		}, nil, LifeNone},
		{"halted by another process, and claimed since", func() *checkpoint.State {
			s := owned(ago(3*ttl) - 1)
			s.Halts = halt(ago(time.Hour))
			return s
		}, nil, LifeSilent},
	} {
		o := OwnerOf(c.state())
		if c.extra != nil {
			c.extra(&o)
		}
		got := Alive(o, o.Silence(now), ttl, retry)
		if got != c.want || got.Away() != (c.want == LifeNone || c.want == LifeSilent) {
			t.Errorf("%s: %s, away %t, want %s", c.what, got, got.Away(), c.want)
		}
	}
	if TakeoverPatience(ttl) <= SilentAfter(ttl)+retry {
		t.Errorf("a command waits for %s: no other replicator can start until then", TakeoverPatience(ttl))
	}
}

// TestEntriesOfAnOwnerAreSignsOfLife, Rule 13: whatever a clock shows, an owner from which an entry
// came is silent no longer than since then. Entries of commands are none.
func TestEntriesOfAnOwnerAreSignsOfLife(t *testing.T) {
	const now = change.Millis(10_000_000) // one answer with a wrong time; it stands still, unlike this process's clock
	at := time.Unix(1, 0)
	s := &checkpoint.State{Owner: "a", Chain: checkpoint.Chain{Epoch: 1, Format: checkpoint.Format}, Date: 1}
	old := OwnerOf(s).Silence(now)
	var w OwnerWatch
	look := func(what string, want time.Duration) {
		t.Helper()
		if got := w.Silence(s, now, at); got != want {
			t.Errorf("%s: silent for %s, want %s", what, got, want)
		}
	}
	look("the first look", old)
	s.Seq, s.Paused = s.Seq+1, true
	look("an entry of a command", old)
	at = at.Add(time.Second)
	s.Date = 2
	look("a beat", 0)
	at = at.Add(time.Minute)
	look("a minute later", time.Minute)
	s.Halts = map[string]*checkpoint.Halt{"bigtable": {Sink: "bigtable", At: 3}}
	look("a halt", 0)
	at = at.Add(time.Minute)
	s.Halts = nil
	look("an operator ends the halt", time.Minute)
	s.Epoch++
	look("a claim", 0)
	at = at.Add(time.Minute)
	s.Date = now + 1000
	look("a beat ahead", 0)
	at = at.Add(time.Minute)
	look("a minute later, and before the time of the beat", 0)
}
