package pattern

import (
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
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
	Skipped Reason
}

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
	return Request{Uses: c.uses}
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
