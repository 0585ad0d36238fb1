package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// Table is the catalogue that the demo writes, and Target where its items go.
const (
	Table  = "Catalog"
	Target = "catalog"
)

// SoonExpired is longer than any short time to live that the demo writes: items expire within
// seconds, or after an hour.
const SoonExpired = time.Minute

// writers is how many goroutines write. Each has keys of its own, so that the writes of an item
// have one order.
const writers = 4

// writerIDs is how many products each of them has in a category, beside the hot ones.
const writerIDs = 5000

// Writer is the application that writes the catalogue: puts, partial updates, deletes, items that
// expire, and a few hot items.
type Writer struct {
	Sandbox *sandbox.Sandbox
	Seed    uint64
	Rate    float64 // calls a second, all writers together

	calls atomic.Int64
}

// Calls returns how many writes were made so far.
func (w *Writer) Calls() int64 { return w.calls.Load() }

// Create makes the table: composite key, stream with both images, time to live on "expires".
func (w *Writer) Create() error {
	catalog := Example{Source: Table, TTL: "expires", keys: []string{"pk:S", "sk:S"}}
	return catalog.create(w.Sandbox)
}

// Run writes until ctx ends, and returns nil then.
func (w *Writer) Run(ctx context.Context) error {
	limit := rate.NewLimiter(rate.Limit(w.Rate), max(1, int(w.Rate/20)))
	g, ctx := errgroup.WithContext(ctx)
	for i := range writers {
		g.Go(func() error {
			r := rand.New(rand.NewPCG(w.Seed, uint64(i)))
			for limit.Wait(ctx) == nil {
				if err := w.write(r, i); err != nil {
					return fmt.Errorf("write to the sandbox: %w", err)
				}
				w.calls.Add(1)
			}
			return nil
		})
	}
	return g.Wait()
}

// categories of the catalogue. Some need care as row keys.
var categories = []string{"hats", "shoes", "books", "toys#wood", "garden & home", "größe", "50%", "e-bikes 🚲"}

// catalogKey returns the key of a product, as the fields of a JSON object. A category has a
// partition for every hundred of each writer's products.
func catalogKey(category string, writer, id int) string {
	return fmt.Sprintf(`"pk":{"S":"%s/%d"},"sk":{"S":"%d-%05d"}`, category, id/100, writer, id)
}

// write makes one call. The sort key begins with the writer's number, so no two writers share an
// item.
func (w *Writer) write(r *rand.Rand, writer int) error {
	category := categories[r.IntN(len(categories))]
	id := r.IntN(writerIDs)
	if r.IntN(20) == 0 {
		id = writerIDs + r.IntN(3) // hot items: a twentieth of all writes
	}
	key := catalogKey(category, writer, id)
	switch n := r.IntN(100); {
	case n < 55:
		return call(w.Sandbox, "PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{%s,%s}}`, Table, key, attributes(r)))
	case n < 70:
		return call(w.Sandbox, "UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s},
			"UpdateExpression":"SET price = :p, #t.#n = :p REMOVE stock",
			"ConditionExpression":"attribute_exists(#t)","ExpressionAttributeNames":{"#t":"tags","#n":"n%d"},
			"ExpressionAttributeValues":{":p":{"N":"%s"}}}`, Table, key, r.IntN(3), price(r)))
	case n < 80:
		return call(w.Sandbox, "UpdateItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s},
			"UpdateExpression":"ADD #v :one REMOVE note",
			"ExpressionAttributeNames":{"#v":"views"},"ExpressionAttributeValues":{":one":{"N":"1"}}}`, Table, key))
	case n < 92:
		return call(w.Sandbox, "DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s}}`, Table, key))
	default: // expires within seconds: the sandbox's sweep deletes it as DynamoDB would
		soon := w.Sandbox.Clock.Now().Unix() + int64(r.IntN(3))
		return call(w.Sandbox, "PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{%s,%s,"expires":{"N":"%d"}}}`,
			Table, key, attributes(r), soon))
	}
}

func price(r *rand.Rand) string { return fmt.Sprintf("%d.%02d", r.IntN(500), r.IntN(100)) }

// attributes returns the attributes of a product beside its key, each optional one half of the
// time.
func attributes(r *rand.Rand) string {
	a := []string{
		fmt.Sprintf(`"price":{"N":"%s"}`, price(r)),
		fmt.Sprintf(`"tags":{"M":{"n0":{"N":"%d"},"color":{"S":"red"}}}`, r.IntN(9)),
		fmt.Sprintf(`"name":{"S":"product %d"}`, r.IntN(1e6)),
	}
	for _, optional := range []string{
		fmt.Sprintf(`"stock":{"N":"%d"}`, r.IntN(1000)),
		`"note":{"S":""}`, `"sold_out":{"BOOL":true}`, `"nothing":{"NULL":true}`,
		`"sizes":{"SS":["S","M","L"]}`, `"big":{"N":"12345678901234567890123456789012345678"}`, `"a:b#c\u0000😀":{"S":"odd"}`,
		`"image":{"B":"3q2+7w=="}`, `"history":{"L":[{"N":"1"},{"S":"two"}]}`,
	} {
		if r.IntN(2) == 0 {
			a = append(a, optional)
		}
	}
	return strings.Join(a, ",")
}

// call calls the sandbox's DynamoDB. A condition that does not hold is not an error. The end of the
// demo does not cancel the call: a write that was applied but not counted would be missing from the
// comparison.
func call(sb *sandbox.Sandbox, operation, body string) error {
	_, err := sb.Call(context.Background(), operation, body)
	var refused *sandbox.CallError
	if errors.As(err, &refused) &&
		(refused.Code == "ConditionalCheckFailedException" || strings.Contains(refused.Message, "document path")) {
		return nil
	}
	return err
}
