package verify

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	agingRows = `
mapping: 1
families: {d: {max_versions: 1}, a: {max_versions: 1, max_age: 1h}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk, aged], to: "d:{s}/{attr}"}, {attr: aged, to: "a:{s}/aged"}]
`
	movingRows = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{place}"
  cells: [{attr: x, to: "d:{p}/{s}/x"}]
  on_ttl_expiry: keep
`
)

// TestVerdictOfARow: each kind of difference, and what is none.
func TestVerdictOfARow(t *testing.T) {
	const x, aged = `"x":{"S":"1"}`, `"aged":{"S":"1"}`
	for name, c := range map[string]struct {
		item string // attributes of S/a; "": there is none
		row  string // p
		want string
	}{
		"equal":               {x, "d:a/x@new=1; live q@new=S/a", "equal"},
		"no item, no row":     {"", "", "equal"},
		"a tombstone":         {"", "dead q@new=S/a", "equal"},
		"missing row":         {x, "", "different missing_row p"},
		"an empty row":        {x, "live q@new=S/a", "different missing_row p"},
		"missing cell":        {x, "d:b/x@new=1; live q@new=S/a", "different missing_cell p"},
		"another value":       {x, "d:a/x@new=2; live q@new=S/a", "different value p"},
		"extra cell":          {x, "d:a/x@new=1; d:a/y@new=1; live q@new=S/a", "different extra_cell p"},
		"another's cells":     {x, "d:a/x@new=1; d:b/y@new=1; live q@new=S/a", "equal"},
		"no guard":            {x, "d:a/x@new=1", "different no_guard p"},
		"no guard of it":      {x, "d:a/x@new=1; live q@new=S/b", "different no_guard p"},
		"only a tombstone":    {x, "d:a/x@new=1; dead q@new=S/a", "different no_guard p"},
		"no guard, and wrong": {x, "d:a/x@new=2", "different value p"},
		"stale":               {"", "live q@new=S/a", "different stale p"},
		"ghost":               {"", "d:a/x@new=1; dead q@new=S/a", "different extra_cell p"},
		"all of it":           {"", "d:a/x@new=1; live q@new=S/a", "different stale extra_cell p"},
		"newest guard":        {x, "d:a/x@new=1; live q@late=S/a", "equal"},
		"future":              {x, "d:a/x@new=1; live q@future=S/a", "different future p"},
		"future tombstone":    {x, "d:a/x@new=1; live q@new=S/a; dead q@future=S/a", "different future p"},
		"another's future":    {x, "d:a/x@new=1; live q@new=S/a; live r@future=S/b", "equal"},
		"aging":               {aged, "a:a/aged@new=1; live q@new=S/a", "equal"},
		"aged away":           {aged, "live q@old=S/a", "equal"},
		"not aged away":       {aged, "live q@new=S/a", "different missing_row p"},
		"aged, left over":     {x, "a:a/aged@old=1; d:a/x@new=1; live q@new=S/a", "equal"},
		"left over":           {x, "a:a/aged@new=1; d:a/x@new=1; live q@new=S/a", "different extra_cell p"},
	} {
		p := newPaper(t, agingRows)
		if c.item != "" {
			p.items[0]["a"] = c.item
		}
		if c.row != "" {
			p.rows["p"] = c.row
		}
		got, v := p.verdict(0, "a", "p")
		if got != c.want || v.Absent != (c.item == "") || (v.Future > 0) != strings.HasPrefix(name, "future") {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, v)
		}
		if reads := map[bool]int{true: 4, false: 2}[v.Status == Different]; p.reads != reads {
			t.Errorf("%s: read %d times", name, p.reads)
		}
	}
}

// TestVerdictOverSeveralRows: what is in the row that the item has, and in those that it has left.
func TestVerdictOverSeveralRows(t *testing.T) {
	const here = `"x":{"S":"1"},"place":{"S":"here"}`
	const equal = "d:p/a/x@new=1; live q@new=S/a"
	for name, c := range map[string]struct {
		item   string
		rows   map[string]string
		look   []string
		want   string
		future string
	}{
		"equal":          {here, map[string]string{"here": equal}, []string{"gone"}, "equal", ""},
		"a row after it": {here, map[string]string{"here": equal}, []string{"zero"}, "equal", ""},
		"its row named": {here, map[string]string{"here": "d:p/a/x@new=2; live q@new=S/a"}, []string{"here"},
			"different value here", ""},
		"left": {here, map[string]string{"here": equal, "there": "dead q@new=S/a"}, []string{"there"}, "equal", ""},
		"not left": {here, map[string]string{"here": equal, "there": "live q@new=S/a"}, []string{"there"},
			"different stale there", ""},
		"in rows that are not looked at": {here, map[string]string{"here": equal, "there": equal}, nil, "equal", ""},
		"futures": {here, map[string]string{"here": "d:p/a/x@new=1; live q@later=S/a", "there": "dead q@future=S/a"},
			[]string{"there"}, "different future here there", "later"},
		"futures, the other way around": {here, map[string]string{"here": "d:p/a/x@new=1; live q@future=S/a",
			"there": "dead q@later=S/a"}, []string{"there"}, "different future here there", "later"},

		"expired":                 {"", map[string]string{"there": equal}, []string{"there"}, "kept kept 1", ""},
		"expired, nothing to see": {"", map[string]string{"there": "live q@new=S/a"}, []string{"there"}, "kept", ""},
		"expired, and a foreign cell": {"", map[string]string{"there": "d:app@new=1; live q@new=S/a"}, []string{"there"},
			"kept", ""},
		"expired in two rows": {"", map[string]string{"here": equal, "there": equal}, []string{"here", "there"},
			"kept kept 2", ""},
		"expired, by a tombstone": {"", map[string]string{"there": "d:p/a/x@new=1; dead q@new=S/a"}, []string{"there"},
			"different extra_cell there", ""},
		"expired here and a ghost there": {"", map[string]string{"here": equal, "there": "d:p/a/x@new=1; dead q@new=S/a"},
			[]string{"here", "there"}, "different extra_cell there", ""},
		"expired, and in the future": {"", map[string]string{"there": "d:p/a/x@new=1; live q@future=S/a"}, []string{"there"},
			"different future there", "future"},
		"expired once, and back": {here, map[string]string{"here": equal, "there": equal}, []string{"there"},
			"different stale extra_cell there", ""},
		"expired once, and back with a ghost": {here, map[string]string{"here": equal, "there": equal,
			"where": "d:p/a/x@new=1; dead q@new=S/a"}, []string{"there", "where"},
			"different stale extra_cell there where", ""},
	} {
		p := newPaper(t, movingRows)
		p.rows = c.rows
		if c.item != "" {
			p.items[0]["a"] = c.item
		}
		got, v := p.verdict(0, "a", c.look...)
		if got != c.want || int64(v.Future) != int64(paperTimes[c.future]) {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, v)
		}
		for _, kind := range v.Kinds {
			if v.Status == Different && !slices.ContainsFunc(v.Cells, func(c CellDifference) bool { return c.Kind == kind }) {
				t.Errorf("%s: no %s in %+v", name, kind, v.Cells)
			}
		}
		for i := range v.Cells { // each kind in each row, once; the cells that are kept are none
			x, last := v.Cells[i], v.Cells[max(i-1, 0)]
			if i > 0 && x.Kind == last.Kind && string(x.Row) == string(last.Row) || v.Status == Kept && x.Kind != Stale {
				t.Errorf("%s: cells %+v", name, v.Cells)
			}
		}
	}
}

// TestCellsThatOutliveTheirItem: a history is no difference, whether the item is there or not.
func TestCellsThatOutliveTheirItem(t *testing.T) {
	p := newPaper(t, strings.Replace(agingRows, "d: {max_versions: 1}",
		"d: {max_versions: 3, history: true, removed: keep}", 1))
	p.rows["p"] = "d:a/x@new=1; live q@new=S/a"
	p.items[0]["a"] = `"aged":{"S":"1"}`
	p.rows["p"] += "; a:a/aged@new=1"
	if got, v := p.verdict(0, "a"); got != "equal" {
		t.Errorf("%s: %+v", got, v)
	}
}

// TestCellThatOtherItemsMayWriteIsUnproven: the mapping allows it, and who wrote last cannot be
// told.
func TestCellThatOtherItemsMayWriteIsUnproven(t *testing.T) {
	for row, want := range map[string]string{
		"d:x@new=1; live q@new=S/a1; live r@new=S/b1":                  "equal",
		"d:x@new=2; live q@new=S/a1; live r@new=S/b1":                  "unproven",
		"d:x@new=2; live q@new=S/a1; dead r@new=S/b1":                  "unproven",
		"d:x@new=2; live q@new=S/a1":                                   "different value p",
		"d:x@new=2; live q@new=S/a1; live r@new=none":                  "different value p",
		"d:x@new=2; live c@new=S/c1; live q@new=S/a1; live r@new=S/b1": "unproven",
		"d:x@new=2; live c@new=S/c1; live q@new=S/a1":                  "different value p",
		"d:x@new=2; live q@new=S/a1; live r@new=other:S/b1":            "different value p",
		"live q@new=S/a1; live r@new=S/b1":                             "different missing_row p",
		"d:1/y@new=2; d:x@new=1; live q@new=S/a1":                      "different value p",
	} {
		p := newPaper(t, `
mapping: 1
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- {name: one, match: {pk: "{p}", sk: "a{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}, {attr: y, to: "d:{s}/y"}]}
- {name: two, match: {pk: "{p}", sk: "b{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}], may_share_cells_with: [one]}
- {name: three, match: {pk: "{p}", sk: "c{s}"}, row: "{p}", cells: [{attr: z, to: "e:{s}"}]}
`)
		p.rows["p"] = row
		p.items[0]["a1"] = `"x":{"S":"1"}`
		if strings.Contains(row, "d:1/y") {
			p.items[0]["a1"] += `,"y":{"S":"1"}`
		}
		if got, v := p.verdict(0, "a1"); got != want || (v.Why == "") == (want == "unproven") {
			t.Errorf("%s: %s, want %s: %+v", row, got, want, v)
		}
	}
}

// TestItemsOfTheSecondTable: items of two tables with one key are two items.
func TestItemsOfTheSecondTable(t *testing.T) {
	second := strings.NewReplacer(`row: "{p}"`, `row: "t{p}"`).Replace(agingRows)
	p := newPaper(t, agingRows, second)
	p.items[0]["a"], p.items[1]["a"] = `"x":{"S":"1"}`, `"x":{"S":"2"}`
	p.rows["p"], p.rows["tp"] = "d:a/x@new=1; live q@new=S/a", "d:a/x@new=2; live q@new=T/a"
	for table := range 2 {
		if got, v := p.verdict(table, "a", "p", "tp"); got != "equal" || v.Table != table {
			t.Errorf("table %d: %s", table, got)
		}
	}
	p.rows["tp"] = "d:a/x@new=2; live q@new=S/a"
	if got, _ := p.verdict(1, "a"); got != "different no_guard tp" {
		t.Errorf("with the guard of the other table's item: %s", got)
	}
	p.rows["tp"] = "d:a/x@new=3; d:a/y@new=4; live q@future=T/a"
	_, v := p.verdict(1, "a")
	var got []string
	for _, c := range v.Cells {
		got = append(got, fmt.Sprint(c.Kind, " ", c.Rule, " ", string(c.Qualifier), " ", int64(c.Guard)))
	}
	want := []string{fmt.Sprint("future rule any  ", int64(paperTimes["future"])), "value rule any a/x 0",
		"extra_cell rule any a/y 0"}
	if d := cmp.Diff(want, got); d != "" || v.Table != 1 {
		t.Errorf("table %d: %s", v.Table, d)
	}
}

// TestItemThatTheMappingRefuses: its rows are not known.
func TestItemThatTheMappingRefuses(t *testing.T) {
	p := newPaper(t, movingRows)
	p.items[0]["a"] = `"x":{"S":"1"}`
	p.rows["there"] = "d:p/a/x@new=1; live q@future=S/a"
	if got, v := p.verdict(0, "a", "there"); v.Status != Refused || v.Why == "" {
		t.Errorf("%s: %+v", got, v)
	}
}

// TestCellsThatAgeWithTheirRow: a cell whose own time is past its age needs neither row nor guard.
func TestCellsThatAgeWithTheirRow(t *testing.T) {
	p := newPaper(t, `
mapping: 1
families: {c: {max_versions: 2, max_age: 1h}}
rules:
- name: comment
  match: {pk: "{p}", sk: "c{at:d}"}
  row: "{p}"
  cells: [{attr: x, to: "c:x", ts: "{at|s_ms}", cell_id: ts}]
`)
	p.items[0]["c1"], p.items[0]["c7000"] = `"x":{"S":"1"}`, `"x":{"S":"1"}`
	for sk, want := range map[string]string{"c1": "equal", "c7000": "different missing_row p"} {
		if got, _ := p.verdict(0, sk); got != want {
			t.Errorf("%s: %s", sk, got)
		}
	}
}

// TestColumnOfAnyItemIsNoExcuse: where the mapping does not let items share cells, a wrong one is a
// difference.
func TestColumnOfAnyItemIsNoExcuse(t *testing.T) {
	p := newPaper(t, strings.Replace(sharedRows, "d:{s}/{attr}", "d:{s}/{attr}/{type}", 1))
	p.items[0]["a"] = `"x":{"S":"1"}`
	p.rows["p"] = "d:a/x/S@new=2; live q@new=S/a; live r@new=S/b"
	if got, _ := p.verdict(0, "a"); got != "different value p" {
		t.Error(got)
	}
}

// TestSightingsThatDifferHaveOtherFingerprints: only the same sight twice decides that an item
// differs.
func TestSightingsThatDifferHaveOtherFingerprints(t *testing.T) {
	content := sha256.Sum256([]byte("x"))
	rows := func(keys ...string) (all [][]byte) {
		for _, key := range keys {
			all = append(all, []byte(key))
		}
		return all
	}
	var seen [][sha256.Size]byte
	for i, s := range []*sighting{
		{}, {guards: []byte("1")}, {guards: []byte("2")}, {kinds: []Kind{Value}}, {kinds: []Kind{Stale}},
		{kinds: []Kind{Value, Stale}}, {kinds: []Kind{Value + Stale}}, {rows: rows("a")}, {rows: rows("b")},
		{rows: rows("a", "b")}, {rows: rows("ab")}, {kinds: []Kind{Value}, rows: rows("a")},
	} {
		for _, c := range [][sha256.Size]byte{content, {}} {
			one := s.fingerprint(c)
			if again := s.fingerprint(c); again != one || slices.Contains(seen, one) {
				t.Errorf("sighting %d: %+v", i, s)
			}
			seen = append(seen, one)
		}
	}
}
