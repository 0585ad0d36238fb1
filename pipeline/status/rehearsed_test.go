package status

import (
	"strings"
	"testing"
	"time"
)

func TestNewestRehearsalOfATargetIsKept(t *testing.T) {
	var all Rehearsals
	at := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	all.Note(Rehearsed{Target: "orders", At: at.Add(time.Hour), WriteStop: 41})
	all.Note(Rehearsed{Target: "orders", At: at, Refusals: []string{"late"}}) // it was told later
	all.Note(Rehearsed{Target: "carts", At: at, Refusals: []string{"a gap", "a letter"}})
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
		all.Note(Rehearsed{Target: strings.Repeat("x", i), At: at})
	}
	if n := len(all.All()); n != mostRehearsals {
		t.Errorf("%d targets are kept", n)
	}
}
