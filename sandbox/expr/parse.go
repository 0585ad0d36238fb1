package expr

import (
	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// node is one node of a parsed expression. Op is "path", "value", a comparator, an
// arithmetic sign, AND OR NOT BETWEEN IN, or a function's name with isCall set.
type node struct {
	op     string
	isCall bool
	path   Path
	value  *attr.Value
	args   []*node
}

// typ is the type that a node is known to have before any item is seen.
func (n *node) typ() attr.Kind {
	if n.op == "value" && n.value != nil {
		return n.value.Kind
	}
	return attr.None
}

// Condition parses a condition or filter expression.
func (e *Env) Condition(param, src string) (*Condition, *wire.Error) {
	var c Condition
	err := e.parse(param, src, func(p *parser) *wire.Error {
		c.root = p.or()
		if p.peek().kind != tokEOF {
			p.unexpected()
		}
		p.asCondition(c.root)
		return p.first(faultParens, faultFunction, faultMisuse, faultReserved, faultCondition,
			faultName, faultCount, faultOperand, faultDistinct, faultArgument)
	})
	return &c, err
}

// Projection parses a projection expression.
func (e *Env) Projection(src string) (*Projection, *wire.Error) {
	var paths []Path
	err := e.parse("ProjectionExpression", src, func(p *parser) *wire.Error {
		for {
			paths = p.addPath(paths, p.path())
			if !p.take(",") {
				break
			}
		}
		if p.peek().kind != tokEOF {
			p.unexpected()
		}
		return p.first(faultReserved, faultName, faultOperand, faultOverlap, faultConflict)
	})
	if err != nil {
		return nil, err
	}
	return NewProjection(paths), nil
}

// maxNesting bounds recursion, far above what the service lets through.
const maxNesting = 300

func (p *parser) deeper() {
	if p.depth++; p.depth > maxNesting {
		panic(wire.Invalid("The expression is too deeply nested"))
	}
}

func (p *parser) or() *node {
	p.deeper()
	defer func() { p.depth-- }()
	left := p.and()
	for p.peek().is("OR") {
		p.at++
		left = p.logic("OR", left, p.and())
	}
	return left
}

func (p *parser) and() *node {
	left := p.not()
	for p.peek().is("AND") {
		p.at++
		left = p.logic("AND", left, p.not())
	}
	return left
}

func (p *parser) logic(op string, args ...*node) *node {
	p.operator()
	for _, a := range args {
		p.asCondition(a)
	}
	return &node{op: op, args: args}
}

func (p *parser) not() *node {
	if p.peek().is("NOT") {
		p.deeper()
		defer func() { p.depth-- }()
		p.at++
		return p.logic("NOT", p.not())
	}
	return p.primary()
}

// primary reads a condition in parentheses, a comparison or a function call. What
// follows "(" is a condition or an operand: that shows only after it, so it tries.
func (p *parser) primary() *node {
	if p.peek().sym("(") {
		if n := p.parenthesized(); n != nil {
			return n
		}
	}
	left := p.operand()
	switch t := p.peek(); {
	case t.kind == tokSymbol && comparators[t.text]:
		p.at++
		return p.comparison(t.text, left, p.operand())
	case t.is("BETWEEN"):
		p.at++
		low := p.operand()
		if !p.peek().is("AND") {
			p.unexpected()
		}
		p.at++
		return p.comparison("BETWEEN", left, low, p.operand())
	case t.is("IN"):
		p.at++
		return p.in(left)
	case left.isCall:
		p.close()
		return left
	}
	p.unexpected()
	return nil
}

var comparators = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true}

// parenthesized reads "(" condition ")" or gives nil with nothing read, when what is in
// the parentheses turns out to be an operand.
func (p *parser) parenthesized() (n *node) {
	end := p.matching()
	after := p.toks[min(end+1, len(p.toks)-1)]
	if comparators[after.text] && after.kind == tokSymbol || after.is("BETWEEN") || after.is("IN") {
		return nil
	}
	double := p.ahead(1).sym("(") && p.matchingAt(p.at+1) == end-1
	p.want("(")
	n = p.or()
	p.want(")")
	if double {
		p.fault(faultParens, "The expression has redundant parentheses;")
	}
	return n
}

func (p *parser) matching() int { return p.matchingAt(p.at) }

// matchingAt is the index of the parenthesis that closes the one at from; past the end
// when none does.
func (p *parser) matchingAt(from int) int {
	level := 0
	for i := from; i < len(p.toks); i++ {
		switch {
		case p.toks[i].sym("("):
			level++
		case p.toks[i].sym(")"):
			if level--; level == 0 {
				return i
			}
		}
	}
	return len(p.toks)
}

func (p *parser) in(left *node) *node {
	p.want("(")
	args := []*node{left}
	for {
		args = append(args, p.operand())
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	if n := len(args) - 1; n > 100 {
		p.fault(faultCount, "Invalid number of operands for operator or function; operator or function: IN, maximum number of operands: 100")
	}
	return p.comparison("IN", args...)
}

// operand reads a path, a value placeholder or a function call, perhaps in parentheses.
func (p *parser) operand() *node {
	t := p.peek()
	switch {
	case t.sym("("):
		p.deeper()
		defer func() { p.depth-- }()
		p.at++
		if p.peek().sym("(") {
			p.fault(faultParens, "The expression has redundant parentheses;")
		}
		n := p.operand()
		p.want(")")
		return n
	case t.kind == tokValue:
		p.at++
		v, ok := p.env.Values[t.text]
		if !ok {
			kind := faultName
			if p.env.inUpdate {
				kind = faultValue
			}
			p.fault(kind, "An expression attribute value used in expression is not defined; attribute value: "+t.text)
		}
		p.env.usedValues[t.text] = true
		return &node{op: "value", value: v}
	case t.kind == tokWord && p.ahead(1).sym("("):
		p.at += 2
		return p.call(t.text)
	}
	return &node{op: "path", path: p.path()}
}

func (p *parser) call(name string) *node {
	p.deeper()
	defer func() { p.depth-- }()
	n := &node{op: name, isCall: true}
	if !p.peek().sym(")") {
		for {
			n.args = append(n.args, p.operand())
			if !p.take(",") {
				break
			}
		}
	}
	p.want(")")
	p.checkCall(n)
	return n
}

// close ends one condition: of the faults found so far the first in the service's
// order is the one it would report.
func (p *parser) close() {
	if err := p.first(faultName, faultCount, faultOperand, faultDistinct, faultArgument); err != nil {
		p.fault(faultCondition, err.Message)
	}
}
