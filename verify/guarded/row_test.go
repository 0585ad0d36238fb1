package guarded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// The mappings of the tests. own gives a row to each item, shared a row to all items of a
// partition.
const (
	own = `families: {d: {max_versions: 1}, a: {max_versions: 1, max_age: 1h}}
rules:
- name: own
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk, aged], to: "d:{attr}"}, {attr: aged, to: "a:v"}]
`
	shared = `families: {d: {max_versions: 1}}
rules:
- name: shared
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`
)

// The times of cells and guards in the tests: cells age at noon, so old ones have aged away. Those
// at late are the newest that may be.
const (
	noon   = 2 * 3_600_000
	late   = noon + 3_600_000
	future = late + 1
)

var times = map[string]int64{"old": 1, "aging": noon - 3_600_000, "new": noon - 1000, "late": late, "future": future}

// stage compares rows that are written as text, with the findings as text. Tables are called S0, S1
// and so on.
type stage struct {
	t        *testing.T
	tables   []Table
	families *Families
	key      string // of the row
	found    []string
}

func newStage(t *testing.T, mappings ...string) *stage {
	t.Helper()
	s := &stage{t: t, key: "p#a"}
	for i, text := range mappings {
		m, problems := transform.ParseMapping("test.yaml", []byte(text))
		if m == nil {
			t.Fatal(problems)
		}
		sort := change.KeyAttr{Name: "sk", Type: 'S'}
		p, problems := transform.Compile(transform.Table{Pipeline: "p", Source: fmt.Sprint("S", i), Target: "t", Mapping: m,
			Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &sort}, View: "NEW_AND_OLD_IMAGES"})
		if p == nil {
			t.Fatal(problems)
		}
		s.tables = append(s.tables, Table{Program: p, Parts: 1})
	}
	s.families = FamiliesOf(s.tables)
	return s
}

func keyOf(sk string) string { return fmt.Sprintf(`{"pk":{"S":"p"},"sk":{"S":%q}}`, sk) }

// wanted returns what an item of table S0 should have in its row: the sort key with attributes, as
// in "a x=1 y=2".
func (s *stage) wanted(item string) Wanted {
	s.t.Helper()
	p, row, of := s.projected(item)
	w := Wanted{Item: of}
	if err := w.Decode([]byte(string(p.Encode(row)))); err != nil {
		s.t.Fatal(err)
	}
	return w
}

// projected returns the row of an item of table S0.
func (s *stage) projected(item string) (*Projector, *transform.Row, Item) {
	s.t.Helper()
	sk, rest, _ := strings.Cut(item, " ")
	raw := strings.TrimSuffix(keyOf(sk), "}")
	for _, attr := range strings.Fields(rest) {
		name, value, _ := strings.Cut(attr, "=")
		raw += fmt.Sprintf(`,%q:{"S":%q}`, name, value)
	}
	p := NewProjector(s.families, &s.tables[0])
	rows, err := p.Rows([]byte(raw + "}"))
	if err != nil || len(rows) != 1 {
		s.t.Fatalf("%d rows of %s: %v", len(rows), item, err)
	}
	return p, &rows[0], Item{0, keyOf(sk)}
}

// row returns a row: "d:x@new=1" is a cell, "live i@new=S0/a" the guard of item a of S0, and "dead
// i@new=S0/a" its tombstone.
func (s *stage) row(texts []string) *Row {
	s.t.Helper()
	row := &Row{Key: []byte(s.key)}
	for _, text := range texts {
		kind, guard, _ := strings.Cut(text, " ")
		isGuard := kind == "live" || kind == "dead"
		if !isGuard {
			guard = text
		}
		column, rest, _ := strings.Cut(guard, "@")
		at, value, _ := strings.Cut(rest, "=")
		ms, named := times[at]
		if _, err := fmt.Sscan(at, &ms); err != nil && !named {
			s.t.Fatalf("%s: %v", text, err)
		}
		c := bigtable.Cell{Qualifier: []byte(column), Time: time.UnixMilli(ms), Value: []byte(value)}
		switch {
		case isGuard && kind == "live":
			c.Family = transform.LiveFamily
			row.Live = append(row.Live, c)
		case isGuard:
			c.Family = transform.DeadFamily
			row.Dead = append(row.Dead, c)
		default:
			family, qualifier, _ := strings.Cut(column, ":")
			c.Family, c.Qualifier = family, []byte(qualifier)
			row.Cells = append(row.Cells, c)
		}
	}
	return row
}

// GuardOf implements Target for guards that are written as text: TABLE/SORT KEY, "sealed", or of
// another pipeline "PIPELINE:TABLE/SORT KEY".
func (s *stage) GuardOf(value, _, _ []byte) (bigtable.Guard, error) {
	text := string(value)
	if text == "sealed" {
		return bigtable.Guard{Unknown: true}, nil
	}
	pipeline, rest, other := strings.Cut(text, ":")
	if !other {
		pipeline, rest = "p", text
	}
	table, sk, ok := strings.Cut(rest, "/")
	if !ok {
		return bigtable.Guard{}, errors.New("not a guard")
	}
	return bigtable.Guard{Pipeline: pipeline, Table: table, Key: []byte(keyOf(sk))}, nil
}

// Candidate implements Findings.
func (s *stage) Candidate(kind Kind, of Item, _ []byte) error {
	sk := strings.TrimSuffix(strings.TrimPrefix(of.Key, `{"pk":{"S":"p"},"sk":{"S":"`), `"}}`)
	s.found = append(s.found, fmt.Sprintf("%s S%d/%s", kind, of.Table, sk))
	return nil
}

// Kept implements Findings.
func (s *stage) Kept(_ []byte, c *Held) { s.found = append(s.found, "kept "+place(c)) }

// Foreign implements Findings.
func (s *stage) Foreign(_ []byte, c *Held, pipeline string) error {
	s.found = append(s.found, strings.TrimSpace("foreign "+place(c)+" "+pipeline))
	return nil
}

// Unproven implements Findings.
func (s *stage) Unproven(kind Kind, _ []byte, c *Held) error {
	s.found = append(s.found, string(kind)+" "+place(c))
	return nil
}

func place(c *Held) string { return c.Family + ":" + string(c.Qualifier) }

// target is a Target of which only guards are read.
type target struct {
	Target
	*stage
}

func (x target) GuardOf(value, row, qualifier []byte) (bigtable.Guard, error) {
	return x.stage.GuardOf(value, row, qualifier)
}

// compare returns what is found in a row; nil cells: there is none.
func (s *stage) compare(cells []string, items ...string) (found []string, c *Comparison) {
	s.t.Helper()
	var have *Row
	if cells != nil {
		have = s.row(cells)
	}
	var wanted []Wanted
	for _, item := range items {
		wanted = append(wanted, s.wanted(item))
	}
	s.found = nil
	c = NewComparison(NewGuards(target{stage: s}, s.tables), s.families, noon, late, s)
	if err := c.Compare([]byte(s.key), wanted, have); err != nil {
		s.t.Fatal(err)
	}
	return s.found, c
}

// rowCase is a row with what it should hold and what is found in it, each separated by "; ".
type rowCase struct {
	cells, items, want string
	equal              int64
}

const noRow = "no row"

func list(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, "; ")
}

func (s *stage) check(cases map[string]rowCase) {
	s.t.Helper()
	for name, c := range cases {
		cells := list(c.cells)
		if c.cells == noRow {
			cells = nil
		}
		found, comparison := s.compare(cells, list(c.items)...)
		if d := cmp.Diff(list(c.want), append([]string{}, found...)); d != "" || comparison.Equal != c.equal {
			s.t.Errorf("%s: %d are equal, want %d (-want +got):\n%s", name, comparison.Equal, c.equal, d)
		}
	}
}

// TestRowOfOneItem: what a hash of the row does not show must be found all the same.
func TestRowOfOneItem(t *testing.T) {
	const guard = "live i@new=S0/a"
	ax, aged := "a x=1", "a aged=1"
	newStage(t, own).check(map[string]rowCase{
		"equal":                     {"d:x@new=1; " + guard, ax, "", 1},
		"missing":                   {noRow, ax, "missing_row S0/a", 0},
		"a long value":              {"d:x@new=12345678901234567; " + guard, "a x=12345678901234567", "", 1},
		"an older version":          {"d:x@new=1; d:x@old=0; " + guard, ax, "", 1},
		"an older version on top":   {"d:x@new=0; d:x@old=1; " + guard, ax, "value S0/a", 0},
		"unsorted":                  {"d:y@new=2; d:x@new=1; d:x@old=0; " + guard, "a x=1 y=2", "", 1},
		"another value":             {"d:x@new=2; " + guard, ax, "value S0/a", 0},
		"a cell less":               {"d:x@new=1; " + guard, "a x=1 y=2", "value S0/a", 0},
		"a cell more":               {"d:x@new=1; d:y@new=1; " + guard, ax, "value S0/a", 0},
		"another column":            {"d:y@new=1; " + guard, ax, "value S0/a", 0},
		"no guard":                  {"d:x@new=1", ax, "no_guard S0/a", 0},
		"a tombstone alone":         {"d:x@new=1; dead i@new=S0/a", ax, "no_guard S0/a", 0},
		"a sealed guard":            {"d:x@new=1; live i@new=sealed", ax, "", 1},
		"a sealed guard of another": {"d:x@new=1; live q@new=sealed", ax, "no_guard S0/a", 0},
		"a sealed tombstone":        {"d:x@new=1; dead i@new=sealed", ax, "no_guard S0/a", 0},
		"no guard of ours":          {"d:x@new=1; live q@new=q:S0/a", ax, "no_guard S0/a", 0},
		"a newest guard":            {"d:x@new=1; live i@late=S0/a", ax, "", 1},
		"a guard in the future":     {"d:x@new=1; live i@future=S0/a", ax, "future S0/a", 1},
		"a tombstone in the future": {"d:x@new=1; " + guard + "; dead i@future=S0/a", ax, "future S0/a", 1},
		"another's in the future":   {"d:x@new=1; " + guard + "; dead q@future=S0/b", ax, "future S0/b", 1},
		"another's tombstone":       {"d:x@new=1; " + guard + "; dead q@late=S0/b", ax, "", 1},
		"another's guard":           {"d:x@new=1; " + guard + "; live q@new=S0/b", ax, "stale S0/b", 1},
		"only another's guard":      {"d:x@new=1; live q@new=S0/b", ax, "no_guard S0/a; stale S0/b", 0},
		"a guard that is none":      {"d:x@new=1; " + guard + "; live q@future=x", ax, "", 1},
		"another pipeline's":        {"d:x@new=1; " + guard + "; live q@future=q:S0/b", ax, "", 1},
		"both in the future":        {"d:x@new=1; live i@future=S0/a; dead i@future=S0/a", ax, "future S0/a", 1},
		"two kinds of guards": {"a:other@new=1; d:x@new=1; live q@new=S0/a; dead i@new=S0/a", ax,
			"extra_cell S0/a", 1},
		"no cells, no row":        {noRow, "a", "", 1},
		"no cells, no guard":      {"", "a", "", 1},
		"another table's":         {"d:x@new=1; " + guard + "; live q@future=S9/b", ax, "", 1},
		"another family's":        {"d:x@new=1; z:x@new=1; " + guard, ax, "", 1},
		"an extra cell":           {"a:v@new=1; d:x@new=1; " + guard, ax, "extra_cell S0/a", 1},
		"an extra cell that ages": {"a:v@aging=1; d:x@new=1; " + guard, ax, "extra_cell S0/a", 1},
		"an extra cell that aged": {"a:v@old=1; d:x@new=1; " + guard, ax, "", 1},
		"two items":               {"d:x@new=1; " + guard, "a x=1; b x=1", "value S0/a; value S0/b", 0},
		"aged":                    {"a:v@new=1; " + guard, aged, "", 1},
		"aged, wrong":             {"a:v@new=2; " + guard, aged, "value S0/a", 0},
		"aged, an extra cell":     {"a:v@new=1; d:x@new=1; " + guard, aged, "extra_cell S0/a", 1},
		"aged, missing":           {guard, aged, "missing_cell S0/a", 0},
		"aged, no longer missing": {"live i@old=S0/a", aged, "", 1},
		"aged, missing just yet":  {"live i@aging=S0/a", aged, "missing_cell S0/a", 0},
		"aged, never written":     {"dead i@old=S0/a", aged, "missing_cell S0/a", 0},
		"aged, long":              {"a:v@new=12345678901234567; " + guard, "a aged=12345678901234567", "", 1},
		"aged, long and wrong": {"a:v@new=12345678901234568; " + guard, "a aged=12345678901234567",
			"value S0/a", 0},
		"aged, the text of a document": {`a:v@new={"b":{"S":"1"},"a":{"S":"2"}}` + "; " + guard,
			`a aged={"b":{"S":"1"},"a":{"S":"2"}}`, "", 1},
		"aged, by another's guard":    {"live q@old=S0/b", aged, "missing_cell S0/a; stale S0/b", 0},
		"aged, by another pipeline's": {"live i@old=q:S0/a", aged, "missing_cell S0/a", 0},
		"aged, no row":                {noRow, aged, "missing_row S0/a", 0},
		"aged, older versions":        {"a:v@new=1; a:v@aging=2; " + guard, aged, "", 1},
		"aged, wrong with versions":   {"a:v@new=2; a:v@aging=1; " + guard, aged, "value S0/a", 0},
	})
}

// TestCellsThatGoOnlyWhenBothLimitsArePassed: with combine: intersection the newest versions stay
// whatever their age, so a missing one has not aged away, and one too many does not go by itself.
func TestCellsThatGoOnlyWhenBothLimitsArePassed(t *testing.T) {
	newStage(t, strings.Replace(own, "max_versions: 1, max_age: 1h", "max_versions: 2, max_age: 1h, combine: intersection",
		1)).check(map[string]rowCase{
		"equal":         {"a:v@old=1; live i@old=S0/a", "a aged=1", "", 1},
		"missing":       {"live i@old=S0/a", "a aged=1", "missing_cell S0/a", 0},
		"a cell more":   {"d:x@old=1; a:v@old=1; live i@old=S0/a", "a x=1", "extra_cell S0/a", 1},
		"an older one":  {"a:v@new=1; a:v@old=0; live i@new=S0/a", "a aged=1", "", 1},
		"without guard": {"a:v@old=1", "", "foreign a:v", 0},
	})
}

// TestRowOfNoItem: what is left in it, and whose it is.
func TestRowOfNoItem(t *testing.T) {
	s := newStage(t, own, shared, shared)
	s.tables[2].Parts = 0 // not compared
	s.tables[0].Outlives = func(c transform.CellAlone) transform.Remaining {
		r := map[string]transform.Remaining{"history": {Code: transform.Remains, Why: "a history"},
			"ttl": {Code: transform.RemainsWhileAbsent, Why: "reworded"}}[string(c.Qualifier)]
		if string(c.Row) != "p" || c.Family != "d" || c.Emptied != (string(c.Qualifier) == "hollow") {
			t.Errorf("asked about %+v", c)
		}
		if c.Keys != nil && c.Keys.Get("sk").S != "a" {
			t.Errorf("asked about %+v", c.Keys)
		}
		return r
	}
	s.tables[1].Outlives = func(c transform.CellAlone) transform.Remaining {
		if c.Emptied {
			return transform.Remaining{Code: transform.Remains, Why: "an empty one"}
		}
		if string(c.Qualifier) == "keyless" && c.Keys == nil || string(c.Qualifier) == "a/keyed" && c.Keys != nil {
			return transform.Remaining{Code: transform.Remains, Why: "a copy"}
		}
		return transform.Remaining{}
	}
	s.key = "p"
	s.check(map[string]rowCase{
		"nothing":                     {"", "", "", 0},
		"a guard":                     {"live i@new=S0/a", "", "stale S0/a", 0},
		"a tombstone":                 {"dead i@new=S0/a", "", "", 0},
		"a cell":                      {"d:x@new=1", "", "foreign d:x", 0},
		"a cell that aged":            {"a:x@old=1", "", "", 0},
		"a cell outside":              {"z:x@new=1", "", "", 0},
		"all of an item":              {"d:x@new=1; live i@new=S0/a", "", "stale S0/a; extra_cell S0/a", 0},
		"a ghost":                     {"d:x@new=1; dead i@new=S0/a", "", "extra_cell S0/a", 0},
		"another pipeline's":          {"d:x@new=1; live i@new=q:S0/a", "", "foreign d:x q", 0},
		"an unnamed pipeline's":       {"d:x@new=1; live i@new=:S0/a", "", "foreign d:x an unnamed pipeline", 0},
		"a sealed guard":              {"d:x@new=1; live q@new=sealed", "", "sealed d:x", 0},
		"not of the guard's item":     {"d:b/x@new=1; dead q@new=S1/a", "", "foreign d:b/x", 0},
		"of the guard's item":         {"d:a/x@new=1; dead q@new=S1/a", "", "extra_cell S1/a", 0},
		"of the second guard's item":  {"d:b/x@new=1; dead q@new=S1/a; dead r@new=S1/b", "", "extra_cell S1/b", 0},
		"of a table not compared":     {"d:a/x@new=1; live q@new=S2/a", "", "", 0},
		"in its future":               {"live q@future=S2/a", "", "", 0},
		"of a table not given":        {"d:x@new=1; live q@new=S9/a", "", "", 0},
		"a history":                   {"d:history@new=1", "", "kept d:history", 0},
		"a copy of the second table":  {"d:keyless@new=1", "", "kept d:keyless", 0},
		"an empty copy":               {"d:hollow@new=", "", "kept d:hollow", 0},
		"an item's copy":              {"d:a/keyed@new=1; dead q@new=S1/a", "", "kept d:a/keyed", 0},
		"no copy without its item":    {"d:a/keyed@new=1", "", "foreign d:a/keyed", 0},
		"not a guard":                 {"d:x@new=1; live q@new=x", "", "foreign d:x", 0},
		"of two pipelines":            {"d:x@new=1; live q@new=q:S0/a; dead r@new=S1/z", "", "foreign d:x q", 0},
		"a history with its guard":    {"d:history@new=1; dead i@new=S0/a", "", "kept d:history", 0},
		"what TTL left":               {"d:ttl@new=1; dead i@new=S0/a", "", "extra_cell S0/a", 0},
		"what TTL left, and no guard": {"d:ttl@new=1", "", "foreign d:ttl", 0},
	})
}

// TestRowThatItemsShare: each has its cells, and only its own differences.
func TestRowThatItemsShare(t *testing.T) {
	s := newStage(t, shared)
	s.key = "p"
	with := func(cells string) string { return cells + "; live q@new=S0/a; live r@new=S0/b" }
	both := "a x=1; b x=2"
	s.check(map[string]rowCase{
		"equal":           {with("d:a/x@new=1; d:b/x@new=2"), both, "", 2},
		"another value":   {with("d:a/x@new=1; d:b/x@new=1"), both, "value S0/b", 1},
		"a cell less":     {with("d:b/x@new=2"), both, "missing_cell S0/a", 1},
		"an extra cell":   {with("d:a/x@new=1; d:b/x@new=2; d:b/y@new=2"), both, "extra_cell S0/b", 2},
		"an item less":    {with("d:a/x@new=1"), "a x=1", "stale S0/b", 1},
		"a ghost":         {with("d:a/x@new=1; d:b/x@new=2"), "a x=1", "stale S0/b; extra_cell S0/b", 1},
		"no row":          {noRow, both, "missing_row S0/a; missing_row S0/b", 0},
		"no guards":       {"d:a/x@new=1; d:b/x@new=2", both, "no_guard S0/a; no_guard S0/b", 0},
		"a guard less":    {"d:a/x@new=1; d:b/x@new=2; live r@new=S0/b", both, "no_guard S0/a", 1},
		"two differences": {with("d:a/x@new=3"), "a x=1 y=2; b", "missing_cell S0/a", 1},
		"two values":      {with("d:a/x@new=3; d:a/y@new=4"), "a x=1 y=2; b", "value S0/a", 1},
		"another pipeline's guard of it": {"d:a/x@new=1; live a@new=q:S0/a; live q@new=S0/a", "a x=1",
			"", 1},
		"an exclusive guard of one is all": {"d:a/x@new=1; live i@new=S0/a", "a x=1", "", 1},
		"an exclusive guard, and a cell more": {"d:a/x@new=1; d:a/y@new=1; live i@new=S0/a", "a x=1",
			"extra_cell S0/a", 1},
	})
}

// TestCellsThatItemsShareMayHaveEitherValue: the mapping allows two items to write one cell.
func TestCellsThatItemsShareMayHaveEitherValue(t *testing.T) {
	s := newStage(t, `families: {d: {max_versions: 1}}
rules:
- {name: one, match: {pk: "{p}", sk: "a{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}]}
- {name: two, match: {pk: "{p}", sk: "b{s}"}, row: "{p}", cells: [{attr: x, to: "d:x"}], may_share_cells_with: [one]}
`)
	s.key = "p"
	with := func(value string) string {
		return "d:x@new=" + value + "; live q@new=S0/a1; live r@new=S0/b1"
	}
	both := "a1 x=1; b1 x=2"
	s.check(map[string]rowCase{
		"the first":  {with("1"), both, "", 2},
		"the second": {with("2"), both, "", 2},
		"neither":    {with("3"), both, "value S0/a1", 1},
	})
}

// TestColumnsThatDoNotShowTheirItem: a cell there may be any item's that the row has had.
func TestColumnsThatDoNotShowTheirItem(t *testing.T) {
	open := strings.Replace(shared, "d:{s}/{attr}", "d:{s}/{attr}/{type}", 1)
	s := newStage(t, open, open)
	s.tables[1].Parts = 0 // not compared
	s.key = "p"
	a := "a x=1"
	s.check(map[string]rowCase{
		"equal":             {"d:a/x/S@new=1; live q@new=S0/a", a, "", 1},
		"a ghost":           {"d:a/x/S@new=1; d:b/x/S@new=1; live q@new=S0/a", a, "unowned d:b/x/S", 1},
		"no guard":          {"d:b/x/S@new=1", "", "foreign d:b/x/S", 0},
		"not compared":      {"d:b/x/S@new=1; dead q@new=S1/a", "", "", 0},
		"a table not given": {"d:b/x/S@new=1; dead q@new=S7/a", "", "", 0},
	})
}

// TestCellsWithTimesOfTheirOwn: siblings in one column, of which the newest two are kept for an
// hour.
func TestCellsWithTimesOfTheirOwn(t *testing.T) {
	s := newStage(t, `families: {c: {max_versions: 2, max_age: 1h}}
rules:
- name: comment
  match: {pk: "{p}", sk: "c{at:d}"}
  row: "{p}"
  cells: [{attr: s, to: "c:s", ts: "{at|s_ms}", cell_id: ts}, {attr: t, to: "c:t", ts: "{at|s_ms}", cell_id: ts}]
`)
	s.key = "p"
	const one, two, three = "c7001 t=1", "c7002 t=2", "c7003 t=3"
	guards := func(sorts ...string) (text string) {
		for _, sk := range sorts {
			text += "; live " + sk + "@new=S0/" + sk
		}
		return text
	}
	both := guards("c7001", "c7002")
	all := both + guards("c7003")
	cases := map[string]rowCase{
		"equal":         {"c:t@7002000=2; c:t@7001000=1" + both, one + "; " + two, "", 2},
		"another value": {"c:t@7002000=2; c:t@7001000=2" + both, one + "; " + two, "value S0/c7001", 1},
		"missing":       {"c:t@7002000=2" + both, one + "; " + two, "missing_cell S0/c7001", 1},
		"pushed out":    {"c:t@7003000=3; c:t@7002000=2" + all, one + "; " + two + "; " + three, "", 3},
		"behind another column": {"c:s@7003000=3; c:s@7002000=3; c:t@7002000=2" + all,
			"c7001 t=1; c7002 s=3 t=2; c7003 s=3", "missing_cell S0/c7001", 2},
		"pushed out behind another column": {"c:s@7000000=3; c:t@7003000=3; c:t@7002000=2" + all + guards("c7000"),
			"c7000 s=3; c7001 t=1; c7002 t=2; c7003 t=3", "", 4},
		"older than what is missing": {"c:t@7002000=2; c:t@7001000=1" + all, one + "; " + two + "; " + three,
			"missing_cell S0/c7003", 2},
		"aged away":             {noRow, "c1 t=1", "", 1},
		"aged, and still there": {"c:t@1000=9; live 1@new=S0/c1", "c1 t=1", "", 1},
		"just not aged":         {noRow, "c3600 t=1", "missing_row S0/c3600", 0},
		"extra": {"c:t@7002000=2; c:t@7001000=1; live 2@new=S0/c7002; dead 1@new=S0/c7001", two,
			"unowned c:t", 1},
		"missing between": {"c:t@7003000=3; c:t@7001000=1" + all, one + "; " + two + "; " + three,
			"missing_cell S0/c7002", 2},
	}
	s.check(cases)
	s.families.List[0].MaxVersions = 0 // all are kept
	s.check(map[string]rowCase{
		"equal":            cases["equal"],
		"never pushed out": {cases["pushed out"].cells, cases["pushed out"].items, "missing_cell S0/c7001", 2},
	})
}

// TestHashOfSeveralFamilies: columns of one name in two of them are two columns.
func TestHashOfSeveralFamilies(t *testing.T) {
	newStage(t, `families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: own
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{attr: y, to: "e:x"}, {attr: x, to: "d:x"}]
`).check(map[string]rowCase{
		"equal":   {"d:x@new=1; e:x@new=2; live i@new=S0/a", "a x=1 y=2", "", 1},
		"swapped": {"d:x@new=2; e:x@new=1; live i@new=S0/a", "a x=1 y=2", "value S0/a", 0},
		"missing": {"d:x@new=1; live i@new=S0/a", "a x=1 y=2", "value S0/a", 0},
	})
}

// TestDocumentsAreComparedByTheirContent: the target has their JSON as the source wrote it.
func TestDocumentsAreComparedByTheirContent(t *testing.T) {
	doc := `{"pk":{"S":"p"},"sk":{"S":"a"},"x":{"S":"1"}}`
	other := `{"x":{"S":"1"},"sk":{"S":"a"}, "pk":{"S":"p"}}`
	newStage(t, `families: {d: {max_versions: 1}}
rules:
- name: own
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{doc: all, to: "d:j", format: raw}]
`).check(map[string]rowCase{
		"the same":         {"d:j@new=" + doc + "; live i@new=S0/a", "a x=1", "", 1},
		"in another order": {"d:j@new=" + other + "; live i@new=S0/a", "a x=1", "", 1},
		"another": {"d:j@new=" + strings.Replace(doc, "1", "2", 1) + "; live i@new=S0/a", "a x=1",
			"value S0/a", 0},
		"none": {"d:j@new=x; live i@new=S0/a", "a x=1", "value S0/a", 0},
	})
}

// TestAggregatesMayIncludeMore: what was merged into one before.
func TestAggregatesMayIncludeMore(t *testing.T) {
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	for _, c := range []struct {
		kind       string
		want, have []byte
		includes   bool
	}{
		{"max", number(3), number(3), true}, {"max", number(3), number(4), true}, {"max", number(3), number(2), false},
		{"min", number(3), number(3), true}, {"min", number(3), number(4), false}, {"min", number(3), number(2), true},
		{"sum", number(3), number(2), false}, {"max", number(-3), number(2), true},
		{"min_int64", number(3), number(-2), true},
		{"max", number(3), number(4)[1:], false}, {"max", number(3)[1:], number(4), false}, {"max", nil, nil, false},
	} {
		if got := aggregateIncludes(c.kind, c.want, c.have); got != c.includes {
			t.Errorf("%s of %x in %x: %v", c.kind, c.want, c.have, got)
		}
	}
}

// TestRowsAreComparedOneAfterTheOther: what one row has is not looked for in the next, and the time
// goes on.
func TestRowsAreComparedOneAfterTheOther(t *testing.T) {
	s := newStage(t, own)
	_, c := s.compare([]string{"d:x@new=1", "a:v@new=1", "live i@new=S0/a", "dead q@late=S0/b"})
	if len(s.found) != 3 { // stale, and both cells
		t.Fatal(s.found)
	}
	for _, next := range []*Row{nil, {Key: []byte("p#b")}} {
		s.found = nil
		if err := c.Compare([]byte("p#b"), nil, next); err != nil || s.found != nil {
			t.Errorf("of the row before: %v, %v", s.found, err)
		}
	}
	c.At(noon+3_600_000, late-1)
	s.found = nil
	row := s.row([]string{"a:v@new=1", "dead q@late=S0/b"})
	if err := c.Compare([]byte("p#a"), nil, row); err != nil || !slices.Equal(s.found, []string{"future S0/b"}) {
		t.Errorf("an hour later, with an earlier limit: %v, %v", s.found, err)
	}
}

// TestComparedCellsAreCounted: once each, whichever way a row is compared.
func TestComparedCellsAreCounted(t *testing.T) {
	s := newStage(t, own)
	for name, cells := range map[string][]string{
		"equal": {"d:x@new=1", "d:y@new=2", "live i@new=S0/a"}, "without a guard": {"d:x@new=1", "d:y@new=2"}, "missing": nil,
	} {
		if _, c := s.compare(cells, "a x=1 y=2"); c.All != 2 {
			t.Errorf("%s: %d", name, c.All)
		}
		if _, c := s.compare(cells, "a aged=1"); c.All != 1 {
			t.Errorf("%s, by cells: %d", name, c.All)
		}
	}
}
