package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWhoCouldNotReadTheFormat(t *testing.T) {
	a, old := Member{Owner: "a", Build: "1.3.0", Reads: 5}, Member{Owner: "old", Build: "1.2.0", Reads: 4}
	for what, c := range map[string]struct {
		members []Member
		claims  []Claim
		older   string // a part of the text; empty: there is none
	}{
		"nobody, no logs":                   {},
		"a member and its log":              {members: []Member{a}, claims: []Claim{{Table: "T", Owner: "a", Reads: 5}}},
		"a member upgraded since its claim": {members: []Member{a}, claims: []Claim{{Table: "T", Owner: "a", Reads: 4}}},
		"a released log":                    {claims: []Claim{{Table: "T"}}},
		"an older stand-by":                 {members: []Member{a, old}, older: "old, version 1.2.0, reads up to format 4"},
		"an older owner that is heard": {
			members: []Member{old}, claims: []Claim{{Table: "T", Owner: "old"}}, older: "1.2.0",
		},
		"an older owner that is not heard": {
			claims: []Claim{{Table: "T", Owner: "x", Reads: 4}}, older: "T, x, reads up to format 4",
		},
		"another older owner": {
			members: []Member{a}, claims: []Claim{{Table: "T", Owner: "x", Reads: 4}}, older: "T, x, reads up to format 4",
		},
	} {
		d := &Disagreement{}
		if err := Agreed(c.members, c.claims, 5); err != nil && !errors.As(err, &d) {
			t.Fatal(err)
		}
		if older := strings.Join(d.Older, "\n"); (older == "") != (c.older == "") || !strings.Contains(older, c.older) {
			t.Errorf("%s: older %q", what, older)
		}
	}
}

// TestFormatIsRaisedAfterADayOfAgreement: whatever breaks the day begins it anew.
func TestFormatIsRaisedAfterADayOfAgreement(t *testing.T) {
	members := []Member{{Owner: "a", Reads: 5}, {Owner: "b", Reads: 5}}
	claims := []Claim{{Table: "T", Owner: "a", Reads: 5}, {Table: "U", Owner: "b", Reads: 5}}
	const middle = 12 * time.Hour
	for what, c := range map[string]struct {
		members []Member
		claims  []Claim
		breaks  bool
	}{
		"nothing":                       {members, claims, false},
		"a log is released":             {members, []Claim{{Table: "T"}, claims[1]}, false},
		"a new replicator":              {append([]Member{{Owner: "c", Reads: 5}}, members...), claims, false},
		"nobody is heard":               {nil, claims, true},
		"an owner is not heard":         {members[:1], claims, false}, // its claim says what it reads
		"an older replicator comes":     {append([]Member{{Owner: "old", Reads: 4}}, members...), claims, true},
		"an older replicator claims":    {members, []Claim{{Table: "T", Owner: "old", Reads: 4}, claims[1]}, true},
		"an older replicator has a log": {members, append([]Claim{{Table: "V", Owner: "x", Reads: 4}}, claims...), true},
	} {
		r := NewRollout(5)
		start := time.Unix(1_700_000_000, 0)
		raised := time.Duration(0)
		for at := time.Duration(0); at <= 40*time.Hour && raised == 0; at += time.Minute {
			m, cl := members, claims
			if at == middle {
				m, cl = c.members, c.claims
			}
			if r.Observe(start.Add(at), m, cl) {
				raised = at
			}
		}
		want := Patience
		if c.breaks {
			want += middle + time.Minute
		}
		if raised != want {
			t.Errorf("%s: raised after %v, want %v", what, raised, want)
		}
	}
}

// TestTimeThatNobodyObservedDoesNotCount: a machine that slept knows nothing of an older replicator
// that ran meanwhile.
func TestTimeThatNobodyObservedDoesNotCount(t *testing.T) {
	members := []Member{{Owner: "a", Reads: 5}}
	r, start := NewRollout(5), time.Unix(1_700_000_000, 0)
	for _, step := range []time.Duration{0, Patience, Patience + longestBreak, 2*Patience + longestBreak + 1} {
		if r.Observe(start.Add(step), members, nil) {
			t.Errorf("raised after %v", step)
		}
	}
	if r.Observe(start, members, nil) || !r.Since().Equal(start) {
		t.Errorf("a clock that was set back counts since %v", r.Since())
	}
}
