package expr

import (
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
)

// Condition is a parsed condition or filter expression.
type Condition struct{ root *node }

// Match evaluates the condition on an item; nil is an item that does not exist.
func (c *Condition) Match(item attr.Map) bool { return c.root.truth(item) }

// Heads are the top-level attributes that the condition looks at.
func (c *Condition) Heads() map[string]bool {
	heads := map[string]bool{}
	c.root.walk(func(n *node) {
		if n.op == "path" {
			heads[n.path[0].Name] = true
		}
	})
	return heads
}

// Nested are the top-level attributes into which the condition reaches.
func (c *Condition) Nested() map[string]bool {
	nested := map[string]bool{}
	c.root.walk(func(n *node) {
		if n.op == "path" && len(n.path) > 1 {
			nested[n.path[0].Name] = true
		}
	})
	return nested
}

func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, a := range n.args {
		a.walk(visit)
	}
}

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

// compare applies a comparator or a two-operand function to two values, either of
// which may be missing.
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

// eval gives an operand's value, or nil when it has none.
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
	num := attr.Number(itoa(n))
	return &num
}
