package replay_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/test/plants"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// place is the tables of the designs in a sandbox, with what a sink has written of them.
type place struct {
	t       *testing.T
	rnd     *rand.Rand
	service *sandbox.Sandbox
	tables  []*placed
	mu      sync.RWMutex // covers what follows
	rows    *cells.Table
	pending []func() // writes that are on their way to the rows
	now     int64
}

type placed struct {
	design
	number  int
	name    string
	schema  change.KeySchema
	program *transform.Program
	items   map[string]string
}

func attrOf(s string) change.KeyAttr {
	name, kind, _ := strings.Cut(s, ":")
	return change.KeyAttr{Name: name, Type: kind[0]}
}

func newPlace(t *testing.T, seed uint64, designs ...design) *place {
	t.Helper()
	s, err := sandbox.Start(sandbox.Options{NoBigtable: true, NoNATS: true, NoS3: true, NoLedger: true, Sweep: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &place{t: t, rnd: rand.New(rand.NewPCG(seed, 41)), service: s, rows: cells.New(), now: 1_700_000_000_000}
	var all []transform.Table
	for i, d := range designs {
		x := &placed{design: d, number: i, name: fmt.Sprintf("table%d", i), items: map[string]string{}}
		x.schema.Partition = attrOf(d.keys[0])
		if len(d.keys) > 1 {
			sort := attrOf(d.keys[1])
			x.schema.Sort = &sort
		}
		w.call("CreateTable", x.definition())
		m, problems := transform.ParseMapping(x.name, []byte(head+d.mapping))
		if m == nil {
			t.Fatal(problems)
		}
		all = append(all, transform.Table{Pipeline: "p", Source: x.name, Target: "target", Mapping: m,
			View: "NEW_AND_OLD_IMAGES", Schema: x.schema})
		w.tables = append(w.tables, x)
	}
	programs, problems := transform.CompileAll(all)
	for i, p := range programs {
		if w.tables[i].program = p; p == nil {
			t.Fatal(w.tables[i].name, problems)
		}
	}
	return w
}

// keySchema returns a key as a request has it, and adds its attributes.
func keySchema(defined map[string]byte, partition, sort []change.KeyAttr) (out []map[string]string) {
	for i, k := range slices.Concat(partition, sort) {
		kind := "HASH"
		if i >= len(partition) {
			kind = "RANGE"
		}
		defined[k.Name] = k.Type
		out = append(out, map[string]string{"AttributeName": k.Name, "KeyType": kind})
	}
	return out
}

func (x *index) key() (k pattern.Index) {
	k.Name = x.name
	parts := strings.Split(x.keys, ",")
	for s := range strings.SplitSeq(parts[0], "+") {
		k.Partition = append(k.Partition, attrOf(s))
	}
	for _, s := range parts[1:] {
		k.Sort = append(k.Sort, attrOf(s))
	}
	return k
}

func (x *placed) definition() string {
	defined := map[string]byte{}
	var sort []change.KeyAttr
	if x.schema.Sort != nil {
		sort = append(sort, *x.schema.Sort)
	}
	d := map[string]any{"TableName": x.name, "BillingMode": "PAY_PER_REQUEST",
		"KeySchema": keySchema(defined, []change.KeyAttr{x.schema.Partition}, sort)}
	for i := range x.indexes {
		k := x.indexes[i].key()
		kind := "GlobalSecondaryIndexes"
		if x.indexes[i].local {
			kind = "LocalSecondaryIndexes"
		}
		list, _ := d[kind].([]any)
		d[kind] = append(list, map[string]any{"IndexName": k.Name, "KeySchema": keySchema(defined, k.Partition, k.Sort),
			"Projection": map[string]string{"ProjectionType": cmp.Or(x.indexes[i].projection, "ALL")}})
	}
	var attrs []map[string]string
	for name, kind := range defined {
		attrs = append(attrs, map[string]string{"AttributeName": name, "AttributeType": string(kind)})
	}
	d["AttributeDefinitions"] = attrs
	return text(d)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *place) call(operation, body string) string {
	w.t.Helper()
	answer, err := w.service.Call(w.t.Context(), operation, body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", operation, body, err)
	}
	return string(answer)
}

// value draws a value of an attribute.
func (x *placed) value(rnd *rand.Rand, name string, kind byte) map[string]string {
	list := x.draw[name]
	if list == "" {
		list = x.draw[name+":"+string(kind)]
	}
	all := strings.Split(list, " ")
	return map[string]string{string(kind): all[rnd.IntN(len(all))]}
}

func (x *placed) keyAttrs() (all []change.KeyAttr) {
	all = append(all, x.schema.Partition)
	if x.schema.Sort != nil {
		all = append(all, *x.schema.Sort)
	}
	return all
}

// key draws a key.
func (x *placed) key(rnd *rand.Rand) map[string]any {
	out := map[string]any{}
	for _, k := range x.keyAttrs() {
		out[k.Name] = x.value(rnd, k.Name, k.Type)
	}
	return out
}

// write makes one change in the service, which is on its way to the rows.
func (w *place) write() {
	w.now += 1 + w.rnd.Int64N(1000)
	x := w.tables[w.rnd.IntN(len(w.tables))]
	key := x.key(w.rnd)
	canonical := w.canonical(x, w.item(x, key))
	if _, here := x.items[string(canonical)]; here && w.rnd.IntN(3) == 0 {
		w.store(x, canonical, "")
	} else {
		item := maps.Clone(key)
		for name := range x.draw {
			name, kind, typed := strings.Cut(name, ":")
			if _, isKey := key[name]; !isKey && w.rnd.IntN(4) > 0 {
				if !typed {
					kind = "S"
				}
				item[name] = x.value(w.rnd, name, kind[0])
			}
		}
		w.store(x, canonical, text(item))
	}
}

// canonical returns the canonical key of an item.
func (w *place) canonical(x *placed, item string) []byte {
	w.t.Helper()
	key, err := change.NewKeyReader(x.schema).Of(nil, []byte(item))
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

// store puts an item into the service, or deletes it where it is "", and sends the write on its way.
func (w *place) store(x *placed, key []byte, item string) {
	w.t.Helper()
	c := &change.Change{Op: change.Insert, Version: change.Version(w.now), Created: change.Millis(w.now), Keys: key}
	if old, here := x.items[string(key)]; here {
		c.Op, c.Old = change.Modify, []byte(old)
	}
	if item == "" {
		w.call("DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":%s}`, x.name, key))
		c.Op, c.TTL = change.Remove, w.rnd.IntN(3) == 0
		delete(x.items, string(key))
	} else {
		w.call("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":%s}`, x.name, item))
		var got struct{ Item json.RawMessage }
		answer := w.call("GetItem", fmt.Sprintf(`{"TableName":%q,"Key":%s,"ConsistentRead":true}`, x.name, key))
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			w.t.Fatal(err)
		}
		c.New = got.Item
		x.items[string(key)] = string(got.Item)
	}
	var write transform.Write
	if err := x.program.Change(new(change.Decoder), c, &write); err != nil {
		return // a dead letter
	}
	all, err := bigtable.SealedRequests(plants.Sealer(), &write, []string{"d", "x", "h"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pending = append(w.pending, func() {
		for i := range all {
			row, todo := w.rows.Row(string(all[i].Row)), all[i].Body
			if row.Holds(string(all[i].Qualifier), all[i].Version) {
				todo = all[i].Skip
			}
			for k := range todo {
				row.Execute(&todo[k])
			}
		}
	})
}

// item returns a key as the JSON of an item, with numbers as the service writes them.
func (w *place) item(x *placed, key map[string]any) string {
	out := map[string]any{}
	for _, k := range x.keyAttrs() {
		v := key[k.Name].(map[string]string)
		out[k.Name] = v
		if k.Type == 'N' {
			n, err := change.CanonicalNumber(v["N"])
			if err != nil {
				w.t.Fatal(err)
			}
			out[k.Name] = map[string]string{"N": n}
		}
	}
	return text(out)
}

// arrive applies the first n writes that are on their way.
func (w *place) arrive(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, len(w.pending))
	for _, apply := range w.pending[:n] {
		apply()
	}
	w.pending = w.pending[n:]
}

// read draws a read, and asks the service.
func (w *place) read() request {
	x := w.tables[w.rnd.IntN(len(w.tables))]
	switch w.rnd.IntN(6) {
	case 0:
		return w.ask("GetItem", map[string]any{"TableName": x.name, "Key": x.key(w.rnd), "ConsistentRead": w.rnd.IntN(2) > 0})
	case 1:
		tables := map[string]any{}
		for range 1 + w.rnd.IntN(2) {
			y := w.tables[w.rnd.IntN(len(w.tables))]
			keys := map[string]any{}
			for range 1 + w.rnd.IntN(6) {
				k := y.key(w.rnd)
				keys[w.item(y, k)] = k
			}
			asked := map[string]any{"Keys": slices.Collect(maps.Values(keys))}
			if w.rnd.IntN(4) == 0 {
				asked["ProjectionExpression"] = "x"
			}
			name := y.name
			if w.rnd.IntN(4) == 0 {
				name = "arn:aws:dynamodb:" + sandbox.Region + ":" + sandbox.Account + ":table/" + y.name
			}
			if tables[y.name] == nil && len(tables) == 0 || tables[name] == nil && len(tables) > 0 && name == y.name {
				tables[name] = asked
			}
		}
		return w.ask("BatchGetItem", map[string]any{"RequestItems": tables})
	case 2:
		var gets []any
		seen := map[string]bool{}
		for range 1 + w.rnd.IntN(6) {
			y := w.tables[w.rnd.IntN(len(w.tables))]
			k := y.key(w.rnd)
			if id := y.name + w.item(y, k); !seen[id] {
				seen[id] = true
				gets = append(gets, map[string]any{"Get": map[string]any{"TableName": y.name, "Key": k}})
			}
		}
		return w.ask("TransactGetItems", map[string]any{"TransactItems": gets})
	}
	return w.query(x)
}

func (w *place) ask(operation string, body map[string]any) request {
	w.t.Helper()
	asked := text(body)
	return request{operation, asked, w.call(operation, asked)}
}

// query draws a Query, and sometimes its second page.
func (w *place) query(x *placed) request {
	q := map[string]any{"TableName": x.name, "ScanIndexForward": w.rnd.IntN(2) == 0}
	k := pattern.Index{Partition: []change.KeyAttr{x.schema.Partition}}
	if x.schema.Sort != nil {
		k.Sort = append(k.Sort, *x.schema.Sort)
	}
	if len(x.indexes) > 0 && w.rnd.IntN(2) == 0 {
		k = x.indexes[w.rnd.IntN(len(x.indexes))].key()
		q["IndexName"] = k.Name
	}
	names, values := map[string]string{}, map[string]any{}
	var conditions []string
	test := func(a change.KeyAttr, op string) {
		n := fmt.Sprintf("k%d", len(names))
		names["#"+n] = a.Name
		v := x.value(w.rnd, a.Name, a.Type)
		switch op {
		case "begins_with":
			kind := string(a.Type)
			if runes := []rune(v[kind]); a.Type == 'S' && len(runes) > 1 {
				v[kind] = string(runes[:1+w.rnd.IntN(len(runes))])
			}
			conditions = append(conditions, fmt.Sprintf("begins_with(#%s, :%s)", n, n))
		case "BETWEEN":
			conditions = append(conditions, fmt.Sprintf("#%s BETWEEN :%s AND :%sb", n, n, n))
			values[":"+n+"b"] = x.value(w.rnd, a.Name, a.Type)
		default:
			conditions = append(conditions, fmt.Sprintf("#%s %s :%s", n, op, n))
		}
		values[":"+n] = v
	}
	for _, a := range k.Partition {
		test(a, "=")
	}
	if len(k.Sort) > 0 && w.rnd.IntN(3) > 0 {
		ops := []string{"=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"}
		if k.Sort[0].Type == 'N' {
			ops = ops[:6]
		}
		test(k.Sort[0], ops[w.rnd.IntN(len(ops))])
	}
	if w.rnd.IntN(6) == 0 {
		names["#f"] = "x"
		q["FilterExpression"] = "attribute_exists(#f)"
		for name := range names {
			if name != "#f" && names[name] == "x" { // a key is no part of a filter
				delete(names, "#f")
				delete(q, "FilterExpression")
			}
		}
	}
	if w.rnd.IntN(3) == 0 {
		q["Limit"] = 1 + w.rnd.IntN(3)
	}
	q["KeyConditionExpression"] = strings.Join(conditions, " AND ")
	q["ExpressionAttributeNames"], q["ExpressionAttributeValues"] = names, values
	answer, err := w.service.Call(w.t.Context(), "Query", text(q))
	if err != nil {
		if strings.Contains(err.Error(), "ValidationException") { // bounds in the other order, or a filter of a key
			return w.read()
		}
		w.t.Fatalf("%s: %v", text(q), err)
	}
	var a struct{ LastEvaluatedKey json.RawMessage }
	if err := json.Unmarshal(answer, &a); err != nil {
		w.t.Fatal(err)
	}
	if a.LastEvaluatedKey != nil && len(k.Sort) > 0 && w.rnd.IntN(2) == 0 {
		q["ExclusiveStartKey"] = a.LastEvaluatedKey
		return w.ask("Query", q)
	}
	return request{"Query", text(q), string(answer)}
}

// settler returns the settler of the place: a proof has all writes arrive.
func (w *place) settler() *verify.Settler {
	s := &verify.Settler{
		Target: &placedRows{w, "", ""}, Now: func() change.Millis { return change.Millis(w.now) }, Lead: plants.Lead,
		Prove: func(context.Context, change.Millis) error { w.arrive(math.MaxInt); return nil },
		Pause: func(context.Context, time.Duration) error { return nil },
		ReadItems: func(_ context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
			b := &source.ItemBatch{Requested: change.Millis(w.now), Answered: change.Millis(w.now)}
			at := slices.IndexFunc(w.tables, func(x *placed) bool { return x.name == table })
			for _, k := range keys {
				var raw []byte
				if item, here := w.tables[at].items[string(k)]; here {
					raw = []byte(item)
				}
				b.Items = append(b.Items, raw)
			}
			return b, nil
		},
	}
	for _, x := range w.tables {
		s.Tables = append(s.Tables, verify.Table{Program: x.program, Parts: 1, Outlives: x.program.Outlives})
	}
	return s
}

// placedRows are the rows from start on and before end.
type placedRows struct {
	*place
	start, end string
}

func (r *placedRows) Scan(_ context.Context, f func(*verify.Row) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, key := range slices.Sorted(maps.Keys(r.rows.Rows)) {
		if row := r.row(key); row != nil && key >= r.start && (r.end == "" || key < r.end) {
			if err := f(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *placedRows) Lookup(_ context.Context, keys []string, f func(*verify.Row) error) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, key := range keys {
		if row := r.row(key); row != nil {
			if err := f(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *placedRows) GuardOf(value, row, qualifier []byte) (bigtable.Guard, error) {
	return plants.Sealer().Read(value, row, qualifier)
}

// row returns a row as a reader gets it.
func (w *place) row(key string) *verify.Row {
	held := w.rows.Rows[key]
	if held == nil || len(held.Cells) == 0 {
		return nil
	}
	all := slices.Clone(held.Cells)
	slices.SortFunc(all, func(a, b cells.Cell) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.At, a.At))
	})
	out, n := &verify.Row{Key: []byte(key)}, 0
	for i, c := range all {
		if n++; i == 0 || all[i-1].Family != c.Family || all[i-1].Qualifier != c.Qualifier {
			n = 1
		}
		x := bigtable.Cell{
			Family: c.Family, Qualifier: []byte(c.Qualifier), Value: []byte(c.Value), Time: time.UnixMilli(c.At),
		}
		switch {
		case c.Family == transform.LiveFamily && n == 1:
			out.Live = append(out.Live, x)
		case c.Family == transform.DeadFamily && n == 1:
			out.Dead = append(out.Dead, x)
		case n == 1 && c.Family != transform.LiveFamily && c.Family != transform.DeadFamily, c.Family == "h" && n <= 3:
			out.Cells = append(out.Cells, x)
		}
	}
	return out
}

// replayer returns a replayer of the reads of the place, with its reader and counts.
func (w *place) replayer(
	mismatch func(replay.Mismatch) error, warn func(string, ...any),
) (*replay.Replayer, *pattern.Reader, *pattern.Collector) {
	side := &replay.Side{
		Settler: w.settler(), Looking: w.settler(),
		Rows: func(start, end string) verify.Target { return &placedRows{w, start, end} },
		Read: func(_ context.Context, _, _ string, _ []string, limit int) error {
			if limit != 10_000 {
				w.t.Errorf("a read of up to %d rows", limit)
			}
			return nil
		},
	}
	var tables []replay.Table
	var known []pattern.Table
	for _, x := range w.tables {
		p := pattern.Table{Name: x.name, Schema: x.schema, Program: x.program}
		whole := map[string]bool{}
		for i := range x.indexes {
			if x.indexes[i].later {
				continue
			}
			p.Indexes = append(p.Indexes, x.indexes[i].key())
			whole[x.indexes[i].name] = x.indexes[i].projection == ""
		}
		known = append(known, p)
		tables = append(tables, replay.Table{Name: x.name, Number: x.number, Schema: x.schema, Whole: whole, Side: side})
	}
	reader, c := pattern.NewReader(known...), pattern.NewCollector()
	return replay.New(replay.Options{Reader: reader, Counts: c, Tables: tables, Warn: warn, Mismatch: mismatch}), reader, c
}

// exchanged returns a read as the engine gets it.
func (q *request) exchanged() *exchange.Exchange {
	return &exchange.Exchange{
		Status: 200, Answer: exchange.Body{Bytes: []byte(q.answer), Size: int64(len(q.answer))},
	}
}

// replay replays reads, and returns the mismatches and the counts.
func (w *place) replay(reads []request) (found []replay.Mismatch, counts *pattern.Snapshot) {
	w.t.Helper()
	r, reader, c := w.replayer(func(m replay.Mismatch) error { found = append(found, m); return nil }, w.t.Errorf)
	for i := range reads {
		asked := reader.Of(reads[i].operation, []byte(reads[i].body))
		if asked.Skipped != "" {
			w.t.Fatalf("%s: %s", reads[i].body, asked.Skipped)
		}
		c.Add(asked, pattern.Answer{})
		r.Offer(asked, reads[i].exchanged())
	}
	r.Close()
	if err := r.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return found, c.Snapshot()
}
