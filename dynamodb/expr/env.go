package expr

import (
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Env has the placeholders of one request, and records which of them its expressions use.
type Env struct {
	Names  map[string]string
	Values map[string]*attr.Value

	nameOrder, valueOrder []string
	usedNames, usedValues map[string]bool
	inUpdate              bool
}

// NewEnv reads ExpressionAttributeNames and ExpressionAttributeValues. Either is nil when it was
// not sent.
func NewEnv(names, values *wire.Node) (*Env, *wire.Error) {
	e := &Env{usedNames: map[string]bool{}, usedValues: map[string]bool{}}
	if names != nil {
		if len(names.Kids) == 0 {
			return nil, wire.Invalid("ExpressionAttributeNames must not be empty")
		}
		e.Names = make(map[string]string, len(names.Kids))
		for i := range names.Kids {
			k := &names.Kids[i]
			if !isPlaceholder(k.Name, '#') {
				return nil, wire.Invalid("%s", `ExpressionAttributeNames contains invalid key: Syntax error; key: "`+k.Name+`"`)
			}
			if err := attr.CheckName(k.Text); err != nil {
				return nil, wire.Invalid("%s", "ExpressionAttributeNames contains invalid value: "+err.Message+" for key "+k.Name)
			}
			e.Names[k.Name] = k.Text
			e.nameOrder = append(e.nameOrder, k.Name)
		}
	}
	if values == nil {
		return e, nil
	}
	return e, e.readValues(values)
}

// readValues reads ExpressionAttributeValues.
func (e *Env) readValues(values *wire.Node) *wire.Error {
	if len(values.Kids) == 0 {
		return wire.Invalid("ExpressionAttributeValues must not be empty")
	}
	for i := range values.Kids {
		if k := &values.Kids[i]; !isPlaceholder(k.Name, ':') {
			return wire.Invalid("%s", `ExpressionAttributeValues contains invalid key: Syntax error; key: "`+k.Name+`"`)
		}
	}
	e.Values = make(map[string]*attr.Value, len(values.Kids))
	for i := range values.Kids {
		k := &values.Kids[i]
		v, err := attr.Decode(k)
		if err != nil {
			return wire.Invalid("%s", "ExpressionAttributeValues contains invalid value: "+err.Message+" for key "+k.Name)
		}
		e.Values[k.Name] = &v
		e.valueOrder = append(e.valueOrder, k.Name)
	}
	return nil
}

// isPlaceholder reports whether a key is a placeholder with this first byte.
func isPlaceholder(s string, mark byte) bool {
	if len(s) < 2 || s[0] != mark {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}

// Unused returns the error for placeholders that no expression uses. Call it after all expressions
// are parsed.
func (e *Env) Unused() *wire.Error {
	if rest := unused(e.nameOrder, e.usedNames); rest != "" {
		return wire.Invalid("%s", "Value provided in ExpressionAttributeNames unused in expressions: keys: {"+rest+"}")
	}
	if rest := unused(e.valueOrder, e.usedValues); rest != "" {
		return wire.Invalid("%s", "Value provided in ExpressionAttributeValues unused in expressions: keys: {"+rest+"}")
	}
	return nil
}

// unused returns the placeholders that were not used, as messages list them.
func unused(all []string, used map[string]bool) string {
	var rest []string
	for _, name := range all {
		if !used[name] {
			rest = append(rest, name)
		}
	}
	return strings.Join(rest, ", ")
}
