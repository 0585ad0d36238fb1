package replay_test

// design is a table with its mapping, and what its attributes are drawn from.
type design struct {
	keys    []string          // "pk:S"
	indexes []index           //
	draw    map[string]string // the values of each attribute, separated by spaces; of a key there are always some
	mapping string
}

type index struct {
	name, keys string // "a:S+b:N,c:S": the partition key, then the sort key
	projection string // ALL where it is ""
	local      bool
	later      bool // it was made after the description of its table was read
}

const letters = "a b ab a# b#a a!b B \u00e9 c"

// designs are tables of one target: the last two share rows.
var designs = []design{
	{ // a row for each item, and an index of the other order
		keys: []string{"pk:S", "sk:S"}, draw: map[string]string{"pk": "a b", "sk": letters, "x": "1 2 3", "y": "a b"},
		indexes: []index{{name: "byx", keys: "x:S,y:S"}, {name: "only", keys: "y:S", projection: "KEYS_ONLY"},
			{name: "local", keys: "pk:S,x:S", local: true}},
		mapping: `rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "A#{p}#{s}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
  index:
  - {name: byx, when: "has(item.x) && has(item.y)", row: "Ax#{x}#{y}#{p}#{s}", cells: [{attr: x, to: "x:x"}]}
  - {name: local, when: has(item.x), row: "Al#{p}#{x}#{s}", cells: [{attr: y, to: "x:y"}]}
`,
	},
	{ // rows of an index stand between the rows of the items
		keys: []string{"pk:S", "sk:S"}, draw: map[string]string{"pk": "a b", "sk": letters, "z": "1 2 3", "y": "a b"},
		mapping: `rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "B#{p}#{s}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
  index: [{name: beside, when: has(item.z), row: "B#{p}#!{z}#{s}", cells: [{attr: z, to: "x:z"}]}]
`,
	},
	{ // numbers
		keys: []string{"pk:N", "sk:N"},
		draw: map[string]string{
			"pk": "1 -2 0.5", "x": "1 2",
			"sk": "1 2 10 -1 -10 1.5 99999999999999999999999999999999999999 1e-130 0 -0.1 1.0 1e2",
		},
		mapping: `rules:
- name: r
  match: {pk: "{p}", sk: "{s}"}
  row: "C#{p}#{s|ordnum}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`,
	},
	{ // numbers as text, and in reverse
		keys: []string{"pk:S", "sk:N"}, draw: map[string]string{"pk": "a b", "sk": "1 2 10 12 105", "x:N": "1 2 3 10 20"},
		indexes: []index{{name: "byx", keys: "x:N,sk:N"}, {name: "wide", keys: "pk:S+x:N,sk:N"}},
		mapping: `rules:
- name: r
  match: {pk: "{p}", sk: "{s:d}"}
  row: "D#{salt(p;4)}#{p}#{s|rev64}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
  index:
  - {name: byx, when: has(item.x), row: "Dx#{x}#{s|pad(5)}#{p}", cells: [{attr: x, to: "x:x"}]}
  - {name: text, row: "Dt#{p}#{s}", cells: [{const: "", to: "x:_"}]}
`,
	},
	{ // parts of the sort key in another order, and a rule that drops
		keys: []string{"pk:S", "sk:S"},
		draw: map[string]string{"pk": "a U#b", "sk": "1#2 1#3 2#1 10#1 2#10 I X#1", "x": "1 2"},
		mapping: `rules:
- {name: dropped, match: {pk: "{p}", sk: "X#{n}"}, drop: true}
- name: info
  match: {pk: "{p}", sk: {equals: I}}
  row: "E#{p}#"
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
- name: r
  match: {pk: "{p}", sk: "{a}#{b}"}
  row: "E#{p}#{b}#{a}"
  segments: strict
  on_ttl_expiry: keep
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`,
	},
	{ // binary keys, and a table without a sort key
		keys: []string{"pk:B"}, draw: map[string]string{"pk": "AAE= AA== /w== AAECAw==", "x": "1 2"},
		indexes: []index{{name: "byx", keys: "x:S"}},
		mapping: `rules:
- name: r
  match: {pk: "{p}"}
  row: "F#{p|hex}"
  cells: [{attrs: all, except: [pk], to: "d:{attr}"}]
  index: [{name: byx, when: has(item.x), row: "Fx#{x}#{p|hex}", cells: [{attr: x, to: "x:x"}]}]
`,
	},
	{ // shared rows, of two tables
		keys: []string{"pk:S", "sk:S"},
		draw: map[string]string{"pk": "a b", "sk": "M C#1 C#2 C#10", "x": "1 2", "h": "1 2 3"},
		mapping: `rules:
- name: m
  match: {pk: "{p}", sk: {equals: M}}
  row: "G#{p}"
  cells: [{attr: x, to: "d:m"}, {attr: h, to: "h:h"}]
- name: c
  match: {pk: "{p}", sk: "C#{c}"}
  row: "G#{p}"
  cells: [{attr: x, to: "x:{c}"}]
`,
	},
	{
		keys: []string{"pk:S"}, draw: map[string]string{"pk": "a b", "x": "1 2 3"},
		mapping: `rules:
- name: other
  match: {pk: "{p}"}
  row: "G#{p}"
  cells: [{attr: x, to: "d:other"}]
`,
	},
}

const head = "mapping: 1\nsegments: escape\n" +
	"families: {d: {max_versions: 1}, x: {max_versions: 1}, h: {max_versions: 3, removed: keep}}\n"
