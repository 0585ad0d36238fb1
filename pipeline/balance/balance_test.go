package balance

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// group draws members with logs, each of which every member can take.
func group(t *rapid.T) []Member {
	var members []Member
	wanted, n := map[string]bool{}, rapid.IntRange(1, 5).Draw(t, "members")
	for i := range n {
		m := Member{Name: fmt.Sprint("m", i), Moved: -1}
		for j := range rapid.IntRange(0, 12).Draw(t, "logs") {
			l := Log{Table: fmt.Sprintf("t%d-%d", i, j), Moved: -1, Rate: float64(rapid.IntRange(0, 2000).Draw(t, "rate"))}
			m.Logs = append(m.Logs, l)
			wanted[l.Table] = true
		}
		members = append(members, m)
	}
	for i := range members {
		members[i].Wanted = wanted
	}
	return members
}

func largest(members []Member) (most float64) {
	for i := range members {
		most = max(most, members[i].Load())
	}
	return most
}

// apply makes a move.
func apply(members []Member, m Move) {
	var log Log
	for i := range members {
		for j, l := range members[i].Logs {
			if l.Table == m.Table && members[i].Name == m.From {
				log = l
				members[i].Logs = append(members[i].Logs[:j:j], members[i].Logs[j+1:]...)
				break
			}
		}
	}
	for i := range members {
		if members[i].Name == m.To {
			members[i].Logs = append(members[i].Logs, log)
		}
	}
}

// TestMovesEndInAFairShare: no move makes the larger load larger, they end, and at the end no log
// could be moved whose move would still be worth it.
func TestMovesEndInAFairShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := group(t)
		logs := 0
		for i := range members {
			logs += len(members[i].Logs)
		}
		moves := 0
		for {
			m, ok := NextMove(members)
			if !ok {
				break
			}
			before := largest(members)
			apply(members, m)
			if after := largest(members); after > before {
				t.Fatalf("move %+v raises the largest load from %.0f to %.0f", m, before, after)
			}
			if moves++; moves > 3*logs+3 {
				t.Fatalf("%d moves of %d logs, and no end", moves, logs)
			}
		}
	})
}

// TestEqualLogsAreDividedEvenly: within one log of each other, whatever was before.
func TestEqualLogsAreDividedEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, logs := rapid.IntRange(2, 5).Draw(t, "members"), rapid.IntRange(0, 40).Draw(t, "logs")
		members, wanted := make([]Member, n), map[string]bool{}
		for i := range members {
			members[i] = Member{Name: fmt.Sprint("m", i), Moved: -1, Wanted: wanted}
		}
		for j := range logs {
			l := Log{Table: fmt.Sprint("t", j), Moved: -1, Rate: 100}
			wanted[l.Table] = true
			m := &members[rapid.IntRange(0, n-1).Draw(t, "owner")]
			m.Logs = append(m.Logs, l)
		}
		for range 2 * (logs + 1) {
			if m, ok := NextMove(members); ok {
				apply(members, m)
			}
		}
		mean := float64(logs) / float64(n)
		for i := range members {
			if have := float64(len(members[i].Logs)); have > max(mean*loadThreshold, mean+1)+0.01 {
				t.Errorf("%s has %.0f of %d logs of %d members", members[i].Name, have, logs, n)
			}
		}
	})
}

// TestMoveWaits: after a move in the group, for a log that was moved, for a member that is unfit or
// cannot take it, and where it gains little.
func TestMoveWaits(t *testing.T) {
	all := map[string]bool{"x": true, "y": true}
	for _, c := range []struct {
		name string
		edit func(from, to *Member)
		ok   bool
	}{
		{"two logs here, none there", func(_, _ *Member) {}, true},
		{"moved 4 s ago", func(_, to *Member) { to.Moved = 4 * time.Second }, false},
		{"moved 5 s ago", func(_, to *Member) { to.Moved = 5 * time.Second }, true},
		{"both logs were moved", func(from, _ *Member) {
			from.Logs[0].Moved, from.Logs[1].Moved = 9*time.Minute, time.Minute
		}, false},
		{"one was moved long ago", func(from, _ *Member) {
			from.Logs[0].Moved, from.Logs[1].Moved = 10*time.Minute, time.Minute
		}, true},
		{"the other one ends", func(_, to *Member) { to.Unfit = true }, false},
		{"the other one cannot take them", func(_, to *Member) { to.Wanted = nil }, false},
		{"one log", func(from, _ *Member) { from.Logs = from.Logs[:1] }, false},
		{"one large log", func(from, _ *Member) { from.Logs[0].Rate = 10000 }, false},
	} {
		from := Member{
			Name:  "a",
			Moved: -1,
			Logs:  []Log{{Table: "x", Rate: 100, Moved: -1}, {Table: "y", Rate: 90, Moved: -1}},
		}
		to := Member{Name: "b", Moved: -1, Wanted: all}
		c.edit(&from, &to)
		if m, ok := NextMove([]Member{from, to}); ok != c.ok {
			t.Errorf("%s: %+v, %v, want %v", c.name, m, ok, c.ok)
		}
	}
}

// TestMoveIsWorthItsPause: the one with more than 1.2 times the mean gives a log, if that lowers
// the larger load by a twentieth of the mean or more.
func TestMoveIsWorthItsPause(t *testing.T) {
	for _, c := range []struct {
		name                string
		large, small, other float64 // loads of the two logs of one member, and of the only log of the other one
		ok                  bool
	}{
		{"1.25 times the mean", 1000, 250, 750, true},
		{"1.2 times the mean", 1000, 200, 800, false},
		{"1.15 times the mean", 1000, 150, 850, false},
		{"it gains 6 percent", 1190, 60, 750, true},
		{"it gains 4 percent", 1210, 40, 750, false},
	} {
		log := func(name string, load float64) Log { return Log{Table: name, Rate: load - logBase, Moved: -1} }
		m, ok := NextMove([]Member{
			{Name: "a", Moved: -1, Logs: []Log{log("x", c.large), log("y", c.small)}},
			{Name: "b", Moved: -1, Logs: []Log{log("z", c.other)}, Wanted: map[string]bool{"x": true, "y": true}},
		})
		if ok != c.ok || ok && m.Table != "y" {
			t.Errorf("%s: %+v, %v, want %v", c.name, m, ok, c.ok)
		}
	}
}

// TestLogsOfALeavingMemberAreSpread over those that can take them, the largest first.
func TestLogsOfALeavingMemberAreSpread(t *testing.T) {
	wanted := map[string]bool{"big": true, "s1": true, "s2": true, "s3": true}
	members := []Member{
		{Name: "a", Unfit: true, Logs: []Log{{Table: "s1", Rate: 10}, {Table: "s2", Rate: 10}, {Table: "s3", Rate: 10},
			{Table: "big", Rate: 40}, {Table: "alien"}}},
		{Name: "b", Wanted: wanted}, {Name: "c", Wanted: wanted}, {Name: "d", Wanted: wanted, Unfit: true},
	}
	got := Successors("a", members)
	if got["big"] != "b" || got["s1"] != "c" || got["s2"] != "c" || got["s3"] == "" || got["alien"] != "" {
		t.Errorf("%v", got)
	}
}

// TestEveryMemberDecidesTheSame about free logs, in whatever order it knows the members.
func TestEveryMemberDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, free := group(t), []string{"f1", "f2", "f3", "f4"}
		for i := range members {
			members[i].Wanted = map[string]bool{"f1": true, "f2": true, "f3": true, "f4": true}
		}
		want := fmt.Sprint(First(free, members))
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		if got := fmt.Sprint(First(free, members)); got != want {
			t.Errorf("%s and %s", want, got)
		}
	})
}
