package expr

import (
	"sort"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Update is a parsed update expression.
type Update struct {
	actions []action
	Paths   []Path
}

type action struct {
	verb   string // SET REMOVE ADD DELETE
	path   Path
	value  *node
	legacy bool // from AttributeUpdates: says other words, and adds to lists
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
		return p.first(faultReserved, faultFunction, faultMisuse, faultSection, faultName, faultValue, faultOverlap,
			faultConflict, faultOperand, faultCount, faultArgument)
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

func (p *parser) section(u *Update, seen map[string]bool) {
	verb := strings.ToUpper(p.peek().text)
	switch {
	case p.peek().kind != tokWord, verb != "SET" && verb != "REMOVE" && verb != "ADD" && verb != "DELETE":
		p.unexpected()
	case seen[verb]:
		p.fault(faultSection, `The "`+verb+`" section can only be used once in an update expression;`)
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

var longNames = map[attr.Kind]string{attr.S: "STRING", attr.N: "NUMBER", attr.B: "BINARY", attr.Null: "NULL",
	attr.Bool: "BOOLEAN", attr.L: "LIST", attr.M: "MAP"}

func (p *parser) checkSetOperand(verb string, t attr.Kind) {
	if long := longNames[t]; long != "" && (verb != "ADD" || t != attr.N) {
		p.fault(faultOperand, "Incorrect operand type for operator or function; operator: "+verb+", operand type: "+long)
	}
}

// sum reads the right side of a SET: an operand, or two with a sign between.
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

// Nested are the top-level attributes into which the update reaches.
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

// Touches says whether the update writes below a top-level attribute.
func (u *Update) Touches(name string) bool {
	for _, p := range u.Paths {
		if p[0].Name == name {
			return true
		}
	}
	return false
}

// OnlyTakes says that nothing but REMOVE and DELETE is in the update: such a one does
// not create an item that is not there.
func (u *Update) OnlyTakes() bool {
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

// Apply changes item, which must be the caller's own copy. All operands are read
// from the item as it was; list indexes mean the elements as they were.
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

// order puts assignments first, lower indexes before higher so that elements past the
// end are appended in order, and removals last, higher indexes before lower so that
// each index still means what it meant.
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

func less(a, b Path) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return a[i].Index < b[i].Index || a[i].Index == b[i].Index && a[i].Name < b[i].Name
		}
	}
	return len(a) < len(b)
}

// operand evaluates the right side of a SET.
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

func (a *action) apply(item *attr.Map, v *attr.Value) *wire.Error {
	last := a.path[len(a.path)-1]
	if len(a.path) == 1 {
		root := attr.Value{Kind: attr.M, Map: *item}
		err := a.at(&root, last, v)
		*item = root.Map
		return err
	}
	parent := a.path[:len(a.path)-1].Find(*item)
	if parent == nil || last.IsIndex && parent.Kind != attr.L || !last.IsIndex && parent.Kind != attr.M {
		return errPath
	}
	return a.at(parent, last, v)
}

func (a *action) at(parent *attr.Value, last Step, v *attr.Value) *wire.Error {
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
		if left := old.Minus(v); len(left.Set) > 0 {
			*old = left
		} else {
			remove(parent, last)
		}
	}
	return nil
}

func (a *action) mismatch() *wire.Error {
	if a.legacy {
		return errLegacy
	}
	return errOperand
}

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

func remove(parent *attr.Value, s Step) {
	if !s.IsIndex {
		parent.Map.Delete(s.Name)
		return
	}
	parent.List = append(parent.List[:s.Index], parent.List[s.Index+1:]...)
}
