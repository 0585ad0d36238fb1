package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/test/plants"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// rig replays reads of a random world.
type rig struct {
	t      *testing.T
	w      *plants.World
	reader *pattern.Reader
	tables []replay.Table
}

var schema = change.KeySchema{
	Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "sk", Type: 'S'},
}

func newRig(t *testing.T, seed uint64) *rig {
	t.Helper()
	w, err := plants.New(seed)
	if err != nil {
		t.Fatalf("%v\n%v", err, w)
	}
	r := &rig{t: t, w: w}
	side := &replay.Side{
		Settler: w.Settler(), Looking: w.Settler(),
		Rows: func(start, end string) verify.Target { return ranged{w, start, end} },
		Read: func(context.Context, string, string, []string, int) error { return nil },
	}
	var known []pattern.Table
	for i := range w.Tables {
		known = append(known, pattern.Table{Name: tableName(i), Schema: schema, Program: w.Tables[i].Program})
		r.tables = append(r.tables, replay.Table{Name: tableName(i), Number: i, Schema: schema, Side: side})
	}
	r.reader = pattern.NewReader(known...)
	return r
}

func tableName(i int) string { return fmt.Sprintf("table%d", i) }

// ranged is a range of the rows of a world.
type ranged struct {
	*plants.World
	start, end string
}

func (r ranged) Scan(ctx context.Context, f func(*verify.Row) error) error {
	return r.World.Scan(ctx, func(row *verify.Row) error {
		if key := string(row.Key); key < r.start || r.end != "" && key >= r.end {
			return nil
		}
		return f(row)
	})
}

// key is the key of an item.
type key struct{ PK, SK struct{ S string } }

func keyOf(text string) (k key) {
	_ = json.Unmarshal([]byte(text), &k) // made by the world
	return k
}

// request is one read with its answer.
type request struct{ operation, body, answer string }

// reads returns a read of each item that exists or ever did, and queries of each partition.
func (r *rig) reads() (all []request) {
	for i := range r.w.Tables {
		keys, prefixes := map[string]bool{}, map[string]bool{}
		for of := range r.w.Ever {
			if of.Table == i {
				keys[of.Key] = true
				prefixes[keyOf(of.Key).SK.S[:1]] = true
			}
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			answer := "{}"
			if item, here := r.w.Items[guarded.Item{Table: i, Key: k}]; here {
				answer = `{"Item":` + item + `}`
			}
			all = append(all, request{"GetItem", fmt.Sprintf(`{"TableName":%q,"Key":%s}`, tableName(i), k), answer})
		}
		for _, pk := range []string{"p0", "p1"} {
			all = append(all, r.query(i, pk, "", "", false), r.query(i, pk, "", "", true))
			for _, p := range slices.Sorted(maps.Keys(prefixes)) {
				all = append(all, r.query(i, pk, p, "", false), r.query(i, pk, p+"1", p+"2", false))
			}
		}
	}
	return all
}

// query returns a Query of a partition: all of it, sort keys that begin with a text, or those between
// two.
func (r *rig) query(table int, pk, from, to string, backward bool) request {
	condition, values := "pk = :p", map[string]any{":p": map[string]string{"S": pk}}
	switch {
	case to != "":
		condition += " AND sk BETWEEN :a AND :b"
		values[":a"], values[":b"] = map[string]string{"S": from}, map[string]string{"S": to}
	case from != "":
		condition += " AND begins_with(sk, :a)"
		values[":a"] = map[string]string{"S": from}
	}
	body, err := json.Marshal(map[string]any{
		"TableName": tableName(table), "KeyConditionExpression": condition, "ExpressionAttributeValues": values,
		"ScanIndexForward": !backward,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var keys []string
	for of := range r.w.Items {
		sk := keyOf(of.Key).SK.S
		if of.Table == table && keyOf(of.Key).PK.S == pk &&
			(to != "" && sk >= from && sk <= to || to == "" && strings.HasPrefix(sk, from)) {
			keys = append(keys, of.Key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(keyOf(a).SK.S, keyOf(b).SK.S) })
	if backward {
		slices.Reverse(keys)
	}
	var items []string
	for _, k := range keys {
		items = append(items, r.w.Items[guarded.Item{Table: table, Key: k}])
	}
	return request{"Query", string(body), `{"Items":[` + strings.Join(items, ",") + `]}`}
}

// mismatches replays all reads, and returns the items that differ, with the counts of all patterns.
func (r *rig) mismatches() (found map[string][]string, total pattern.Replay) {
	r.t.Helper()
	counts := pattern.NewCollector()
	found = map[string][]string{}
	x := replay.New(replay.Options{
		Reader: r.reader, Counts: counts, Tables: r.tables,
		Mismatch: func(m replay.Mismatch) error { found[m.Key] = append(found[m.Key], m.Kinds...); return nil },
		Warn:     r.t.Errorf,
	})
	reads := r.reads()
	for _, q := range reads {
		asked := r.reader.Of(q.operation, []byte(q.body))
		if asked.Skipped != "" {
			r.t.Fatalf("%s: %s", q.body, asked.Skipped)
		}
		x.Offer(asked, &exchange.Exchange{
			Status: 200, Answer: exchange.Body{Bytes: []byte(q.answer), Size: int64(len(q.answer))},
		})
	}
	x.Close()
	if err := x.Run(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	done := int64(0)
	for _, c := range counts.Snapshot().Patterns {
		done += c.Replay.Replayed + c.Replay.Left()
		total.Replayed += c.Replay.Replayed
		total.Differed += c.Replay.Differed
		if c.Replay.Waiting() != 0 {
			r.t.Errorf("%d items of %s still wait", c.Replay.Waiting(), c.Pattern.Text())
		}
	}
	if done != int64(len(reads)) {
		r.t.Errorf("%d of %d reads are counted", done, len(reads))
	}
	return found, total
}

// TestReplayNamesWhatWasPlanted: whatever the mapping and the history, no read is a false alarm. Of one
// planted difference the item is named if a reader of its row can see it, and no other.
func TestReplayNamesWhatWasPlanted(t *testing.T) {
	worlds := uint64(40)
	if testing.Short() {
		worlds = 15
	}
	planted, named, replayed := map[string]int{}, map[string]int{}, int64(0)
	for seed := uint64(1); seed <= worlds; seed++ {
		r := newRig(t, seed)
		found, total := r.mismatches()
		if len(found) > 0 {
			t.Fatalf("after the history: %q\n%v", found, r.w)
		}
		replayed += total.Replayed
		for range 8 {
			p := r.w.Plant()
			if p == nil {
				continue
			}
			found, total = r.mismatches()
			replayed += total.Replayed
			for k := range found {
				if p.Item == nil || p.Item.Key != k {
					t.Fatalf("%s: %q is named\n%v", p.What, found, r.w)
				}
			}
			if p.Item != nil {
				kind, _, _ := strings.Cut(p.What, ":")
				planted[kind]++
				switch {
				case len(found) > 0:
					named[kind]++
				case p.Visible && !strings.Contains(p.Row, "-by#"): // no read is of an index
					t.Fatalf("%s of %s: it is not named\n%v", p.What, p.Item.Key, r.w)
				}
			}
			if err := r.w.Mend(p); err != nil {
				t.Fatal(err)
			}
			if found, _ = r.mismatches(); len(found) > 0 {
				t.Fatalf("%s, mended: %q\n%v", p.What, found, r.w)
			}
		}
	}
	t.Logf("%d reads replayed; planted %v, named %v", replayed, planted, named)
}
