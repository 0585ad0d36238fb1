package pattern

import (
	"encoding/json"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/access"
)

// Kind is what a request does.
type Kind string

// The kinds of patterns. Statements are PartiQL, which is not parsed; Other stands for the patterns
// of a table beyond those that a collector holds.
const (
	Read      Kind = "read"
	Scan      Kind = "scan"
	Write     Kind = "write"
	Statement Kind = "statement"
	Other     Kind = "other"
)

// Key is the condition on one key attribute.
type Key struct {
	Attr string `json:"attr"`
	Op   string `json:"op"` // as package access names them
}

// Pattern is the form of a request to one table.
type Pattern struct {
	Kind      Kind   `json:"kind"`
	Operation string `json:"operation,omitempty"`
	Action    string `json:"action,omitempty"` // of a batch or transaction: put, update, delete, check
	Table     string `json:"table,omitempty"`
	Index     string `json:"index,omitempty"`

	Key   []Key          `json:"key,omitempty"`   // the partition key first
	Rules []access.Bound `json:"rules,omitempty"` // that may take the items; empty without a mapping
	Any   bool           `json:"any,omitempty"`   // these are all rules of several: the key does not decide
	None  bool           `json:"none,omitempty"`  // no rule takes such items

	Backward    bool `json:"backward,omitempty"`
	Filter      bool `json:"filter,omitempty"`
	Projection  bool `json:"projection,omitempty"`
	Consistent  bool `json:"consistent,omitempty"`
	Count       bool `json:"count,omitempty"` // Select: COUNT
	Limit       bool `json:"limit,omitempty"`
	Paginated   bool `json:"paginated,omitempty"`   // it goes on behind a key
	Parallel    bool `json:"parallel,omitempty"`    // one segment of a scan
	Conditional bool `json:"conditional,omitempty"` // of a write
	Adds        bool `json:"adds,omitempty"`        // ADD of an update
	Computes    bool `json:"computes,omitempty"`    // SET of an update reads the item
}

// ID identifies the pattern: patterns of the same form have the same.
func (p *Pattern) ID() string {
	b, _ := json.Marshal(p) // texts, flags and maps of texts: always possible
	return string(b)
}

// Text returns the pattern for people.
func (p *Pattern) Text() string {
	var sb strings.Builder
	sb.WriteString(p.Operation)
	if p.Kind == Other {
		sb.WriteString("other")
	}
	if p.Action != "" {
		sb.WriteString(" " + p.Action)
	}
	if p.Table != "" {
		sb.WriteString(" " + p.Table)
	}
	if p.Index != "" {
		sb.WriteString("/" + p.Index)
	}
	if len(p.Key) > 0 {
		sb.WriteString(" " + p.Condition())
	}
	if rule := p.Rule(); rule != "" {
		sb.WriteString(", " + rule)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{
		{p.Backward, "backward"}, {p.Filter, "filter"}, {p.Projection, "projection"}, {p.Consistent, "consistent"},
		{p.Count, "count"}, {p.Limit, "limit"}, {p.Paginated, "paginated"}, {p.Parallel, "parallel"},
		{p.Conditional, "conditional"}, {p.Adds, "ADD"}, {p.Computes, "computes"},
	} {
		if flag.set {
			sb.WriteString(", " + flag.name)
		}
	}
	return sb.String()
}

// Condition returns the key condition as an expression: PK = ? and begins_with(SK, ?).
func (p *Pattern) Condition() string {
	parts := make([]string, len(p.Key))
	for i, k := range p.Key {
		switch k.Op {
		case access.BeginsWith:
			parts[i] = "begins_with(" + k.Attr + ", ?)"
		case access.Between:
			parts[i] = k.Attr + " between ? and ?"
		default:
			parts[i] = k.Attr + " " + k.Op + " ?"
		}
	}
	return strings.Join(parts, " and ")
}

// Rule returns the rules that may take the items: "rule order", "rule user or order", "any rule"
// where the key does not decide, "no rule"; "" without a mapping. What the read shows of a capture,
// other than its value, stands behind the rule: rule order ({id} begins_with).
func (p *Pattern) Rule() string {
	switch {
	case p.Any:
		return "any rule"
	case p.None:
		return "no rule"
	case len(p.Rules) == 0:
		return ""
	}
	names := make([]string, len(p.Rules))
	for i := range p.Rules {
		names[i] = p.Rules[i].Text()
	}
	return "rule " + strings.Join(names, " or ")
}
