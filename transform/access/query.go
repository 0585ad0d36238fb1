package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// The operators of a Test.
const (
	Equal      = "="
	BeginsWith = "begins_with"
	Between    = "BETWEEN"
	Less       = "<"
	LessEqual  = "<="
	More       = ">"
	MoreEqual  = ">="
)

// Test is the condition on one key attribute. Without Values it holds for some value that is not
// known.
type Test struct {
	Attr   string
	Op     string
	Values []change.Value
}

// How is what a read shows of a capture or attribute.
type How string

// What a read shows of a value: all of it, how it begins, its bounds, or something that no row key
// can express.
const (
	Is      How = "="
	Begins  How = "begins_with"
	Within  How = "range"
	Limited How = "?"
)

// howOf is what each operator shows of a whole value.
var howOf = map[string]How{Equal: Is, BeginsWith: Begins, Between: Within, Less: Within, LessEqual: Within,
	More: Within, MoreEqual: Within}

// Bound is a rule that takes items of a read, and what the read shows of its captures. A capture
// that it does not have is free.
type Bound struct {
	Rule     string         `json:"rule"`
	Captures map[string]How `json:"captures,omitempty"`
}

// Text returns the rule with what is shown of its captures other than one value: order ({id}
// begins_with).
func (b *Bound) Text() string {
	var shown []string
	for _, name := range slices.Sorted(maps.Keys(b.Captures)) {
		if how := b.Captures[name]; how != Is {
			shown = append(shown, "{"+name+"} "+string(how))
		}
	}
	if len(shown) == 0 {
		return b.Rule
	}
	return b.Rule + " (" + strings.Join(shown, ", ") + ")"
}

// Query is a read of items by the key of a table or of an index.
type Query struct {
	Get      bool             // one item, by its whole key
	Index    string           // "" for the table
	Key      []change.KeyAttr // the key of the table or index, the partition key first; nil if it is not known
	Sort     []string         // those attributes of Key that sort the items of a partition
	Tests    []Test           // Judge ignores their values
	Rules    []Bound          // from Rules
	Backward bool

	tableKey []string // attributes of the table's key
}

// test returns the test of an attribute, nil when there is none.
func (q *Query) test(attr string) *Test {
	i := slices.IndexFunc(q.Tests, func(t Test) bool { return t.Attr == attr })
	if i < 0 {
		return nil
	}
	return &q.Tests[i]
}

// partition reports whether an attribute is part of the partition key. Where the key is not known,
// the first test is of it.
func (q *Query) partition(attr string) bool {
	if q.Key == nil {
		return len(q.Tests) > 0 && q.Tests[0].Attr == attr
	}
	return !slices.Contains(q.Sort, attr) &&
		slices.ContainsFunc(q.Key, func(k change.KeyAttr) bool { return k.Name == attr })
}

// number reports whether a key attribute is a number.
func (q *Query) number(attr string) bool {
	return slices.ContainsFunc(q.Key, func(k change.KeyAttr) bool { return k.Name == attr && k.Type == 'N' })
}

// Grade is how well rows answer a read.
type Grade string

// The grades, the best first.
const (
	Served       Grade = "served"        // exactly the rows of its items, in their order
	OrderDiffers Grade = "order differs" // exactly these rows, in another order
	WiderRange   Grade = "wider range"   // a range that holds more, which the application filters
	NoRead       Grade = "no read"
)

// rank orders grades, the best first.
var rank = map[Grade]int{Served: 0, OrderDiffers: 1, WiderRange: 2, NoRead: 3}

// Read is a way to read Bigtable. Key is a template as under `reads` of a mapping; a range has two,
// with ".." between them.
type Read struct {
	How      string   `json:"how"` // row, prefix, range
	Key      string   `json:"key"`
	Families []string `json:"families,omitempty"` // those to read; empty: all
	Rows     []string `json:"rows"`               // the rules and indexes that write them
}

// IndexRow is an entry for `index` of a rule, as YAML.
type IndexRow struct {
	Rule   string `json:"rule"`
	Entry  string `json:"entry"`
	Family string `json:"family,omitempty"` // an entry for `families`, if the mapping lacks it
}

// Verdict is the answer of Judge. Why explains the grade in words; of a read that is served, it has
// what that depends on, or nothing.
type Verdict struct {
	Grade    Grade      `json:"grade"`
	Why      string     `json:"why,omitempty"`
	Read     *Read      `json:"read,omitempty"`
	Declared string     `json:"declared,omitempty"` // the entry of `reads` that it is
	Index    []IndexRow `json:"index,omitempty"`    // what would serve a read without one
	ByValues bool       `json:"-"`                  // the grade does not hold for the values that Why names
}
