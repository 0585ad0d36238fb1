package expr

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// conditionCalls and updateCalls are the functions of conditions and of updates, with their numbers
// of operands.
var (
	conditionCalls = map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
		"begins_with": 2, "contains": 2, "size": 1}
	updateCalls = map[string]int{"if_not_exists": 2, "list_append": 2}
)

// checkCall checks that a function exists here, and its operands.
func (p *parser) checkCall(n *node) {
	calls, others := conditionCalls, updateCalls
	if p.env.inUpdate {
		calls, others = updateCalls, conditionCalls
	}
	p.operator()
	want, known := calls[n.op]
	if !known {
		message := "Invalid function name; function: " + n.op
		if _, other := others[n.op]; other {
			message = "The function is not allowed in a condition expression; function: " + n.op
			if p.env.inUpdate {
				message = "The function is not allowed in an update expression; function: " + n.op
			}
		}
		p.violation(badFunction, message)
		return
	}
	switch {
	case n.op == "list_append":
		p.noCallsBut(n.args, "if_not_exists")
	case n.op == "size":
		p.noCallsBut(n.args, "")
	case !p.env.inUpdate:
		p.noCallsBut(n.args, "size")
	}
	if want != len(n.args) {
		p.violation(badCount, fmt.Sprintf("Incorrect number of operands for operator or function; "+
			"operator or function: %s, number of operands: %d", n.op, len(n.args)))
		return
	}
	p.distinct(n.op, n.args)
	p.checkArguments(n)
}

// checkArguments checks the kinds of a function's operands.
func (p *parser) checkArguments(n *node) {
	switch n.op {
	case "attribute_exists", "attribute_not_exists", "if_not_exists":
		if n.args[0].op != "path" {
			p.violation(badArgument, "Operator or function requires a document path; operator or function: "+n.op)
		}
	case "begins_with":
		for _, a := range n.args {
			if t := a.typ(); t != attr.None && t != attr.S && t != attr.B || a.isCall {
				if a.isCall {
					t = attr.N
				}
				p.wrongType("operator or function", n.op, t)
			}
		}
	case "attribute_type":
		p.checkTypeName(n)
	case "size":
		if t := n.args[0].typ(); t == attr.N || t == attr.Bool || t == attr.Null {
			p.wrongType("operator or function", n.op, t)
		}
	case "list_append":
		for _, a := range n.args {
			if t := a.typ(); t != attr.None && t != attr.L {
				p.wrongType("operator or function", n.op, t)
			}
		}
	}
}

// checkTypeName checks the second operand of attribute_type.
func (p *parser) checkTypeName(n *node) {
	switch arg := n.args[1]; {
	case arg.op != "value":
		p.violation(badArgument, "Incorrect operand type for operator or function; "+
			"operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
	case arg.value == nil:
	case arg.value.Kind != attr.S:
		p.wrongType("operator or function", n.op, arg.value.Kind)
	case attr.KindOf(arg.value.Str) == attr.None:
		p.violation(badArgument, "Invalid attribute type name found; type: "+arg.value.Str+
			", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}")
	}
}

// wrongType records an operand of a wrong type; what is how the message names the operator.
func (p *parser) wrongType(what, op string, t attr.Kind) {
	p.violation(badArgument, "Incorrect operand type for operator or function; "+what+": "+op+", operand type: "+
		""+t.String())
}

// comparison returns the node of a comparator, BETWEEN or IN, and ends its condition.
func (p *parser) comparison(op string, args ...*node) *node {
	p.operator()
	p.noCallsBut(args, "size")
	p.distinct(op, args)
	switch op {
	case "<", "<=", ">", ">=", "BETWEEN":
		for _, a := range args {
			if t := a.typ(); t > attr.B {
				p.wrongType("operator", op, t)
			}
		}
	}
	if op == "BETWEEN" {
		p.checkBounds(args[1], args[2])
	}
	p.close()
	return &node{op: op, args: args}
}

// checkBounds checks the types and the order of BETWEEN's bounds, where both are known.
func (p *parser) checkBounds(low, high *node) {
	if low.typ() == attr.None || high.typ() == attr.None {
		return
	}
	bounds := "; lower bound operand: AttributeValue: " + showValue(low.value) +
		", upper bound operand: AttributeValue: " + showValue(high.value)
	order, ok := low.value.Compare(high.value)
	switch {
	case low.typ() != high.typ():
		p.violation(badArgument, "The BETWEEN operator requires same data type for lower and upper bounds"+bounds)
	case ok && order > 0:
		p.violation(badArgument, "The BETWEEN operator requires upper bound to be greater than or equal to lower "+
			"bound"+bounds)
	}
}

// showValue returns a value as messages show it.
func showValue(v *attr.Value) string {
	b := v.AppendJSON(nil)
	n, err := wire.Parse(string(b))
	if err != nil {
		return string(b)
	}
	k := &n.Kids[0]
	return "{" + k.Name + ":" + wire.Show(k) + "}"
}

// noCallsBut refuses functions as operands, except for one.
func (p *parser) noCallsBut(args []*node, allowed string) {
	for _, a := range args {
		if a.isCall && a.op != allowed {
			p.violation(badMisuse, "The function is not allowed to be used this way in an expression; function: "+a.op)
		}
	}
}

// asCondition refuses size() where a condition is needed.
func (p *parser) asCondition(n *node) {
	if n.isCall && n.op == "size" {
		p.violation(badMisuse, "The function is not allowed to be used this way in an expression; function: size")
	}
}

// distinct refuses a first operand that is repeated among the others.
func (p *parser) distinct(op string, args []*node) {
	if len(args) < 2 || args[0].op != "path" || p.env.inUpdate {
		return
	}
	for _, a := range args[1:] {
		if a.op == "path" && a.path.String() == args[0].path.String() {
			p.violation(badDistinct, "The first operand must be distinct from the remaining operands for this operator or "+
				"function; operator: "+
				op+", first operand: "+a.path.String())
		}
	}
}

// close ends one condition: of its violations, the first in the service's order becomes
// badCondition, unless an earlier condition has set it.
func (p *parser) close() {
	if err := p.first(badName, badCount, badOperand, badDistinct, badArgument); err != nil {
		p.violation(badCondition, err.Message)
	}
}
