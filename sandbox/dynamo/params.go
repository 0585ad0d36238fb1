package dynamo

import (
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/expr"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// checkStyles refuses requests that mix expressions with their legacy forerunners, and
// placeholders without expressions. expressions and legacy are parameter names.
func checkStyles(n *wire.Node, expressions, legacy []string) *wire.Error {
	used := present(n, expressions)
	if old := present(n, legacy); len(used) > 0 && len(old) > 0 {
		return wire.Invalid("Can not use both expression and non-expression parameters in the same request: "+
			"Non-expression parameters: {%s} Expression parameters: {%s}", strings.Join(old, ", "), strings.Join(used, ", "))
	}
	if n.Has("ExpressionAttributeNames") && len(used) == 0 {
		return wire.Invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if !n.Has("ExpressionAttributeValues") {
		return nil
	}
	var takers []string
	for _, e := range expressions {
		if e != "ProjectionExpression" {
			takers = append(takers, e)
		}
	}
	if len(present(n, takers)) > 0 || len(takers) == 0 {
		return nil
	}
	verb := "is"
	if len(takers) > 1 {
		verb = "are"
	}
	return wire.Invalid("ExpressionAttributeValues can only be specified when using expressions: %s %s null",
		strings.Join(takers, " and "), verb)
}

func present(n *wire.Node, names []string) []string {
	var out []string
	for _, name := range names {
		if n.Has(name) {
			out = append(out, name)
		}
	}
	return out
}

// parsed are the expressions of one request.
type parsed struct {
	condition  *expr.Condition // ConditionExpression, or Expected
	filter     *expr.Condition // FilterExpression, ScanFilter or QueryFilter
	update     *expr.Update
	keys       map[string]*expr.KeyTest
	projection *expr.Projection
}

// parseAll parses what expressions a request has, and checks that all placeholders are
// used.
func parseAll(n *wire.Node) (p parsed, err *wire.Error) {
	if !n.Has("ExpressionAttributeNames") && !n.Has("ExpressionAttributeValues") && len(present(n, expressionNames)) == 0 {
		return p, nil
	}
	env, err := expr.NewEnv(n.Get("ExpressionAttributeNames"), n.Get("ExpressionAttributeValues"))
	if err != nil {
		return p, err
	}
	for _, name := range expressionNames {
		f := n.Get(name)
		if f == nil {
			continue
		}
		switch name {
		case "UpdateExpression":
			p.update, err = env.Update(f.Text)
		case "ConditionExpression":
			p.condition, err = env.Condition(name, f.Text)
		case "KeyConditionExpression":
			p.keys, err = env.KeyCondition(f.Text)
		case "FilterExpression":
			p.filter, err = env.Condition(name, f.Text)
		case "ProjectionExpression":
			p.projection, err = env.Projection(f.Text)
		}
		if err != nil {
			return p, err
		}
	}
	return p, env.Unused()
}

var expressionNames = []string{"UpdateExpression", "ConditionExpression", "KeyConditionExpression", "FilterExpression", "ProjectionExpression"}

// readToGet reads the legacy AttributesToGet.
func readToGet(n *wire.Node) (*expr.Projection, *wire.Error) {
	names := n.Strings("AttributesToGet")
	if len(names) == 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil, wire.BadValue("Duplicate value in attribute name: %s", name)
		}
		seen[name] = true
	}
	return expr.TopLevel(names), nil
}

// Sizes.
const (
	maxItem = 400 << 10
	maxPage = 1 << 20
)

func checkSize(item attr.Map) *wire.Error {
	if item.Size() > maxItem {
		return wire.Invalid("Item size has exceeded the maximum allowed size")
	}
	return nil
}

var errConditionFailed = &wire.Error{Code: "ConditionalCheckFailedException", Message: "The conditional request failed"}

// conditionFailed is the answer to a write whose condition did not hold; old is the
// item's JSON when the request asked to see it.
func conditionFailed(n *wire.Node, old []byte) *wire.Error {
	if n.Str("ReturnValuesOnConditionCheckFailure") != "ALL_OLD" || old == nil {
		return errConditionFailed
	}
	err := *errConditionFailed
	err.Extra = `,"Item":` + string(old)
	return &err
}
