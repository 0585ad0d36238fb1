package pattern

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/transform/access"
)

// TestKeyConditionsAndTemplates holds the grade of each kind of key condition for each kind of row
// template. A rule is "match → row"; rules are separated by " ; ".
func TestKeyConditionsAndTemplates(t *testing.T) {
	const (
		plain   = `{p: "{a}", s: "{b}"} → {a}#{b}`
		orders  = `{p: "U#{u}", s: "O#{id}"} → u#{u}#o#{id}`
		twice   = `{p: "{a}", s: "{b}"} → {a}#{b} → index of sort: s#{b}#{a}`
		several = `{p: "U#{u}", s: INFO} → u#{u}#i ; {p: "U#{u}", s: "O#{id}"} → u#{u}#o#{id}`
		// the rows of the second kind come first
		twoKinds = `{p: "{a}", s: "A#{b}"} → a#{a}#{b} → index by_x: x#{x}#{y}#2#{b}#{a} ; ` +
			`{p: "{a}", s: "B#{b}"} → b#{a}#{b} → index by_x: x#{x}#{y}#1#{b}#{a}`
		swapped = `{p: "U#{u}", s: INFO} → u#{u}#z ; {p: "U#{u}", s: "O#{id}"} → u#{u}#o#{id}`
		spread  = `{p: "U#{u}", s: INFO} → i#{u} ; {p: "U#{u}", s: "O#{id}"} → o#{u}#{id}`
	)
	for _, c := range []struct {
		keys, rules, request string
		grade                access.Grade
		read                 string
	}{
		{"p s", plain, "GetItem p='1' and s='2'", access.Served, "row {a}#{b}"},
		{"p s", plain, "Query p='1' and s='2'", access.Served, "row {a}#{b}"},
		{"p s", plain, "Query p='1'", access.Served, "prefix {a}#"},
		{"p s", plain, "Query p='1' backward", access.OrderDiffers, "prefix {a}#"},
		{"p s", plain, "Query p='1' and begins_with(s,'2')", access.Served, "prefix {a}#{b}"},
		{"p s", plain, "Query p='1' and s between '2' and '3'", access.Served, "range {a}#{b}..{a}#{b}"},
		{"p s", plain, "Query p='1' and s>'2'", access.Served, "range {a}#{b}..{a}#{b}"},
		{"p", `{p: "{a}"} → {a}`, "GetItem p='1'", access.Served, "row {a}"},
		{"p", `{p: "{a}"} → {a|hash(16)}`, "GetItem p='1'", access.Served, "row {a|hash(16)}"},
		{"p", `{p: "{a}"} → {site}`, "GetItem p='1'", access.NoRead, ""},
		{"p", `{p: "{a}"} → {a}#{site}`, "GetItem p='1'", access.Served, "prefix {a}#"},

		// numbers
		{"p s:N", plain, "Query p='1'", access.OrderDiffers, "prefix {a}#"},
		{"p s:N", plain, "Query p='1' and s>5", access.WiderRange, "prefix {a}#"},
		{"p s:N", `{p: "{a}", s: "{n}"} → {a}#{n|ordnum}`, "Query p='1'", access.Served, "prefix {a}#"},
		{"p s:N", `{p: "{a}", s: "{n}"} → {a}#{n|pad(9)}`, "Query p='1' and s>=5", access.Served,
			"range {a}#{n|pad(9)}..{a}#{n|pad(9)}"},
		{"p s:N", `{p: "{a}", s: "{n}"} → {a}#{n|rev64}`, "Query p='1'", access.OrderDiffers, "prefix {a}#"},
		{"p s:N", `{p: "{a}", s: "{n}"} → {a}#{n|rev64}`, "Query p='1' and s between 1 and 2 backward", access.Served,
			"range {a}#{n|rev64}..{a}#{n|rev64}"},
		{"p s", `{p: "{a}", s: "{n:d}"} → {a}#{n|pad(9)}`, "Query p='1'", access.OrderDiffers, "prefix {a}#"},
		{"p s", `{p: "{a}", s: "{n:d}"} → {a}#{n}`, "Query p='1'", access.Served, "prefix {a}#"},

		// captures
		{"p s", orders, "Query p='U#1' and begins_with(s,'O#')", access.Served, "prefix u#{u}#o#"},
		{"p s", orders, "Query p='U#1' and begins_with(s,'O')", access.Served, "prefix u#{u}#o#"},
		{"p s", orders, "Query p='U#1' and begins_with(s,'O#20')", access.Served, "prefix u#{u}#o#{id}"},
		{"p s", orders, "Query p='U#1' and begins_with(s,'P')", access.NoRead, ""},
		{"p s", orders, "Query p='U#1' and s between 'O#1' and 'O#2'", access.Served, "range u#{u}#o#{id}..u#{u}#o#{id}"},
		{"p s", orders, "Query p='U#1' and s between 'A' and 'Z'", access.Served, "prefix u#{u}#o#"},
		{"p s", orders, "GetItem p='G#1' and s='O#1'", access.NoRead, ""},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{y}#{x}`, "Query p='1'", access.OrderDiffers, "prefix {a}#"},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{y}#{x}`, "Query p='1' and begins_with(s,'1#')", access.WiderRange,
			"prefix {a}#"},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}#{y}`, "Query p='1' and begins_with(s,'1#')", access.Served,
			"prefix {a}#{x}#"},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}#{y}`, "Query p='1' and begins_with(s,'1')", access.Served,
			"prefix {a}#{x}"},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}#{y}`, "Query p='1' and s between '1#2' and '3#4'", access.Served,
			"range {a}#{x}..{a}#{x}"},
		{"p s", `{p: "{a}", s: "{x}#{y}"} → {a}#{x}/{y}`, "Query p='1' and s between '1#2' and '3#4'", access.WiderRange,
			"range {a}#{x}..{a}#{x}"},
		{"p s", `{p: "{a}#{t}", s: "{b}"} → {a}#{b}#{t}`, "Query p='1#2'", access.WiderRange, "prefix {a}#"},
		{"p s", `{p: "{a}", s: "{b}"} → {a|lower}#{b}#{a}`, "Query p='1'", access.WiderRange, "prefix {a|lower}#"},
		{"p s", `{p: "{a}", s: "{b}"} → {salt(a;4)}#{a}#{b}`, "Query p='1'", access.Served, "prefix {salt(a;4)}#{a}#"},
		{"p s", `{p: "{a}", s: "{b}"} → {salt(b;4)}#{a}#{b}`, "Query p='1'", access.NoRead, ""},
		{"p s", `{p: "{a}", s: "{b}"} → {a}#{b|revstr}`, "Query p='1'", access.OrderDiffers, "prefix {a}#"},
		{"p s", `{p: "{a}", s: "{b}"} → {a}#{b|revstr}`, "Query p='1' and begins_with(s,'2')", access.WiderRange,
			"prefix {a}#"},

		// index rows
		{"p s; of sort: s, p", twice, "Query 'of sort' s='1'", access.Served, "prefix s#{b}#"},
		{"p s; inverse: s, p", twice, "Query inverse s='1' and p>'2'", access.Served, "range s#{b}#{a}..s#{b}#{a}"},
		{"p s; by_x: x", plain, "Query by_x x='1'", access.NoRead, ""},
		{"p; by_x: x, y", `{p: "{a}"} → {a} → index by_x: x#{x}#{y}#{a}`, "Query by_x x='1'", access.Served, "prefix x#{x}#"},
		{"p; by_x: x, y:N", `{p: "{a}"} → {a} → index by_x: x#{x}#{y}#{a}`, "Query by_x x='1'", access.OrderDiffers,
			"prefix x#{x}#"},
		{"p; by_x: x, y", `{p: "{a}"} → {a} → index by_x: x#{x}#{z}#{a}`, "Query by_x x='1'", access.NoRead, ""},

		// indexes whose keys have several attributes in a part
		{"p; by_x: x+y, z", `{p: "{a}"} → {a} → index by_x: x#{x}#{y}#{z}#{a}`, "Query by_x x='1' and y='2'",
			access.Served, "prefix x#{x}#{y}#"},
		{"p; by_x: x+y, z", `{p: "{a}"} → {a} → index by_x: x#{y}#{z}#{a}`, "Query by_x x='1' and y='2'",
			access.WiderRange, "prefix x#{y}#"},
		{"p; by_x: x, y, z", `{p: "{a}"} → {a} → index by_x: x#{x}#{z}#{y}#{a}`, "Query by_x x='1'",
			access.OrderDiffers, "prefix x#{x}#"},
		{"p s; by_x: x+y, s", twoKinds, "Query by_x x='1' and y='2'", access.OrderDiffers, "prefix x#{x}#{y}#"},
		{"p s; by_x: x+y, s, p", twoKinds, "Query by_x x='1' and y='2'", access.OrderDiffers, "prefix x#{x}#{y}#"},

		// rules together
		{"p s", several, "Query p='U#1'", access.Served, "prefix u#{u}#"},
		{"p s", swapped, "Query p='U#1'", access.OrderDiffers, "prefix u#{u}#"},
		{"p s", several, "Query p='U#1' and s='INFO'", access.Served, "row u#{u}#i"},
		{"p s", several, "Query p='U#1' and s<'O'", access.Served, "row u#{u}#i"},
		{"p s", spread, "Query p='U#1'", access.NoRead, ""},
		{"p s", spread, "Query p='U#1' and begins_with(s,'O')", access.Served, "prefix o#{u}#"},
		{"p s", `{p: "{u}", s: INFO} → u#{u}#i ; {p: "{u}.{n:d}", s: "O#{id}"} → u#{u}#{n}#{id}`, "Query p='1.2'",
			access.NoRead, ""},

		// what else is in the range
		{"p s", `{p: "U#{u}", s: "O#{id}"} → u#{u}#{id} ; {p: "U#{u}", s: "R#{id}"} → u#{u}#{id}#r`,
			"Query p='U#1' and begins_with(s,'O#')", access.WiderRange, "prefix u#{u}#"},
	} {
		table := tableOf(t, c.keys, c.rules)
		r := NewReader(table)
		v := r.Grade(one(t, r, table.Name, strings.ReplaceAll(c.request, "'of sort'", "of_sort")))
		read := ""
		if v.Read != nil {
			read = v.Read.How + " " + v.Read.Key
		}
		if v.Grade != c.grade || read != c.read || v.Why == "" && c.grade != access.Served {
			t.Errorf("%s\n\t%s: %s, %s\n\twant %s, %s\n\twhy: %s", c.rules, c.request, v.Grade, read, c.grade, c.read, v.Why)
		}
	}
}

// tableOf makes a table of keys, "p s; index: a, b", and of rules in short.
func tableOf(t tb, keys, rules string) Table {
	t.Helper()
	var sb strings.Builder
	sb.WriteString("mapping: 1\nsegments: escape\nfamilies: {d: {max_versions: 1}, x: {max_versions: 1}}\nrules:\n")
	for i, rule := range strings.Split(rules, " ; ") {
		parts, column := strings.Split(rule, " → "), "v"+string(rune('0'+i))
		if parts[1] == "{site}" {
			column = "{a}"
		}
		sb.WriteString("- name: r" + string(rune('0'+i)) + "\n  match: " + parts[0] + "\n  row: \"" + parts[1] +
			"\"\n  cells: [{attr: v, to: \"d:" + column + "\"}]\n")
		for _, index := range parts[2:] {
			name, row, _ := strings.Cut(strings.TrimPrefix(index, "index "), ": ")
			sb.WriteString("  index: [{name: " + name + ", row: \"" + row + "\", cells: [{attr: v, to: \"x:v\"}]}]\n")
		}
	}
	parts := strings.Split(keys, "; ")
	var indexes []Index
	for _, x := range parts[1:] {
		indexes = append(indexes, indexOf(strings.ReplaceAll(x, "of sort", "of_sort")))
	}
	return mapped(t, "Things", sb.String(), schemaOf(parts[0]), indexes...)
}

// TestRowsOfSomeItemsServeNoRead: an index row answers a read only if every item of it has one.
func TestRowsOfSomeItemsServeNoRead(t *testing.T) {
	for index, want := range map[string]access.Grade{
		`{name: i, row: "i#{id}", cells: [{attr: v, to: "x:v"}]}`:                                           access.Served,
		`{name: i, row: "i#{id}", when: "has(item.id)", cells: [{attr: v, to: "x:v"}]}`:                     access.Served,
		`{name: i, row: "i#{id}", when: "has(item.id) && item.v == 'a'", cells: [{attr: v, to: "x:v"}]}`:    access.NoRead,
		`{name: i, row: "i#{id}", when: "has(item.v)", cells: [{attr: v, to: "x:v"}]}`:                      access.NoRead,
		`{name: i, row: "i#{id}", match: {v: {equals: a}}, cells: [{attr: v, to: "x:v"}]}`:                  access.NoRead,
		`{name: i, row: "i#{id}", match: {v: {exists: false}, id: "{all}"}, cells: [{attr: v, to: "x:v"}]}`: access.NoRead,
		`{name: i, row: "i#{id}#{v}", cells: [{attr: v, to: "x:v"}]}`:                                       access.NoRead,
	} {
		const rule = "mapping: 1\nfamilies: {d: {max_versions: 1}, x: {max_versions: 1}}\nrules:\n" +
			`- {name: r, match: {id: "{id}"}, row: "{site}", cells: [{attr: v, to: "d:{id}"}], index: [`
		r := NewReader(mapped(t, "Sites", rule+index+"]}\n", schemaOf("id")))
		if v := r.Grade(one(t, r, "Sites", "GetItem id='1'")); v.Grade != want {
			t.Errorf("%s: %s: %s, want %s", index, v.Grade, v.Why, want)
		}
	}
}

// TestProposalsThatWouldNotServe: an index row is proposed only if the read is then served.
func TestProposalsThatWouldNotServe(t *testing.T) {
	preset := "mapping: 1\npreset: default\n"
	for name, c := range map[string]struct {
		table        Table
		request, why string
	}{
		"a capture has the attribute's name": {tableOf(t, "p; by_x: x", `{p: "{x}"} → {x}`), "Query by_x x='1'",
			"an index row by its key would not serve it either"},
		"a preset": {mapped(t, "Things", preset, schemaOf("p"), indexOf("by_x: x")), "Query by_x x='1'",
			"a preset has no index rows"},
		"an index without a known key": {tableOf(t, "p", `{p: "{a}"} → {a}`), "Query by_x x='1'",
			"the key of index by_x is not known"},
		"dropped": {mapped(t, "Things", "mapping: 1\nfamilies: {}\nrules:\n- {name: r, match: {p: \"{a}\"}, drop: true}\n",
			schemaOf("p")), "GetItem p='1'", "the mapping drops the items of rule r"},
	} {
		r := NewReader(c.table)
		v := r.Grade(one(t, r, "Things", c.request))
		if v.Grade != access.NoRead || v.Index != nil || !strings.Contains(v.Why, c.why) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestProposalBesideARuleForTheRest: a last rule that takes all other items, as `init` proposes one, does
// not stand in the way of index rows.
func TestProposalBesideARuleForTheRest(t *testing.T) {
	table := tableOf(t, "p s; by_x: x", `{p: "U#{u}", s: "O#{id}"} → u#{u}#{id} ; {p: "{p}", s: "{s}"} → rest#{p}#{s}`)
	r := NewReader(table)
	v := r.Grade(one(t, r, "Things", "Query by_x x='1'"))
	if len(v.Index) != 2 || !strings.Contains(v.Index[0].Entry, `row: "by_x#{x}#u#{u}#{id}"`) ||
		!strings.Contains(v.Index[1].Entry, `row: "by_x#{x}#rest#{p}#{s}"`) {
		t.Errorf("%+v", v)
	}
}

func TestScansWritesAndUnknownTablesHaveNoGrade(t *testing.T) {
	r := NewReader(mapped(t, "Shop", single, schemaOf("pk sk")), Table{Name: "Plain", Schema: schemaOf("pk")})
	for _, p := range []Pattern{
		{Kind: Scan, Operation: "Scan", Table: "Shop"}, {Kind: Write, Operation: "PutItem", Table: "Shop"},
		{Kind: Read, Operation: "GetItem", Table: "Plain"}, {Kind: Read, Operation: "GetItem", Table: "Elsewhere"},
		{Kind: Other, Table: "Shop"}, {Kind: Statement, Operation: "PartiQL"},
	} {
		if v := r.Grade(p); v != nil {
			t.Errorf("%s has grade %s", p.Text(), v.Grade)
		}
	}
}

// TestDeclaredReadsComeFirst holds what an entry of `reads` with `of` decides.
func TestDeclaredReadsComeFirst(t *testing.T) {
	const rules = `
mapping: 1
families: {d: {max_versions: 1}, x: {max_versions: 1}}
rules:
- name: order
  match: {pk: "USER#{user}", sk: "ORDER#{id}"}
  row: "u#{user}#o#{id}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
  index:
  - name: open
    when: "has(item.state) && item.state == 'open'"
    row: "open#{user}#{id}"
    cells: [{attr: total, to: "x:t"}]
reads:
`
	for name, c := range map[string]struct {
		reads, request string
		grade          access.Grade
		declared, key  string
	}{
		"the derived one": {`{name: orders, prefix: "u#{user}#o#", of: "Query pk = :u and begins_with(sk, 'ORDER#')"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#')", access.Served, "orders", "u#{user}#o#"},
		"a wider one": {`{name: all of a user, prefix: "u#{user}#", of: "Query pk = ? and begins_with(sk, ?)"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#2026')", access.WiderRange, "all of a user", "u#{user}#"},
		"another index": {`{name: open orders, prefix: "open#{user}#", of: "Query by_state state = ?"}`,
			"Query by_state state='a'", access.Served, "open orders", "open#{user}#"},
		"no such operation": {`{name: orders, prefix: "u#{user}#o#", of: "all orders"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#')", access.Served, "", "u#{user}#o#"},
		"another condition": {`{name: orders, prefix: "u#{user}#", of: "Query pk = :u"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#')", access.Served, "", "u#{user}#o#"},
		"a rule that it leaves out": {`{name: carts, prefix: "u#{user}#", of: "Query pk = :u and begins_with(sk, 'CART#')"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#')", access.Served, "", "u#{user}#o#"},
		"an item": {`{name: one, row: "u#{user}#o#{id}", of: GetItem}`,
			"GetItem pk='USER#a' and sk='ORDER#1'", access.Served, "one", "u#{user}#o#{id}"},
		"backward": {`{name: orders, prefix: "u#{user}#o#", of: "Query pk = :u and begins_with(sk, 'ORDER#')"}`,
			"Query pk='USER#a' and begins_with(sk,'ORDER#') backward", access.OrderDiffers, "orders", "u#{user}#o#"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(mapped(t, "Shop", rules+"- "+c.reads+"\n", schemaOf("pk sk"), indexOf("by_state: state, sk")))
			v := r.Grade(one(t, r, "Shop", c.request))
			if v.Read == nil || v.Grade != c.grade || v.Declared != c.declared || v.Read.Key != c.key {
				t.Errorf("%+v, read %+v", v, v.Read)
			}
		})
	}
}

func TestOfIsParsedLikeAKeyCondition(t *testing.T) {
	for of, want := range map[string]string{
		"GetItem":             "GetItem",
		"GetItem pk = :p":     "GetItem pk =",
		"Query pk = :p":       "Query pk =",
		"Query pk = 'USER#a'": "Query pk = USER#a",
		"Query pk = :p and begins_with(sk, 'A#')":    "Query pk = sk begins_with A#",
		"Query by_x \"State#Date\" = ? and Date > 5": "Query by_x Date > 5 State#Date =",
		"Query GSI-1 a=? and b between 'a' and 'b'":  "Query GSI-1 a = b BETWEEN a b",
		"Query pk = ? AND sk >= ?":                   "Query pk = sk >=",
		"Query pk between ? and ?":                   "",
		"GSI4":                                       "",
		"Query GSI4":                                 "",
		"Query STAR#":                                "",
		"Query pk = USER#…":                          "",
		"GetItem and Query STAR#":                    "",
		"Query pk = 'open":                           "",
		"Scan":                                       "",
		"":                                           "",
	} {
		d, ok := parseOf(of)
		got := ""
		if ok {
			got = d.text()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
}

// text shows a declaration.
func (d *declared) text() string {
	words := []string{"Query"}
	if d.get {
		words[0] = "GetItem"
	}
	if d.index != "" {
		words = append(words, d.index)
	}
	tests := map[string]string{}
	var names []string
	for _, x := range d.tests {
		s := x.Attr + " " + x.Op
		for _, v := range x.Values {
			s += " " + v.S
		}
		tests[x.Attr] = s
		names = append(names, x.Attr)
	}
	for _, n := range sorted(names) {
		words = append(words, tests[n])
	}
	return strings.Join(words, " ")
}
