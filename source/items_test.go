package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox/dynamo"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// batchServer answers BatchGetItem from its items, badly: it may leave keys unprocessed, change the
// order and the notation of numbers, omit the Date, and it refuses duplicates as the service does.
type batchServer struct {
	mu      sync.Mutex
	items   map[string]string // number → item
	rnd     *rand.Rand
	none    int // calls that process nothing
	undated int // replies without Date
	calls   int
}

func (b *batchServer) answer(c wireCall) *wireReply {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	request := c.in["RequestItems"].(map[string]any)["T"].(map[string]any)
	if request["ConsistentRead"] != true {
		return refuse("ValidationException", "not a strong read")
	}
	keys := request["Keys"].([]any)
	if len(keys) == 0 || len(keys) > 100 {
		return refuse("ValidationException", fmt.Sprint(len(keys), " keys"))
	}
	b.rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var items, left []string
	seen := map[string]bool{}
	for _, k := range keys {
		n := k.(map[string]any)["id"].(map[string]any)["N"].(string)
		if seen[n] {
			return refuse("ValidationException", "Provided list of item keys contains duplicates")
		}
		seen[n] = true
		switch item, ok := b.items[n]; {
		case b.none > 0 || b.rnd.IntN(3) == 0:
			left = append(left, fmt.Sprintf(`{"id":{"N":"%s.0"}}`, n))
		case ok:
			items = append(items, item)
		}
	}
	b.none = max(b.none-1, 0)
	const form = `{"Responses":{"T":[%s]},"UnprocessedKeys":{%s},"ConsumedCapacity":[{"CapacityUnits":%d}]}`
	reply := &wireReply{body: fmt.Sprintf(form,
		strings.Join(items, ","), leftOver(left), len(keys))}
	if b.undated > 0 {
		b.undated--
		reply.header = map[string]string{"Date": ""}
	}
	return reply
}

func leftOver(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf(`"T":{"ConsistentRead":true,"Keys":[%s]}`, strings.Join(keys, ","))
}

// TestUnprocessedIsNotAbsent reads 250 keys, some in two notations, of a server that answers in
// disorder, leaves a third of the keys unprocessed and sends replies without a Date.
func TestUnprocessedIsNotAbsent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		b := &batchServer{items: map[string]string{}, rnd: rand.New(rand.NewPCG(seed, 2)), none: 2, undated: 3}
		var keys [][]byte
		var want []string
		for i := range 250 {
			item := ""
			if i%5 != 0 {
				item = fmt.Sprintf(`{"v":{"S":"%d"},"id":{"N":"%d.00"}}`, i, i)
				b.items[fmt.Sprint(i)] = item
			}
			keys, want = append(keys, fmt.Appendf(nil, `{"id":{"N":"%d"}}`, i)), append(want, item)
			if i%7 == 0 {
				keys, want = append(keys, fmt.Appendf(nil, `{"id":{"N":"%d.0"}}`, i)), append(want, item)
			}
		}
		w := newWire()
		w.script = b.answer
		got, err := open(t, w).ReadItems(t.Context(), "T", keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range got.Items {
			if (item == nil) != (want[i] == "") || string(item) != want[i] {
				t.Errorf("key %s: item %q, want %q", keys[i], item, want[i])
			}
		}
		if b.undated != 0 || b.none != 0 || got.Units < 250 || got.Requested == 0 || got.Answered <= got.Requested {
			t.Errorf("%d undated and %d refused calls left; %+v", b.undated, b.none, got)
		}
	})
}

// TestBatchEnclosesAllItsReadings: Requested is before the first call and Answered not before the
// last one.
func TestBatchEnclosesAllItsReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		b := &batchServer{items: map[string]string{"1": `{"id":{"N":"1"}}`}, rnd: rand.New(rand.NewPCG(1, 1)), none: 6}
		w.script = b.answer
		s := open(t, w)
		got, err := s.ReadItems(t.Context(), "T", [][]byte{[]byte(`{"id":{"N":"1"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		first, last := w.calls[0].at, w.calls[len(w.calls)-1].at
		if got.Requested > change.MillisOf(first) || got.Answered < change.MillisOf(last)-1000 || got.At.After(first) {
			t.Errorf("calls from %v to %v, batch %+v", first, last, got)
		}
	})
}

func TestKeysUnprocessedForGoodAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		b := &batchServer{rnd: rand.New(rand.NewPCG(1, 1)), none: 1 << 30}
		w.script = b.answer
		_, err := open(t, w).ReadItems(t.Context(), "T", [][]byte{[]byte(`{"id":{"N":"1"}}`)})
		if Classify(err) != failure.Throttled || !errors.Is(err, ErrUnprocessed) || Hint(err) == "" || b.calls > 20 {
			t.Errorf("%d calls, %v: %v", b.calls, Classify(err), err)
		}
	})
}

// TestMalformedBatchProvesNoAbsence: a reply that lacks a list, or has items that nobody asked for,
// is an error.
func TestMalformedBatchProvesNoAbsence(t *testing.T) {
	for name, body := range map[string]string{
		"empty":             `{}`,
		"no responses":      `{"UnprocessedKeys":{}}`,
		"no unprocessed":    `{"Responses":{"T":[]}}`,
		"null":              `{"Responses":{"T":[]},"UnprocessedKeys":null}`,
		"cut":               `{"Responses":{"T":[]},"UnprocessedKeys":{`,
		"another item":      `{"Responses":{"T":[{"id":{"N":"2"}}]},"UnprocessedKeys":{}}`,
		"two versions":      `{"Responses":{"T":[{"id":{"N":"1"}},{"id":{"N":"1.0"}}]},"UnprocessedKeys":{}}`,
		"item without key":  `{"Responses":{"T":[{"v":{"N":"1"}}]},"UnprocessedKeys":{}}`,
		"answered and left": `{"Responses":{"T":[{"id":{"N":"1"}}]},"UnprocessedKeys":{"T":{"Keys":[{"id":{"N":"1"}}]}}}`,
		"another key left":  `{"Responses":{"T":[]},"UnprocessedKeys":{"T":{"Keys":[{"id":{"N":"3"}}]}}}`,
		"two tables":        `{"Responses":{"T":[],"U":[]},"UnprocessedKeys":{}}`,
		"no object":         `{"Responses":{"T":["x"]},"UnprocessedKeys":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			w.script = func(wireCall) *wireReply { return &wireReply{body: body} }
			got, err := open(t, w).ReadItems(t.Context(), "T", [][]byte{[]byte(`{"id":{"N":"1"}}`)})
			if got != nil || Classify(err) != failure.Transient {
				t.Errorf("%+v, %v: %v", got, Classify(err), err)
			}
		})
	}
	s := open(t, newWire())
	for _, keys := range [][]string{{`{`}, {`{}`}, {`{"a":{"S":"x"}}`, `{"b":{"S":"x"}}`}, {`{"a":{"BOOL":true}}`}} {
		var all [][]byte
		for _, k := range keys {
			all = append(all, []byte(k))
		}
		if _, err := s.ReadItems(t.Context(), "T", all); Classify(err) != failure.Fatal {
			t.Errorf("keys %v: %v: %v", keys, Classify(err), err)
		}
	}
	if got, err := s.ReadItems(t.Context(), "T", nil); err != nil || len(got.Items) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLargeBatchOnTheWire reads more than the 16 MB that one reply of the service has, over a
// connection that is cut, throttled and reset in between.
func TestLargeBatchOnTheWire(t *testing.T) {
	w := newWorld(t)
	w.CreateTable("Tab")
	const items = 60
	long := strings.Repeat("x", 380<<10)
	var keys [][]byte
	for i := range items {
		w.Put("Tab", fmt.Sprint(i), `"é\`, fmt.Sprintf(`"v":{"S":%q}`, long))
		keys = append(keys, fmt.Appendf(nil, `{"pk":{"S":"%d"},"sk":{"S":"\"é\\"}}`, i),
			fmt.Appendf(nil, `{"sk":{"S":"none"},"pk":{"S":"%d"}}`, i))
	}
	for _, r := range []fault.Rule{
		{Effect: fault.Cut, Operation: "BatchGetItem", Times: 1},
		{Effect: fault.Throttle, Operation: "BatchGetItem", Times: 1},
		{Effect: fault.Error, Code: "InternalServerError", Operation: "BatchGetItem", Times: 1},
	} {
		if err := w.Faults.Inject(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.ReadItems(t.Context(), "Tab", keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range got.Items {
		if (item != nil) != (i%2 == 0) {
			t.Fatalf("key %s: an item of %d bytes", keys[i], len(item))
		}
		if item == nil {
			continue
		}
		var v struct{ V struct{ S string } }
		if err := json.Unmarshal(item, &v); err != nil || v.V.S != long {
			t.Errorf("item %d: %v %s", i, err, cmp.Diff(len(long), len(v.V.S)))
		}
	}
}

// TestFaultsOfABatchGiveTheSameItems: keys left unprocessed, items in disorder and repeated,
// replies without a Date, over the wire; two keys of one item in other notations are one.
func TestFaultsOfABatchGiveTheSameItems(t *testing.T) {
	w := newWorld(t)
	info := createTable(t, w.testSource, "Items")
	var keys [][]byte
	want := map[int]string{}
	for i := range 120 {
		if i%4 != 0 {
			w.put(t, info.Name, i)
		}
		keys = append(keys, fmt.Appendf(nil, `{"pk":{"S":"%d"},"n":{"N":"%d.0"}}`, i%50, i%3))
	}
	for i, key := range keys {
		item, err := w.Item(t.Context(), info.Name, key)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = string(item)
	}
	w.DynamoDB.Faults.LeaveUnprocessed(dynamo.Unprocessed{Share: 0.4})
	w.DynamoDB.Faults.Disorder(true)
	w.DynamoDB.Faults.Repeat(0.3)
	if err := w.Faults.Inject(fault.Rule{Effect: fault.NoDate, Operation: "BatchGetItem", Times: 2}); err != nil {
		t.Fatal(err)
	}
	got, err := w.ReadItems(t.Context(), info.Name, keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range got.Items {
		if string(item) != want[i] {
			t.Errorf("key %s: %q, want %q", keys[i], item, want[i])
		}
	}
	if w.Faults.Pending() != 0 || got.Units == 0 || got.Requested == 0 {
		t.Errorf("%d faults left, %+v", w.Faults.Pending(), got)
	}
}

// Item reads one item with GetItem, which nothing but tests does: what ReadItems returns is
// compared with it. It returns nil when there is no such item. key is its primary key in DynamoDB's
// typed JSON.
func (s *Source) Item(ctx context.Context, table string, key []byte) ([]byte, error) {
	k, err := itemKey(key)
	if err != nil {
		return nil, err
	}
	var b raw.Body
	defer b.Free()
	in := &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)}
	if _, err = s.tables.GetItem(ctx, in, b.ForTables); err != nil {
		return nil, err
	}
	var got struct{ Item json.RawMessage }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		return nil, err
	}
	if string(got.Item) == "null" {
		return nil, nil
	}
	return got.Item, nil
}
