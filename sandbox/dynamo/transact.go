package dynamo

import (
	"hash/fnv"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// tokens remembers the ClientRequestTokens of the last ten minutes, so that a
// transaction that is sent again is not carried out again.
type tokens struct {
	mu   sync.Mutex
	seen map[string]token
}

type token struct {
	hash  uint64
	at    time.Time
	reply []byte
}

const tokenLife = 10 * time.Minute

// known returns the reply that a token got before. A token that comes with another
// request is an error.
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

func (s *Server) transactWrite(r *call) ([]byte, *wire.Error) {
	name, now := r.Str("ClientRequestToken"), s.o.Clock.Now()
	h := fnv.New64a()
	_, _ = h.Write(wire.AppendNode(nil, r.Get("TransactItems"))) // a hash never fails
	if reply, err := s.tokens.known(name, h.Sum64(), now); reply != nil || err != nil {
		return reply, err
	}
	writes, err := readTransaction(r.Get("TransactItems"))
	if err != nil {
		return nil, err
	}
	for _, w := range writes {
		if w.table, err = s.find(tableOf(w.node.Str("TableName"))); err != nil {
			return nil, err
		}
	}
	reasons := make([]*wire.Error, len(writes))
	for i, w := range writes {
		reasons[i] = w.bind()
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	if hasTwins(writes) {
		return nil, wire.Invalid("Transaction request cannot include multiple operations on one item")
	}
	if err := s.commitAll(writes, reasons); err != nil {
		return nil, err
	}
	b := request.Bill{Transact: "Write"}
	for _, w := range writes {
		b.Add(w.table.Name, 2*w.units())
	}
	reply := append(b.AppendAll([]byte{'{'}, r.Node), '}')
	s.tokens.remember(name, token{h.Sum64(), now, reply})
	return reply, nil
}

// commitAll carries out all writes, or none and says why.
func (s *Server) commitAll(writes []*write, reasons []*wire.Error) *wire.Error {
	locked := lockAll(writes)
	defer func() {
		for _, t := range locked {
			t.Unlock()
		}
	}()
	for i, w := range writes {
		if w.table.Gone {
			return errNoTable
		}
		reasons[i] = w.prepare()
	}
	if err := cancelled(reasons); err != nil {
		return err
	}
	changes := make([]stream.Change, 0, len(writes))
	for _, w := range writes {
		if w.modified {
			changes = append(changes, w.store())
		}
	}
	s.o.Stream.Commit(changes...)
	return nil
}

// lockAll locks the tables of a transaction, in one order for all transactions.
func lockAll(writes []*write) []*table.Table {
	seen := map[*table.Table]bool{}
	var all []*table.Table
	for _, w := range writes {
		if !seen[w.table] {
			seen[w.table] = true
			all = append(all, w.table)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	for _, t := range all {
		t.Lock()
	}
	return all
}

// cancelled makes one error of the reasons, nil if there are none.
func cancelled(reasons []*wire.Error) *wire.Error {
	codes := make([]string, len(reasons))
	extra := []byte(`,"CancellationReasons":[`)
	any := false
	for i, e := range reasons {
		if i > 0 {
			extra = append(extra, ',')
		}
		codes[i] = "None"
		if e == nil {
			extra = append(extra, `{"Code":"None"}`...)
			continue
		}
		any = true
		codes[i] = strings.TrimSuffix(e.Code, "Exception")
		if e.Code == "ValidationException" {
			codes[i] = "ValidationError"
		}
		extra = wire.AppendText(append(extra, '{'), "Code", codes[i])
		extra = wire.AppendText(extra, "Message", e.Message)
		extra = append(append(extra, e.Extra...), '}')
	}
	if !any {
		return nil
	}
	return &wire.Error{Code: "TransactionCanceledException", Extra: string(append(extra, ']')),
		Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"}
}

func readTransaction(items *wire.Node) ([]*write, *wire.Error) {
	writes := make([]*write, len(items.Kids))
	for i := range items.Kids {
		n := &items.Kids[i]
		actions := request.Present(n, []string{"ConditionCheck", "Put", "Delete", "Update"})
		if len(actions) != 1 {
			return nil, wire.Invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		a := n.Get(actions[0])
		var err *wire.Error
		switch actions[0] {
		case "Put":
			writes[i], err = readPut(a)
		case "Delete":
			writes[i], err = readDelete(a)
		case "Update":
			writes[i], err = readUpdate(a)
		default:
			if writes[i], err = readDelete(a); err == nil {
				writes[i].delete = false
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return writes, nil
}

func (s *Server) transactGet(r *call) ([]byte, *wire.Error) {
	items := r.Get("TransactItems").Kids
	reads := make([]batchRead, len(items))
	for i := range items {
		get := items[i].Get("Get")
		key, err := request.Item(get, "Key")
		if err != nil {
			return nil, err
		}
		reads[i].keys = append(reads[i].keys, key)
		if reads[i].projection, err = request.Projection(get); err != nil {
			return nil, err
		}
		reads[i].node = &wire.Node{Kind: wire.Object, Name: get.Str("TableName")}
	}
	reasons := make([]*wire.Error, len(reads))
	for i := range reads {
		err := reads[i].bind(s)
		if err != nil && err.Code != "ValidationException" {
			return nil, err
		}
		reasons[i] = err
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	return s.answerTransactGet(r, reads), nil
}

func (s *Server) answerTransactGet(r *call, reads []batchRead) []byte {
	writes := make([]*write, len(reads))
	for i := range reads {
		writes[i] = &write{table: reads[i].table}
	}
	locked := lockAll(writes)
	defer func() {
		for _, t := range locked {
			t.Unlock()
		}
	}()
	b := request.Bill{Transact: "Read"}
	out := append(wire.AppendField([]byte{'{'}, "Responses"), '[')
	for i := range reads {
		if i > 0 {
			out = append(out, ',')
		}
		t := reads[i].table
		rec := t.Items.Get(t.Schema.KeyOf(reads[i].keys[0]))
		out = append(out, '{')
		size := 0
		if rec != nil {
			size = rec.Size
			out = appendItem(wire.AppendField(out, "Item"), rec, reads[i].projection)
		}
		out = append(out, '}')
		b.Add(t.Name, 2*request.ReadUnits(size, true))
	}
	return append(b.AppendAll(append(out, ']'), r.Node), '}')
}
