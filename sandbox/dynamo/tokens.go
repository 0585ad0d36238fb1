package dynamo

import (
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// tokens remembers the ClientRequestTokens of the last ten minutes, so that a transaction that is
// sent again is not applied again.
type tokens struct {
	mu   sync.Mutex
	seen map[string]token
}

// token is a remembered transaction.
type token struct {
	hash  uint64 // of the request, see hashRequest
	at    time.Time
	reply []byte
}

// tokenLife is how long a token is remembered.
const tokenLife = 10 * time.Minute

// known returns the reply to an earlier request with this token, nil if there was none. A token
// that was used for a different request is an error.
func (k *tokens) known(name string, hash uint64, now time.Time) ([]byte, *wire.Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.seen[name]
	switch {
	case name == "" || !ok || now.Sub(t.at) > tokenLife:
		return nil, nil
	case t.hash != hash:
		return nil, &wire.Error{Code: "IdempotentParameterMismatchException",
			Message: "Request parameters do not match the parameters of an earlier request with the same client token"}
	}
	return t.reply, nil
}

// remember stores the reply to a token's request, and removes expired tokens.
func (k *tokens) remember(name string, t token) {
	if name == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for old := range k.seen {
		if t.at.Sub(k.seen[old].at) > tokenLife {
			delete(k.seen, old)
		}
	}
	if k.seen == nil {
		k.seen = map[string]token{}
	}
	k.seen[strings.Clone(name)] = t
}

// hashRequest returns a hash of a transaction's meaning, not of its bytes: SDKs write the fields of
// an object in any order, which may differ when the same transaction is sent again.
func hashRequest(items *wire.Node) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(appendCanonical(nil, items)) // never fails
	return h.Sum64()
}

// appendCanonical appends a request with sorted fields, without nulls, and with attribute values in
// normal form.
func appendCanonical(b []byte, n *wire.Node) []byte {
	switch n.Kind {
	case wire.Array:
		b = append(b, '[')
		for i := range n.Kids {
			b = append(appendCanonical(b, &n.Kids[i]), ',')
		}
		return append(b, ']')
	case wire.Object:
		kids := slices.Clone(n.Kids)
		slices.SortStableFunc(kids, func(a, b wire.Node) int { return strings.Compare(a.Name, b.Name) })
		b = append(b, '{')
		for i := range kids {
			if k := &kids[i]; k.Kind != wire.Null {
				b = append(wire.AppendString(b, k.Name), ':')
				b = append(appendField(b, k), ',')
			}
		}
		return append(b, '}')
	}
	return wire.AppendNode(b, n)
}

// appendField appends a field's value, as attribute values if the field has them.
func appendField(b []byte, n *wire.Node) []byte {
	switch n.Name {
	case "Item", "Key", "ExpressionAttributeValues":
		if values, err := attr.DecodeMap(n); err == nil {
			return values.AppendJSON(b)
		}
	}
	return appendCanonical(b, n)
}
