package request

import (
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// CheckStyles refuses requests that mix expressions with legacy parameters, or have placeholders
// without expressions. expressions and legacy are the names of the operation's parameters.
func CheckStyles(n *wire.Node, expressions, legacy []string) *wire.Error {
	used := Present(n, expressions)
	if old := Present(n, legacy); len(used) > 0 && len(old) > 0 {
		return wire.Invalid("Can not use both expression and non-expression parameters in the same request: "+
			"Non-expression parameters: {%s} Expression parameters: {%s}", strings.Join(old, ", "), strings.Join(used, ", "))
	}
	if n.Has("ConditionalOperator") && countTests(n) == 0 {
		return wire.Invalid("ConditionalOperator cannot be used without Filter or Expected")
	}
	if n.Has("ExpressionAttributeNames") && len(used) == 0 {
		return wire.Invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if !n.Has("ExpressionAttributeValues") {
		return nil
	}
	var withValues []string // the expressions that take values
	for _, e := range expressions {
		if e != "ProjectionExpression" {
			withValues = append(withValues, e)
		}
	}
	if len(Present(n, withValues)) > 0 || len(withValues) == 0 {
		return nil
	}
	verb := "is"
	if len(withValues) > 1 {
		verb = "are"
	}
	return wire.Invalid("ExpressionAttributeValues can only be specified when using expressions: %s %s null",
		strings.Join(withValues, " and "), verb)
}

// countTests returns the number of tests that a ConditionalOperator could join.
func countTests(n *wire.Node) int {
	tests := 0
	for _, name := range []string{"Expected", "QueryFilter", "ScanFilter"} {
		if f := n.Get(name); f != nil {
			tests += len(f.Kids)
		}
	}
	return tests
}

// Present returns the names that are fields of a request.
func Present(n *wire.Node, names []string) []string {
	var out []string
	for _, name := range names {
		if n.Has(name) {
			out = append(out, name)
		}
	}
	return out
}

// Parsed are the expressions of one request.
type Parsed struct {
	Condition  *expr.Condition // ConditionExpression, or Expected
	Filter     *expr.Condition // FilterExpression, ScanFilter or QueryFilter
	Update     *expr.Update
	Keys       map[string]*expr.KeyTest
	Projection *expr.Projection
}

// Parse parses the expressions of a request and checks that all placeholders are used.
func Parse(n *wire.Node) (p Parsed, err *wire.Error) {
	if !n.Has("ExpressionAttributeNames") && !n.Has("ExpressionAttributeValues") && len(Present(n, expressionNames)) == 0 {
		return p, nil
	}
	env, err := expr.NewEnv(n.Get("ExpressionAttributeNames"), n.Get("ExpressionAttributeValues"))
	if err != nil {
		return p, err
	}
	if f := n.Get("KeyConditionExpression"); f != nil && f.Text == "" { // before an empty filter
		_, err = env.KeyCondition(f.Text)
		return p, err
	}
	for _, name := range expressionNames {
		f := n.Get(name)
		if f == nil {
			continue
		}
		switch name {
		case "UpdateExpression":
			p.Update, err = env.Update(f.Text)
		case "ConditionExpression":
			p.Condition, err = env.Condition(name, f.Text)
		case "KeyConditionExpression":
			p.Keys, err = env.KeyCondition(f.Text)
		case "FilterExpression":
			p.Filter, err = env.Condition(name, f.Text)
		case "ProjectionExpression":
			p.Projection, err = env.Projection(f.Text)
		}
		if err != nil {
			return p, err
		}
	}
	return p, env.Unused()
}

// expressionNames has the order in which the service checks expressions: a filter and a projection
// before the key condition.
var expressionNames = []string{"UpdateExpression", "ConditionExpression", "FilterExpression", "ProjectionExpression",
	"KeyConditionExpression"}

// ToGet returns the projection of the legacy AttributesToGet, nil when there is none.
func ToGet(n *wire.Node) (*expr.Projection, *wire.Error) {
	names := n.Strings("AttributesToGet")
	if len(names) == 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil, wire.BadValue("Duplicate value in attribute name: %s", name)
		}
		if err := attr.CheckName(name); err != nil {
			return nil, err
		}
		seen[name] = true
	}
	return expr.TopLevel(names), nil
}

// Projection returns the projection of a read in either style; nil selects the whole item.
func Projection(n *wire.Node) (*expr.Projection, *wire.Error) {
	if err := CheckStyles(n, []string{"ProjectionExpression"}, []string{"AttributesToGet"}); err != nil {
		return nil, err
	}
	legacy, err := ToGet(n)
	if err != nil {
		return nil, err
	}
	p, err := Parse(n)
	if err != nil {
		return nil, err
	}
	if p.Projection == nil {
		return legacy, nil
	}
	return p.Projection, nil
}

// Item reads a field that holds a map of attribute values; nil when it is absent.
func Item(n *wire.Node, name string) (attr.Map, *wire.Error) {
	f := n.Get(name)
	if f == nil {
		return nil, nil
	}
	return attr.DecodeMap(f)
}

// maxItem is the size of the largest item, in bytes.
const maxItem = 400 << 10

// CheckSize refuses an item that is too large to be put.
func CheckSize(item attr.Map) *wire.Error {
	if item.Size() > maxItem {
		return wire.Invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

// CheckUpdated refuses an item that an update has made too large or too deeply nested.
func CheckUpdated(item attr.Map) *wire.Error {
	switch {
	case item.Size() > maxItem:
		return wire.Invalid("Item size to update has exceeded the maximum allowed size")
	case item.Levels() > attr.MaxLevels:
		return attr.ErrLevels
	}
	return nil
}
