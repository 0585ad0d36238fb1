package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// TestDifferenceIsSeenTwiceInARow: with nothing in between that changed item or row.
func TestDifferenceIsSeenTwiceInARow(t *testing.T) {
	for name, c := range map[string]struct {
		during map[int]func(p *paper) // by number of the settling
		want   int                    // settlings
		pauses int
	}{
		"nothing happens":             {nil, 2, 0},
		"the item changes":            {map[int]func(*paper){1: func(p *paper) { p.items[0]["a"] = `"x":{"S":"3"}` }}, 3, 1},
		"the item changes in between": {map[int]func(*paper){2: func(p *paper) { p.items[0]["a"] = `"x":{"S":"3"}` }}, 4, 1},
		"it changes, and back": {map[int]func(*paper){2: func(p *paper) { p.items[0]["a"] = `"x":{"S":"3"}` },
			3: func(p *paper) { p.items[0]["a"] = `"x":{"S":"1"}` }}, 5, 2},
		"the row is written": {map[int]func(*paper){2: func(p *paper) {
			p.rows["p"] = "d:a/x@late=2; live q@late=S/a"
		}}, 3, 0},
		"another row differs": {map[int]func(*paper){2: func(p *paper) { p.rows["q"] = "d:a/x@new=2" }}, 2, 0},
	} {
		p := newPaper(t, sharedRows)
		p.items[0]["a"], p.rows["p"] = `"x":{"S":"1"}`, "d:a/x@new=2; live q@new=S/a"
		n := 0
		p.during = func() {
			if n++; c.during[n] != nil {
				c.during[n](p)
			}
		}
		if got, _ := p.verdict(0, "a", "q"); got != "different value p" || n != c.want || p.pauses != c.pauses {
			t.Errorf("%s: %s after %d settlings and %d pauses", name, got, n, p.pauses)
		}
	}
}

// TestProofCoversEveryReading: of all tables, with a margin.
func TestProofCoversEveryReading(t *testing.T) {
	p := newPaper(t, sharedRows, strings.Replace(sharedRows, `row: "{p}"`, `row: "t{p}"`, 1))
	for range 10 { // tables are read in any order
		for _, late := range []string{"S", "T"} {
			p.late, p.proven = map[string]change.Millis{late: 7}, nil
			all, err := p.settler().Settle(t.Context(),
				[]Candidate{{Table: 0, Key: keyOf("p", "a")}, {Table: 1, Key: keyOf("p", "a")}})
			if err != nil || len(all) != 2 || !slices.Equal(p.proven, []change.Millis{noon + 7 + proofMargin}) {
				t.Fatalf("%s is late: %v, %v", late, p.proven, err)
			}
		}
	}
}

// TestBusyItemSaysWhatWasSought: what its candidate has named, for a repair.
func TestBusyItemSaysWhatWasSought(t *testing.T) {
	for row, busy := range map[string]bool{"d:a/x@new=2; live q@new=S/a": true, "d:a/x@new=2; live q@future=S/a": false} {
		p := newPaper(t, sharedRows, strings.Replace(sharedRows, `row: "{p}"`, `row: "t{p}"`, 1))
		n := 0
		p.during = func() { n++; p.items[1]["a"] = fmt.Sprintf(`"x":{"S":"%d"}`, n) }
		p.rows["tp"] = strings.Replace(row, "S/a", "T/a", 1)
		c := Candidate{Table: 1, Key: keyOf("p", "a"), Kinds: []Kind{Value}, Rows: [][]byte{[]byte("tp"), []byte("x")}}
		all, err := p.settler().Settle(t.Context(), []Candidate{c})
		want := Verdict{Table: 1, Key: c.Key, Status: Unproven, Why: busyItem, Kinds: c.Kinds, Rows: c.Rows, Busy: busy}
		if d := cmp.Diff([]Verdict{want}, all); err != nil || d != "" || n != settlings {
			t.Errorf("%s: %v, %s", row, err, d)
		}
	}
	for _, there := range []bool{true, false} { // when its rows were looked at last
		p, put := newPaper(t, sharedRows), !there
		p.during = func() {
			if put = !put; put {
				p.items[0]["a"] = `"x":{"S":"1"}`
			} else {
				delete(p.items[0], "a")
			}
		}
		if !there {
			p.items[0]["a"] = `"x":{"S":"1"}`
		}
		if got, v := p.verdict(0, "a"); got != "unproven" || v.Absent == there {
			t.Errorf("%s: %+v", got, v)
		}
	}
}

// TestPauseIsForItemsThatChange: one of several is enough.
func TestPauseIsForItemsThatChange(t *testing.T) {
	for _, hot := range []string{"a", "b", ""} {
		p := newPaper(t, sharedRows)
		p.items[0]["a"], p.items[0]["b"] = `"x":{"S":"1"}`, `"x":{"S":"1"}`
		n := 0
		p.during = func() {
			if n++; hot != "" && n == 1 {
				p.items[0][hot] = `"x":{"S":"2"}`
			}
		}
		all, err := p.settler().Settle(t.Context(), []Candidate{{Key: keyOf("p", "a")}, {Key: keyOf("p", "b")}})
		if want := map[bool]int{true: 1}[hot != ""]; err != nil || p.pauses != want || all[0].Key != keyOf("p", "a") ||
			all[1].Key != keyOf("p", "b") {
			t.Errorf("%q changes: %d pauses, %+v, %v", hot, p.pauses, all, err)
		}
	}
}

// paperChange is a change of an item in the log.
type paperChange struct {
	version, created change.Millis
	rest             string // attributes after it; "": removed; "?": not in the log
}

// logs returns Settler.Logged of a log of changes of an item, which are yielded as often as they
// are listed.
func (p *paper) logs(table string, changes ...paperChange) func(
	context.Context, string, change.Millis, [][]byte, func(int, *change.Change) error,
) error {
	return func(
		_ context.Context, of string, since change.Millis, keys [][]byte, f func(int, *change.Change) error,
	) error {
		if of != table || since != noon-proofMargin || len(keys) != 1 {
			return fmt.Errorf("the log of %s is read for %d items since %d", of, len(keys), since)
		}
		for _, x := range changes {
			c := &change.Change{Op: change.Modify, Version: change.Version(x.version), Created: x.created, Keys: keys[0]}
			switch x.rest {
			case "":
				c.Op = change.Remove
			case "?":
			default:
				c.New = []byte(strings.TrimSuffix(string(keys[0]), "}") + "," + x.rest + "}")
			}
			if err := f(0, c); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestBusyItemOnPaper: each row is compared with the change that its guard names, or with the
// newest one that is proven to be applied, whichever is newer.
func TestBusyItemOnPaper(t *testing.T) {
	const (
		v1, v2, v3 = noon - 300, noon - 200, noon + 100 // v3 is created after the proof
		atHere     = `"x":{"S":"1"},"place":{"S":"here"}`
		atThere    = `"x":{"S":"2"},"place":{"S":"there"}`
		atNext     = `"x":{"S":"3"},"place":{"S":"next"}`
	)
	row := func(live change.Millis, x int) string {
		return fmt.Sprintf("d:p/a/x@%d=%d; live q@%d=S/a", live, x, live)
	}
	first, moved := paperChange{v1, v1, atHere}, paperChange{v2, v2, atThere}
	away, next := paperChange{v2, v2, ""}, paperChange{v3, v3, atNext}
	tombstone := func(v change.Millis) string { return fmt.Sprintf("dead q@%d=S/a", v) }
	here := []string{"here"}
	type logOf = []paperChange
	type rowsOf = map[string]string
	for name, c := range map[string]struct {
		log  logOf
		rows rowsOf
		look []string
		want string // "": equal by the log
		kept int
	}{
		"applied":              {logOf{first}, rowsOf{"here": row(v1, 1)}, nil, "", 0},
		"created at the proof": {logOf{{v1, noon, atHere}}, rowsOf{"here": row(v1, 1)}, nil, "", 0},
		"created after it":     {logOf{{v1, noon + 1, atHere}}, rowsOf{"here": row(v1, 1)}, nil, "known to be applied", 0},
		"wrong":                {logOf{first}, rowsOf{"here": row(v1, 2)}, nil, "[value]", 0},
		"missing":              {logOf{first}, nil, nil, "[missing_row]", 0},
		"moved":                {logOf{first, moved}, rowsOf{"there": row(v2, 2), "here": tombstone(v2)}, here, "", 0},
		"not left":             {logOf{first, moved}, rowsOf{"there": row(v2, 2), "here": row(v1, 1)}, here, "stale", 0},
		"not left, walked again": {logOf{first, moved, first}, rowsOf{"there": row(v2, 2), "here": row(v1, 1)}, here, "stale",
			0},
		"moved, walked again": {logOf{first, moved, first}, rowsOf{"there": row(v2, 2), "here": tombstone(v2)},
			here, "", 0},
		"moved, and missing": {logOf{first, moved}, rowsOf{"here": tombstone(v2)}, here, "[missing_row]", 0},
		"removed":            {logOf{first, away}, rowsOf{"here": tombstone(v2)}, here, "", 0},
		"without its attributes": {logOf{first, {v2, v2, "?"}}, rowsOf{"here": row(v2, 1)}, nil,
			"does not hold its attributes", 0},
		"without its attributes, not applied": {logOf{first, {v2, v2, "?"}}, rowsOf{"here": row(v1, 1)}, here,
			"does not hold its attributes", 0},
		"a newer change than proven": {logOf{first, next}, rowsOf{"here": tombstone(v3), "next": row(v3, 3)},
			here, "", 0},
		"a newer removal than proven": {logOf{first, {v3, v3, ""}}, rowsOf{"here": tombstone(v3)}, nil, "", 0},
		"a newer change, and wrong": {logOf{first, next}, rowsOf{"here": tombstone(v3), "next": row(v3, 1)},
			here, "[value]", 0},
		"a change that is not in the log": {logOf{first}, rowsOf{"here": row(v3, 1)}, nil, "no change with the version", 0},
		"expired":                         {logOf{first, away}, rowsOf{"here": row(v1, 1)}, here, "", 1},
	} {
		for range 5 { // rows are looked at in any order
			p := newPaper(t, movingRows)
			p.rows = c.rows
			n := 0
			p.during = func() { n++; p.items[0]["a"] = fmt.Sprintf(`"x":{"S":"%d"},"place":{"S":"next"}`, n) }
			s := p.settler()
			s.Logged = p.logs("S", c.log...)
			candidate := Candidate{Key: keyOf("p", "a"), Kinds: []Kind{Value}}
			for _, r := range c.look {
				candidate.Rows = append(candidate.Rows, []byte(r))
			}
			all, err := s.Settle(t.Context(), []Candidate{candidate})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			v := all[0]
			if v.Key != candidate.Key || (v.Status == EqualByLog) != (c.want == "") || v.Kept != c.kept ||
				!strings.Contains(v.Why, c.want) {
				t.Fatalf("%s: %+v", name, v)
			}
		}
	}
}

// TestBusyItemOfTheSecondTable: its log and its guards are not those of the first one's items.
func TestBusyItemOfTheSecondTable(t *testing.T) {
	for guard, want := range map[string]Status{"T/a": EqualByLog, "S/a": Unproven} {
		p := newPaper(t, sharedRows, strings.Replace(sharedRows, `row: "{p}"`, `row: "t{p}"`, 1))
		p.rows["tp"] = fmt.Sprintf("d:a/x@%d=7; live q@%d=%s", noon+1, noon+1, guard)
		n := 0
		p.during = func() { n++; p.items[1]["a"] = fmt.Sprintf(`"x":{"S":"%d"}`, n) }
		s := p.settler()
		s.Logged = p.logs("T", paperChange{noon, noon, `"x":{"S":"1"}`}, paperChange{noon + 1, noon + 1, `"x":{"S":"7"}`})
		all, err := s.Settle(t.Context(), []Candidate{{Table: 1, Key: keyOf("p", "a")}})
		if err != nil || all[0].Status != want || all[0].Table != 1 {
			t.Errorf("guard of %s: %+v, %v", guard, all, err)
		}
	}
}
