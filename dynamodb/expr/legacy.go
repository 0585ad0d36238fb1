package expr

import "github.com/tailrace-cdc/replicator/dynamodb/attr"

// LegacyTest is one entry of a legacy condition: Expected, ScanFilter, QueryFilter or
// KeyConditions.
type LegacyTest struct {
	Name   string
	Op     string // ComparisonOperator
	Values []attr.Value
}

// legacyOps has the operator of each ComparisonOperator.
var legacyOps = map[string]string{"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
	"IN": "IN", "BETWEEN": "BETWEEN", "BEGINS_WITH": "begins_with", "CONTAINS": "contains", "NOT_CONTAINS": "contains",
	"NULL": "attribute_not_exists", "NOT_NULL": "attribute_exists"}

// LegacyCondition returns the condition of legacy tests joined by AND, or by OR; nil without tests.
func LegacyCondition(tests []LegacyTest, or bool) *Condition {
	join := "AND"
	if or {
		join = "OR"
	}
	var root *node
	for _, t := range tests {
		n := t.node()
		if root == nil {
			root = n
		} else {
			root = &node{op: join, args: []*node{root, n}}
		}
	}
	if root == nil {
		return nil
	}
	return &Condition{root: root}
}

// node returns the condition of one test. NOT_CONTAINS also demands that the attribute exists.
func (t *LegacyTest) node() *node {
	path := func() *node { return &node{op: "path", path: Path{{Name: t.Name}}} }
	n := &node{op: legacyOps[t.Op], args: []*node{path()}}
	for i := range t.Values {
		n.args = append(n.args, &node{op: "value", value: &t.Values[i]})
	}
	if t.Op != "NOT_CONTAINS" {
		return n
	}
	exists := &node{op: "attribute_exists", args: []*node{path()}}
	return &node{op: "AND", args: []*node{exists, {op: "NOT", args: []*node{n}}}}
}

// KeyTest returns the legacy test as the test of a key attribute.
func (t *LegacyTest) KeyTest() *KeyTest {
	k := &KeyTest{Op: legacyOps[t.Op]}
	for i := range t.Values {
		k.Values = append(k.Values, &t.Values[i])
	}
	return k
}

// LegacyUpdate is one entry of AttributeUpdates. Value is nil when none was sent.
type LegacyUpdate struct {
	Name   string
	Action string // PUT ADD DELETE
	Value  *attr.Value
}

// LegacyUpdates returns the update of AttributeUpdates.
func LegacyUpdates(all []LegacyUpdate) *Update {
	u := &Update{}
	for _, l := range all {
		a := action{verb: "SET", path: Path{{Name: l.Name}}, legacy: true}
		if l.Value != nil {
			a.value = &node{op: "value", value: l.Value}
		}
		switch {
		case l.Action == "DELETE" && l.Value == nil:
			a.verb = "REMOVE"
		case l.Action == "ADD" || l.Action == "DELETE":
			a.verb = l.Action
		}
		u.actions = append(u.actions, a)
		u.Paths = append(u.Paths, a.path)
	}
	return u
}
