package status

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNewestRehearsalOfATargetIsKept(t *testing.T) {
	var all Rehearsals
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	note := func(r Rehearsed) {
		if err := all.Note(r, at); err != nil {
			t.Error(err)
		}
	}
	note(Rehearsed{Target: "orders", At: at.Add(time.Hour), WriteStop: 41})
	note(Rehearsed{Target: "orders", At: at, Refusals: []string{"late"}}) // its message came later
	note(Rehearsed{Target: "carts", At: at, Refusals: []string{"a gap", "a letter"}})
	got := all.All()
	if len(got) != 2 || got[0].Target != "carts" || got[1].WriteStop != 41 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{
		"Cutover of carts rehearsed 2026-11-27 03:00 UTC: it would be refused: a gap; a letter",
		"Cutover of orders rehearsed 2026-11-27 04:00 UTC: 41 s of write stop expected, nothing refuses",
	} {
		if text := got[i].Sentence(); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	for i := range 2 * mostRehearsals {
		note(Rehearsed{Target: strconv.Itoa(i), At: at})
	}
	if n := len(all.All()); n != mostRehearsals {
		t.Errorf("%d targets are kept", n)
	}
}

// Whoever may publish to NATS may publish this: it must not grow memory, metrics or the page.
func TestRehearsalOutOfBoundsIsNotKept(t *testing.T) {
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	steps := func(n int, seconds float64) map[string]float64 {
		m := map[string]float64{}
		for i := range n {
			m[strconv.Itoa(i)] = seconds
		}
		return m
	}
	long := strings.Repeat("x", longestText+1)
	for name, r := range map[string]Rehearsed{
		"no target":            {At: at},
		"a long target":        {Target: long, At: at},
		"a time in the future": {Target: "t", At: at.Add(2 * rehearsalSkew)},
		"many refusals":        {Target: "t", At: at, Refusals: make([]string, mostRefusals+1)},
		"a long refusal":       {Target: "t", At: at, Refusals: []string{long}},
		"many steps":           {Target: "t", At: at, Steps: steps(mostSteps+1, 1)},
		"a negative step":      {Target: "t", At: at, Steps: steps(1, -1)},
		"an endless step":      {Target: "t", At: at, Steps: steps(1, 1e300)},
		"a negative stop":      {Target: "t", At: at, WriteStop: -1},
		"an endless stop":      {Target: "t", At: at, WriteStop: 1e300},
	} {
		var all Rehearsals
		if err := all.Note(r, at); err == nil || len(all.All()) != 0 {
			t.Errorf("%s: %v, %d are kept", name, err, len(all.All()))
		}
	}
	refused := Rehearsed{Target: "t", At: at}
	for range 3 * mostRefusals {
		refused.Refusals = append(refused.Refusals, long)
	}
	var all Rehearsals
	if err := all.Note(refused.Cut(), at); err != nil {
		t.Fatal(err)
	}
	got := all.All()[0].Refusals
	if len(got) != mostRefusals || got[mostRefusals-1] != "33 further reasons" {
		t.Errorf("%d refusals, the last is %q", len(got), got[len(got)-1])
	}
}
