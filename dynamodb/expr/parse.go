package expr

import (
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Condition parses a condition or filter expression. param is the parameter's name.
func (e *Env) Condition(param, src string) (*Condition, *wire.Error) {
	var c Condition
	err := e.parse(param, src, func(p *parser) *wire.Error {
		c.root = p.or()
		if p.peek().kind != tokEOF {
			p.unexpected()
		}
		p.asCondition(c.root)
		return p.first(badParens, badFunction, badMisuse, badReserved, badCondition,
			badName, badCount, badOperand, badDistinct, badArgument)
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
		return p.first(badReserved, badName, badOperand, badOverlap, badConflict)
	})
	if err != nil {
		return nil, err
	}
	return NewProjection(paths), nil
}

// maxNesting limits recursion, far above the service's limit.
const maxNesting = 300

// deeper counts a level of recursion; the caller subtracts it.
func (p *parser) deeper() {
	if p.depth++; p.depth > maxNesting {
		panic(wire.Invalid("The expression is too deeply nested"))
	}
}

// or parses conditions joined by OR.
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

// and parses conditions joined by AND.
func (p *parser) and() *node {
	left := p.not()
	for p.peek().is("AND") {
		p.at++
		left = p.logic("AND", left, p.not())
	}
	return left
}

// logic returns the node of AND, OR or NOT.
func (p *parser) logic(op string, args ...*node) *node {
	p.operator()
	for _, a := range args {
		p.asCondition(a)
	}
	return &node{op: op, args: args}
}

// not parses a condition that NOT may precede.
func (p *parser) not() *node {
	if p.peek().is("NOT") {
		p.deeper()
		defer func() { p.depth-- }()
		p.at++
		return p.logic("NOT", p.not())
	}
	return p.primary()
}

// primary parses a condition in parentheses, a comparison or a function call.
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

// comparators are the symbols that compare two operands.
var comparators = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true}

// parenthesized parses "(" condition ")". When a comparator follows the closing parenthesis, the
// content is an operand: then it returns nil and reads nothing.
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
		p.violation(badParens, "The expression has redundant parentheses;")
	}
	return n
}

// matching returns the index of the parenthesis that closes the current one.
func (p *parser) matching() int { return p.matchingAt(p.at) }

// matchingAt returns the index of the parenthesis that closes the one at from, the number of tokens
// if none does.
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

// in parses the list of an IN.
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
		p.violation(badCount, "Invalid number of operands for operator or function; operator or function: IN, maximum "+
			"number of operands: 100")
	}
	return p.comparison("IN", args...)
}

// operand parses a path, a value placeholder or a function call, possibly in parentheses.
func (p *parser) operand() *node {
	t := p.peek()
	switch {
	case t.sym("("):
		p.deeper()
		defer func() { p.depth-- }()
		p.at++
		if p.peek().sym("(") {
			p.violation(badParens, "The expression has redundant parentheses;")
		}
		n := p.operand()
		p.want(")")
		return n
	case t.kind == tokValue:
		p.at++
		v, ok := p.env.Values[t.text]
		if !ok {
			kind := badName
			if p.env.inUpdate {
				kind = badValue
			}
			p.violation(kind, "An expression attribute value used in expression is not defined; attribute value: "+t.text)
		}
		p.env.usedValues[t.text] = true
		return &node{op: "value", value: v}
	case t.kind == tokWord && p.ahead(1).sym("("):
		p.at += 2
		return p.call(t.text)
	}
	return &node{op: "path", path: p.path()}
}

// call parses the arguments of a function.
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

// parse parses an expression with a grammar. Its errors name the parameter.
func (e *Env) parse(param, src string, grammar func(p *parser) *wire.Error) (err *wire.Error) {
	fail := func(err *wire.Error) *wire.Error {
		return wire.Invalid("%s", "Invalid "+param+": "+err.Message)
	}
	if strings.TrimSpace(src) == "" {
		return fail(wire.Invalid("The expression can not be empty;"))
	}
	if len(src) > MaxLength {
		return fail(wire.Invalid("Expression size has exceeded the maximum allowed size; expression size: %d", len(src)))
	}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(*wire.Error)
			if !ok {
				panic(r)
			}
			err = fail(bad)
		}
	}()
	p := &parser{src: src, toks: lex(src), env: e, violations: violations{}}
	bad := grammar(p)
	if bad != nil {
		return fail(bad)
	}
	return nil
}
