package pattern

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// Use is a pattern in one request. Keys is how many items a batch or a transaction names; 1 for
// other requests.
type Use struct {
	Pattern Pattern
	Keys    int
}

// Reason is why a request has no pattern.
type Reason string

// The reasons. They are bounded, for metrics.
const (
	BadJSON       Reason = "json"       // the body is no JSON object
	BadTable      Reason = "table"      // no or no valid name of a table or index
	BadKey        Reason = "key"        // a key that the table does not have, or none
	BadExpression Reason = "expression" // an expression or a value in it cannot be parsed
	NotItems      Reason = "operation"  // the operation reads and writes no items
)

// Request is what Of reads of a request: its patterns, one for each table and action, or the reason
// why it has none.
type Request struct {
	Uses    []Use
	Asked   []Asked // its reads by key
	Skipped Reason
}

// Asked is one read of a request with its values, which neither JSON nor fmt shows.
type Asked struct {
	Of      Pattern // under which it is counted
	Pattern Pattern // of this read alone: a batch counts its keys under one pattern
	Tests   []access.Test
	Named   string // of one of a batch: what the request calls its table, by name or ARN, as the answer does
}

// MarshalJSON implements json.Marshaler.
func (a Asked) MarshalJSON() ([]byte, error) { return json.Marshal(a.Of) }

// Format implements fmt.Formatter.
func (a Asked) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.Of.Text()) }

// Of returns the patterns of a request without knowledge of any table.
func Of(operation string, body []byte) Request { return new(Reader).Of(operation, body) }

// Of returns the patterns of a request. operation is the name behind the dot of X-Amz-Target.
func (r *Reader) Of(operation string, body []byte) Request {
	read, known := operations[operation]
	if !known {
		return Request{Skipped: NotItems}
	}
	n, err := wire.Parse(string(body))
	if err != nil || n.Kind != wire.Object {
		return Request{Skipped: BadJSON}
	}
	c := &call{reader: r, operation: operation}
	if reason := read(c, n); reason != "" {
		return Request{Skipped: reason}
	}
	if len(c.uses) == 0 {
		return Request{Skipped: BadKey} // a batch of nothing
	}
	return Request{Uses: c.uses, Asked: c.asked}
}

// operations are the operations on items.
var operations = map[string]func(*call, *wire.Node) Reason{
	"GetItem":            (*call).get,
	"Query":              (*call).query,
	"Scan":               (*call).scan,
	"BatchGetItem":       (*call).batchGet,
	"TransactGetItems":   (*call).transactGet,
	"PutItem":            (*call).write,
	"DeleteItem":         (*call).write,
	"UpdateItem":         (*call).write,
	"BatchWriteItem":     (*call).batchWrite,
	"TransactWriteItems": (*call).transactWrite,

	"ExecuteStatement":      (*call).statement,
	"BatchExecuteStatement": (*call).statement,
	"ExecuteTransaction":    (*call).statement,
}
