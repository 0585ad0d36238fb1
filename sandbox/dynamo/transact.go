package dynamo

import (
	"sort"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// transactWrite answers TransactWriteItems: all writes or none.
func (s *Server) transactWrite(r *call) ([]byte, *wire.Error) {
	writes, err := readTransaction(r.Get("TransactItems"))
	if err != nil {
		return nil, err
	}
	name, now := r.Str("ClientRequestToken"), s.o.Clock.Now()
	hash := hashRequest(r.Get("TransactItems"))
	if reply, err := s.tokens.known(name, hash, now); reply != nil || err != nil {
		return reply, err
	}
	for _, w := range writes {
		if w.table, err = s.find(w.node.Str("TableName")); err != nil {
			return nil, err
		}
		if !w.put {
			if err := w.table.Schema.CheckNotEmpty(w.keyMap); err != nil {
				return nil, err
			}
		}
	}
	reasons := make([]*wire.Error, len(writes))
	if err := bindAll(writes, reasons); err != nil {
		return nil, err
	}
	if hasDuplicates(writes) {
		return nil, errDuplicate
	}
	if err := s.commitAll(writes, reasons); err != nil {
		return nil, err
	}
	b := request.Bill{Transact: "Write"}
	for _, w := range writes {
		b.Add(w.table.Name, 2*w.units())
	}
	reply := append(b.AppendAll([]byte{'{'}, r.Node), '}')
	s.tokens.remember(name, token{hash, now, reply})
	return reply, nil
}

// bindAll checks the actions against the schemas of their tables. The first fault ends it, unless a
// later one refuses the whole request. Source: scylladb/scylladb, test/alternator/test_transact.py:
// test_transact_write_cancellation_reasons_validationerror.
func bindAll(writes []*write, reasons []*wire.Error) *wire.Error {
	found := false
	for i, w := range writes {
		err := w.bind()
		if err != nil && (err.Whole || !found) {
			reasons[i], found = err, true
		}
	}
	return cancelled(reasons)
}

var (
	errDuplicate      = wire.Invalid("Transaction request cannot include multiple operations on one item")
	errTransactionBig = wire.Invalid("The aggregate size of the items in the transaction cannot exceed 4 MB")
)

// maxTransaction is the largest total size of a transaction's items, in bytes.
const maxTransaction = 4 << 20

// commitAll commits all writes, or none and returns the reasons. It holds the locks of all tables
// meanwhile.
func (s *Server) commitAll(writes []*write, reasons []*wire.Error) *wire.Error {
	locked := lockAll(writes)
	defer func() {
		for _, t := range locked {
			t.Unlock()
		}
	}()
	size := 0
	for i, w := range writes {
		if w.table.Gone {
			return errNoTable
		}
		reasons[i] = w.prepare()
		size += w.transactionSize()
	}
	if size > maxTransaction {
		return errTransactionBig
	}
	if err := cancelled(reasons); err != nil {
		return err
	}
	changes := make([]stream.Change, 0, len(writes))
	for _, w := range writes {
		if w.modified {
			changes = append(changes, w.store(s))
		}
	}
	s.o.Stream.Commit(changes...)
	return nil
}

// transactionSize returns what a prepared write counts against the size of its transaction.
func (w *write) transactionSize() int {
	if w.update != nil && w.now != nil {
		return w.now.Size
	}
	return w.keyMap.Size()
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

// cancelled returns one error for the reasons, of which there is one per action; nil if all are
// nil. A reason that refuses the whole request is the error.
func cancelled(reasons []*wire.Error) *wire.Error {
	for _, e := range reasons {
		if e != nil && e.Whole {
			return e
		}
	}
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
		Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes,
			", ") + "]"}
}

// readTransaction reads the actions of a transaction.
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

// transactGet answers TransactGetItems.
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
		if empty := reads[i].table.Schema.CheckNotEmpty(reads[i].keys[0]); empty != nil {
			return nil, empty
		}
		reasons[i] = err
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	return s.answerTransactGet(r, reads)
}

// answerTransactGet reads the items under the locks of all their tables.
func (s *Server) answerTransactGet(r *call, reads []batchRead) ([]byte, *wire.Error) {
	writes := make([]*write, len(reads))
	for i := range reads {
		writes[i] = &write{table: reads[i].table, key: reads[i].table.Schema.KeyOf(reads[i].keys[0])}
	}
	if hasDuplicates(writes) {
		return nil, errDuplicate
	}
	locked := lockAll(writes)
	defer func() {
		for _, t := range locked {
			t.Unlock()
		}
	}()
	b, total := request.Bill{Transact: "Read"}, 0
	out := append(wire.AppendField([]byte{'{'}, "Responses"), '[')
	for i := range reads {
		if i > 0 {
			out = append(out, ',')
		}
		t := reads[i].table
		rec := t.Items.Get(writes[i].key)
		out = append(out, '{')
		size := 0
		if rec != nil {
			size = rec.Size
			out = appendItem(wire.AppendField(out, "Item"), rec, reads[i].projection)
		}
		if total += size; total > maxTransaction {
			return nil, errTransactionBig
		}
		out = append(out, '}')
		units := 2 * request.ReadUnits(size, true)
		s.Reads.Charge(request.ReadOf(t, writes[i].key), units)
		b.Add(t.Name, units)
	}
	return append(b.AppendAll(append(out, ']'), r.Node), '}'), nil
}
