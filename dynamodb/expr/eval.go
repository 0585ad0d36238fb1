package expr

import (
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
)

// Condition is a parsed condition or filter expression.
type Condition struct{ root *node }

// Match evaluates the condition on an item; nil stands for a missing item.
func (c *Condition) Match(item attr.Map) bool { return c.root.truth(item) }

// Heads returns the top-level attributes that the condition reads.
func (c *Condition) Heads() map[string]bool {
	heads := map[string]bool{}
	c.root.walk(func(n *node) {
		if n.op == "path" {
			heads[n.path[0].Name] = true
		}
	})
	return heads
}

// Nested returns the top-level attributes of which the condition reads parts.
func (c *Condition) Nested() map[string]bool {
	nested := map[string]bool{}
	c.root.walk(func(n *node) {
		if n.op == "path" && len(n.path) > 1 {
			nested[n.path[0].Name] = true
		}
	})
	return nested
}

// walk visits a node and all nodes below it.
func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, a := range n.args {
		a.walk(visit)
	}
}

// truth evaluates a condition.
func (n *node) truth(item attr.Map) bool {
	switch n.op {
	case "AND":
		return n.args[0].truth(item) && n.args[1].truth(item)
	case "OR":
		return n.args[0].truth(item) || n.args[1].truth(item)
	case "NOT":
		return !n.args[0].truth(item)
	case "attribute_exists":
		return n.args[0].path.Find(item) != nil
	case "attribute_not_exists":
		return n.args[0].path.Find(item) == nil
	}
	v := n.args[0].eval(item)
	if n.op == "IN" {
		for _, a := range n.args[1:] {
			if o := a.eval(item); v != nil && o != nil && v.Equal(o) {
				return true
			}
		}
		return false
	}
	o := n.args[1].eval(item)
	if n.op == "BETWEEN" {
		return compare(">=", v, o) && compare("<=", v, n.args[2].eval(item))
	}
	return compare(n.op, v, o)
}

// compare applies a comparator or a function of two operands. nil stands for a missing value.
func compare(op string, v, o *attr.Value) bool {
	switch {
	case op == "<>":
		return v == nil || o == nil || !v.Equal(o)
	case v == nil || o == nil:
		return false
	case op == "=":
		return v.Equal(o)
	case op == "begins_with":
		return v.Kind == o.Kind && (v.Kind == attr.S || v.Kind == attr.B) && strings.HasPrefix(v.Str, o.Str)
	case op == "contains":
		return contains(v, o)
	case op == "attribute_type":
		return v.Kind == attr.KindOf(o.Str)
	}
	order, ok := v.Compare(o)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// contains implements the function of that name for strings, binaries, sets and lists.
func contains(v, o *attr.Value) bool {
	switch {
	case v.Kind == attr.S || v.Kind == attr.B:
		return v.Kind == o.Kind && strings.Contains(v.Str, o.Str)
	case v.IsSet():
		return v.Element() == o.Kind && v.InSet(o.Str)
	case v.Kind == attr.L:
		for i := range v.List {
			if v.List[i].Equal(o) {
				return true
			}
		}
	}
	return false
}

// eval returns an operand's value, nil if it has none.
func (n *node) eval(item attr.Map) *attr.Value {
	switch n.op {
	case "path":
		return n.path.Find(item)
	case "value":
		return n.value
	case "size":
		return size(n.args[0].eval(item))
	}
	return nil
}

// size implements the function of that name; nil for values without a size.
func size(v *attr.Value) *attr.Value {
	if v == nil {
		return nil
	}
	var n int
	switch v.Kind {
	case attr.S, attr.B:
		n = len(v.Str)
	case attr.SS, attr.NS, attr.BS:
		n = len(v.Set)
	case attr.L:
		n = len(v.List)
	case attr.M:
		n = len(v.Map)
	default:
		return nil
	}
	num := attr.Number(strconv.Itoa(n))
	return &num
}

// node is one node of a parsed expression. op is "path", "value", a comparator, an arithmetic sign,
// AND, OR, NOT, BETWEEN, IN, or with isCall a function's name.
type node struct {
	op     string
	isCall bool
	path   Path
	value  *attr.Value
	args   []*node
}

// typ returns the type of a value placeholder, and None for all other nodes: their types depend on
// the item.
func (n *node) typ() attr.Kind {
	if n.op == "value" && n.value != nil {
		return n.value.Kind
	}
	return attr.None
}
