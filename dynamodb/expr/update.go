package expr

import (
	"slices"
	"sort"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Update is a parsed update expression.
type Update struct {
	actions []action
	Paths   []Path // the paths that the actions write
}

// action is one action of an update.
type action struct {
	verb   string // SET REMOVE ADD DELETE
	path   Path
	value  *node
	legacy bool // from AttributeUpdates, which has other messages and adds to lists
}

// Update parses an update expression.
func (e *Env) Update(src string) (*Update, *wire.Error) {
	e.inUpdate = true
	defer func() { e.inUpdate = false }()
	u := &Update{}
	err := e.parse("UpdateExpression", src, func(p *parser) *wire.Error {
		seen := map[string]bool{}
		for p.peek().kind != tokEOF {
			p.section(u, seen)
		}
		return p.first(badReserved, badFunction, badMisuse, badSection, badName, badValue, badOverlap,
			badConflict, badOperand, badCount, badArgument)
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// section parses one section of an update: SET, REMOVE, ADD or DELETE with its actions.
func (p *parser) section(u *Update, seen map[string]bool) {
	verb := strings.ToUpper(p.peek().text)
	switch {
	case p.peek().kind != tokWord, verb != "SET" && verb != "REMOVE" && verb != "ADD" && verb != "DELETE":
		p.unexpected()
	case seen[verb]:
		p.violation(badSection, `The "`+verb+`" section can only be used once in an update expression;`)
	}
	seen[verb] = true
	p.at++
	for {
		a := action{verb: verb, path: p.path()}
		switch verb {
		case "SET":
			p.want("=")
			a.value = p.sum()
		case "ADD", "DELETE":
			if p.peek().kind != tokValue {
				p.unexpected()
			}
			a.value = p.operand()
			p.checkSetOperand(verb, a.value.typ())
		}
		u.Paths = p.addPath(u.Paths, a.path)
		u.actions = append(u.actions, a)
		if !p.take(",") {
			return
		}
	}
}

// longNames are the types as messages about ADD and DELETE name them.
var longNames = map[attr.Kind]string{attr.S: "STRING", attr.N: "NUMBER", attr.B: "BINARY", attr.Null: "NULL",
	attr.Bool: "BOOLEAN", attr.L: "LIST", attr.M: "MAP"}

// checkSetOperand checks the type of the value of an ADD or DELETE.
func (p *parser) checkSetOperand(verb string, t attr.Kind) {
	if long := longNames[t]; long != "" && (verb != "ADD" || t != attr.N) {
		p.violation(badOperand, "Incorrect operand type for operator or function; operator: "+verb+", operand type: "+long)
	}
}

// sum parses the right side of a SET: an operand, or two with a sign between them.
func (p *parser) sum() *node {
	var left *node
	if p.peek().sym("(") {
		p.deeper()
		p.at++
		left = p.sum()
		p.want(")")
		p.depth--
	} else {
		left = p.operand()
	}
	t := p.peek()
	if !t.sym("+") && !t.sym("-") {
		return left
	}
	p.at++
	p.operator()
	var right *node
	if p.peek().sym("(") {
		p.at++
		right = p.sum()
		p.want(")")
	} else {
		right = p.operand()
	}
	for _, a := range []*node{left, right} {
		if k := a.typ(); k != attr.None && k != attr.N {
			p.wrongType("operator or function", t.text, k)
		}
	}
	return &node{op: t.text, args: []*node{left, right}}
}

// Nested returns the top-level attributes of which the update reads or writes parts.
func (u *Update) Nested() map[string]bool {
	nested := map[string]bool{}
	note := func(p Path) {
		if len(p) > 1 {
			nested[p[0].Name] = true
		}
	}
	for _, a := range u.actions {
		note(a.path)
		if a.value != nil {
			a.value.walk(func(n *node) {
				if n.op == "path" {
					note(n.path)
				}
			})
		}
	}
	return nested
}

// Touches reports whether the update writes a top-level attribute or a part of it.
func (u *Update) Touches(name string) bool {
	for _, p := range u.Paths {
		if p[0].Name == name {
			return true
		}
	}
	return false
}

// Adds reports whether an action is ADD: what it writes depends on the value before, and so a
// second call changes the item again.
func (u *Update) Adds() bool {
	return slices.ContainsFunc(u.actions, func(a action) bool { return a.verb == "ADD" })
}

// Computes reports whether a SET reads the item: arithmetic, list_append, if_not_exists, a copy.
func (u *Update) Computes() bool {
	return slices.ContainsFunc(u.actions, func(a action) bool {
		return a.verb == "SET" && a.value != nil && a.value.op != "value"
	})
}

// OnlyRemoves reports whether all actions are REMOVE or DELETE: such an update does not create a
// missing item.
func (u *Update) OnlyRemoves() bool {
	for _, a := range u.actions {
		if a.verb == "SET" || a.verb == "ADD" {
			return false
		}
	}
	return true
}

var (
	errOperand = wire.Invalid("An operand in the update expression has an incorrect data type")
	errMissing = wire.Invalid("The provided expression refers to an attribute that does not exist in the item")
	errLegacy  = wire.Invalid("Type mismatch for attribute to update")
	errPath    = wire.Invalid("The document path provided in the update expression is invalid for update")
)

// Apply changes item, which must be a copy. All operands are read from the item before the update,
// and list indexes refer to it.
func (u *Update) Apply(item *attr.Map) *wire.Error {
	values := make([]*attr.Value, len(u.actions))
	for i, a := range u.actions {
		if a.value == nil {
			continue
		}
		v, err := a.value.operand(*item)
		if err != nil {
			return err
		}
		c := v.Clone()
		values[i] = &c
	}
	order := u.order()
	for _, i := range order {
		if err := u.actions[i].apply(item, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// order returns the order in which actions are applied: assignments first, lower indexes before
// higher ones, so that elements past the end are appended in order; then removals, higher indexes
// before lower ones, so that each index stays valid.
func (u *Update) order() []int {
	order := make([]int, len(u.actions))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := &u.actions[order[i]], &u.actions[order[j]]
		if ra, rb := a.verb == "REMOVE", b.verb == "REMOVE"; ra != rb {
			return rb
		} else if ra {
			return less(b.path, a.path)
		}
		return less(a.path, b.path)
	})
	return order
}

// less orders paths by their steps.
func less(a, b Path) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return a[i].Index < b[i].Index || a[i].Index == b[i].Index && a[i].Name < b[i].Name
		}
	}
	return len(a) < len(b)
}

// operand evaluates the right side of a SET on the item before the update.
func (n *node) operand(item attr.Map) (*attr.Value, *wire.Error) {
	switch n.op {
	case "value":
		return n.value, nil
	case "path":
		if v := n.path.Find(item); v != nil {
			return v, nil
		}
		return nil, errMissing
	case "if_not_exists":
		if v := n.args[0].path.Find(item); v != nil {
			return v, nil
		}
		return n.args[1].operand(item)
	}
	a, err := n.args[0].operand(item)
	if err != nil {
		return nil, err
	}
	b, err := n.args[1].operand(item)
	if err != nil {
		return nil, err
	}
	return combine(n.op, a, b)
}

// combine applies list_append or an arithmetic sign.
func combine(op string, a, b *attr.Value) (*attr.Value, *wire.Error) {
	if op == "list_append" {
		if a.Kind != attr.L || b.Kind != attr.L {
			return nil, errOperand
		}
		list := append(append([]attr.Value{}, a.List...), b.List...)
		return &attr.Value{Kind: attr.L, List: list}, nil
	}
	if a.Kind != attr.N || b.Kind != attr.N {
		return nil, errOperand
	}
	text, err := attr.Add(a.Str, b.Str, op == "-")
	if err != nil {
		return nil, err
	}
	v := attr.Number(text)
	return &v, nil
}

// apply applies an action with its evaluated operand to an item.
func (a *action) apply(item *attr.Map, v *attr.Value) *wire.Error {
	last := a.path[len(a.path)-1]
	if len(a.path) == 1 {
		root := attr.Value{Kind: attr.M, Map: *item}
		err := a.applyTo(&root, last, v)
		*item = root.Map
		return err
	}
	parent := a.path[:len(a.path)-1].Find(*item)
	if parent == nil || last.IsIndex && parent.Kind != attr.L || !last.IsIndex && parent.Kind != attr.M {
		return errPath
	}
	return a.applyTo(parent, last, v)
}

// applyTo applies an action to the element of parent at the last step of its path.
func (a *action) applyTo(parent *attr.Value, last Step, v *attr.Value) *wire.Error {
	old := last.in(parent)
	switch a.verb {
	case "SET":
		put(parent, last, *v)
	case "REMOVE":
		if old != nil {
			remove(parent, last)
		}
	case "ADD":
		return a.add(parent, last, old, v)
	case "DELETE":
		if old == nil {
			return nil
		}
		if !v.IsSet() || old.Kind != v.Kind {
			return a.mismatch()
		}
		if rest := old.Minus(v); len(rest.Set) > 0 {
			*old = rest
		} else {
			remove(parent, last)
		}
	}
	return nil
}

// mismatch returns the error for an operand and an attribute of different types.
func (a *action) mismatch() *wire.Error {
	if a.legacy {
		return errLegacy
	}
	return errOperand
}

// add implements ADD: for numbers, sets and, in AttributeUpdates, lists.
func (a *action) add(parent *attr.Value, last Step, old, v *attr.Value) *wire.Error {
	switch {
	case v.Kind != attr.N && !v.IsSet() && (!a.legacy || v.Kind != attr.L):
		return errOperand
	case old == nil:
		put(parent, last, *v)
	case old.Kind != v.Kind:
		return a.mismatch()
	case v.Kind == attr.L:
		old.List = append(old.List, v.List...)
	case v.Kind == attr.N:
		text, err := attr.Add(old.Str, v.Str, false)
		if err != nil {
			return err
		}
		old.Str = text
	default:
		*old = old.Union(v)
	}
	return nil
}

// put sets an element of a map or list; past the end of a list it appends.
func put(parent *attr.Value, s Step, v attr.Value) {
	switch {
	case !s.IsIndex:
		parent.Map.Set(s.Name, v)
	case s.Index < len(parent.List):
		parent.List[s.Index] = v
	default:
		parent.List = append(parent.List, v)
	}
}

// remove removes an element of a map or list.
func remove(parent *attr.Value, s Step) {
	if !s.IsIndex {
		parent.Map.Delete(s.Name)
		return
	}
	parent.List = append(parent.List[:s.Index], parent.List[s.Index+1:]...)
}
