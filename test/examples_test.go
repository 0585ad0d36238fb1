package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// mappings is where the worked examples of the mapping language are.
const mappings = "../transform/testdata/mappings"

// example is a worked example of the mapping language: a table with a mapping and items that match
// its patterns.
type example struct {
	table   string
	mapping string        // file; "": the default mapping
	ttl     string        // attribute with the time to live, "": none
	view    string        // of the stream; "": both images
	keys    []sandbox.Key // nil: pk and sk, both strings
	// item returns the attributes of the i-th item as the fields of a JSON object. Its key depends
	// on i alone, the rest also on v; expires is a time to live.
	item func(i, v int, expires int64) string
}

// examples have rows of their own (R), rows that several items share by key (K) or by difference
// (D), index rows, histories, and rows that items leave for others.
var examples = []example{
	{table: "Orders", ttl: "expires", item: func(i, v int, expires int64) string {
		return fmt.Sprintf(`"pk":{"S":"p#%d"},"sk":{"S":"s%d"},"expires":{"N":"%d"},%s`, i%7, i, expires, allTypes(v))
	}},
	{table: "ProductCatalog", mapping: "01_catalog.yaml", item: func(i, v int, _ int64) string {
		return fmt.Sprintf(`"pk":{"S":"hats%d"},"sk":{"S":"fedora#%d"},%s`, i%5, i, allTypes(v))
	}},
	{table: "Videos", mapping: "02_video.yaml", item: video},
	{table: "VideosSafe", mapping: "02b_video_safe.yaml", item: video},
	{table: "VideosTimed", mapping: "02c_video_sk_time.yaml", item: video},
	{table: "Invoices", mapping: "03_invoice.yaml", item: func(i, v int, _ int64) string {
		sk := fmt.Sprintf("Payment-%d", i)
		if i%5 == 0 {
			sk = fmt.Sprintf("Invoice-%d", i/5)
		}
		return fmt.Sprintf(`"pk":{"S":"Invoice-%d"},"sk":{"S":%q},"DateCreated":{"S":%q},"Details":{"S":"{\"usd\":%d}"}`,
			i/5, sk, iso(v), v)
	}},
	{table: "Votes", mapping: "04_counter.yaml", keys: []sandbox.Key{{Name: "pk", Type: "S"}},
		item: func(i, v int, _ int64) string {
			pk := fmt.Sprintf("Cand%d.%d", i/21, i%21)
			if i%21 == 20 {
				pk = fmt.Sprintf("Cand%d", i/21)
			}
			return fmt.Sprintf(`"pk":{"S":%q},"votes":{"N":"%d"}`, pk, v)
		}},
	{table: "Docs", mapping: "05_versions.yaml", item: func(i, v int, _ int64) string {
		return fmt.Sprintf(`"pk":{"S":"owner%d"},"sk":{"S":"v%d_doc%d"},%s`, i/48, i%12, i/12%4, allTypes(v))
	}},
	{table: "Portal", mapping: "06_erd.yaml", keys: []sandbox.Key{{Name: "PK", Type: "S"}, {Name: "SK", Type: "S"}},
		item: portal},
	{table: "Messages", mapping: "07_ttl.yaml", ttl: "expiresAt", keys: messageKeys, item: message},
	{table: "MessagesAging", mapping: "07b_ttl_gc.yaml", ttl: "expiresAt", keys: messageKeys, item: message},
	{table: "Anything", mapping: "08_document.yaml", view: "NEW_IMAGE", item: func(i, v int, _ int64) string {
		return fmt.Sprintf(`"pk":{"S":"p%d"},"sk":{"S":"s#%d"},%s`, i%9, i, allTypes(v))
	}},
	{table: "Mixed", mapping: "09_tags_lists.yaml", keys: []sandbox.Key{{Name: "pk", Type: "S"}, {Name: "sk", Type: "N"}},
		item: func(i, v int, _ int64) string {
			return fmt.Sprintf(`"pk":{"S":"acme#user%d@example.com"},"sk":{"N":"%d.5"},"tags":{"SS":["new","t%d"]},
				"opts":{"M":{"size":{"N":"%d"},"odd:name%d":{"BOOL":true}}},"lines":{"L":[%s{"S":"last"}]},"note":{"S":"%d"}`,
				i/3, i%3-1, v%3, v, v%4, strings.Repeat(`{"NULL":true},`, v%3), v)
		}},
	{table: "Devices", mapping: "10_regroup.yaml", keys: []sandbox.Key{{Name: "id", Type: "S"}},
		item: func(i, v int, _ int64) string {
			site := i/fewItems%25*40 + v%40 // a row has some ten items
			return fmt.Sprintf(`"id":{"S":"dev%d"},"site":{"S":"site-%d"},"a%d":{"N":"1"},%s`, i, site, v%3, allTypes(v))
		}},
	{table: "Users", mapping: "11_google.yaml", keys: []sandbox.Key{{Name: "Username", Type: "S"}},
		item: func(i, v int, _ int64) string { return fmt.Sprintf(`"Username":{"S":"user%d"},%s`, i, allTypes(v)) }},
}

var messageKeys = []sandbox.Key{{Name: "userId", Type: "S"}, {Name: "msgId", Type: "S"}}

func message(i, v int, expires int64) string {
	return fmt.Sprintf(`"userId":{"S":"u%d"},"msgId":{"S":"m%d"},"body":{"S":"hello %d"},"expiresAt":{"N":"%d"}`,
		i%20, i, v, expires)
}

// allTypes returns attributes of every type.
func allTypes(v int) string {
	return fmt.Sprintf(`"s":{"S":"größe %d"},"n":{"N":"%d.50"},"b":{"B":"3q2+7w=="},"t":{"BOOL":%t},"z":{"NULL":true},
		"ss":{"SS":["a","b%d"]},"ns":{"NS":["1","%d"]},"bs":{"BS":["AQ=="]},
		"l":{"L":[{"N":"1"},{"M":{"x":{"S":""}}}]},"m":{"M":{"city":{"S":"Oslo"},"geo":{"M":{"lat":{"N":"%d.5"}}}}}`,
		v, v, v%2 == 0, v, v+2, v)
}

// iso returns a time of a fixed day as an application writes it.
func iso(seconds int) string {
	return time.Date(2023, 9, 10, 0, 0, seconds, 0, time.UTC).Format("2006-01-02T15:04:05")
}

// video is one of the items of a video. A comment's time follows from its sort key, so no two of a
// video are the same. A video has its views in the old shape or in the new one.
func video(i, v int, _ int64) string {
	n := i / 6
	pk := fmt.Sprintf(`"pk":{"S":"%04d"},`, n)
	switch i % 6 {
	case 0:
		return pk + fmt.Sprintf(`"sk":{"S":"Video"},"UploadDate":{"S":%q},"Format":{"S":"{\"480\":%d}"}`, iso(v), v)
	case 1:
		return pk + fmt.Sprintf(`"sk":{"S":"VideoStatsLikes"},"Count":{"N":"%d"}`, v)
	case 2:
		views, count := "VideoStatsViews", "Count"
		if n%2 == 1 {
			views, count = "VideoStats", "ViewCount"
		}
		return pk + fmt.Sprintf(`"sk":{"S":%q},%q:{"N":"%d"}`, views, count, v)
	default:
		return pk + fmt.Sprintf(`"sk":{"S":"VideoComment#%d"},"CreatedAt":{"S":%q},"Content":{"S":"words %d"}`,
			98765432-i, iso(i), v)
	}
}

// portal is one of the entities of a single table design.
func portal(i, v int, _ int64) string {
	user := fmt.Sprintf(`"PK":{"S":"USER#%03d"},`, i/5%30)
	switch i % 5 {
	case 0:
		return fmt.Sprintf(`"PK":{"S":"USER#%03d"},"SK":{"S":"USER#"},"email":{"S":"%d@example.com"}`, i/5, v)
	case 1:
		return user + fmt.Sprintf(`"SK":{"S":"PERSONAL#mail#layout%d"},"cols":{"N":"%d"}`, i, v)
	case 2:
		return user + fmt.Sprintf(`"SK":{"S":"SUBSCRIBE#news#NEWS#%d"},"data":{"S":"SUBSCRIBE_USER"}`, i)
	case 3:
		return fmt.Sprintf(`"PK":{"S":"SERVICE#s%d"},"SK":{"S":"SERVICE#"},"name":{"S":"service %d"}`, i, v)
	default:
		return fmt.Sprintf(`"PK":{"S":"SUBSCRIBE#news#NEWS#%d"},"SK":{"S":"SUBSCRIBE#"},"title":{"S":"%d"}`, i, v)
	}
}

// exampleOf returns the example of a table.
func exampleOf(table string) *example {
	return &examples[slices.IndexFunc(examples, func(e example) bool { return e.table == table })]
}

// old makes the tables of examples, each with n items that are older than its stream. A tenth of
// them has expired long ago and was not deleted yet, another tenth expires while the test runs.
// Each is copied in pages of a few items.
func (w *world) old(n int, seed uint64, list []*example) {
	w.t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 11))
	w.tables, w.start = nil, ""
	for _, e := range list {
		w.View = "NEW_AND_OLD_IMAGES"
		if e.view != "" {
			w.View = e.view
		}
		w.CreateTable(e.table, e.key()...)
		if e.ttl != "" {
			w.Call("UpdateTimeToLive", fmt.Sprintf(
				`{"TableName":%q,"TimeToLiveSpecification":{"Enabled":true,"AttributeName":%q}}`, e.table, e.ttl))
		}
		size := 0
		w.Fill(e.table, n, func(i int) []byte {
			item := []byte("{" + e.item(i, rnd.IntN(1000), w.expiry(rnd)) + "}")
			size += len(item)
			return item
		})
		mapping := ""
		if e.mapping != "" {
			w.write(target(e.table)+".yaml", read(w.t, filepath.Join(mappings, e.mapping)))
			mapping = "mapping: " + target(e.table) + ".yaml, "
		}
		segments, units := 8, 100_000
		if n > fewItems {
			segments, units = 64, max(1, size/4096/60) // reading takes a minute
		}
		backfill := fmt.Sprintf("backfill: {from: scan, segments: %d, read_units: %d}", segments, units)
		table := fmt.Sprintf("source: %s, target: %s, %s%s", e.table, target(e.table), mapping, backfill)
		w.tables = append(w.tables, "{"+table+"}")
	}
	w.configure()
	w.ok("schema", "--apply")
}

// expiry returns a time to live: over long ago, over within seconds, or after the test.
func (w *world) expiry(rnd *rand.Rand) int64 {
	now := w.Clock.Now().Unix()
	switch rnd.IntN(10) {
	case 0:
		return now - 86_400
	case 1:
		return now + rnd.Int64N(20)
	default:
		return now + 30*86_400
	}
}

// change puts or deletes a random item: one of eight hot ones, one of the n old ones, or a new one.
func (w *world) change(e *example, n int, rnd *rand.Rand) {
	i := rnd.IntN(n + n/8)
	if rnd.IntN(3) == 0 {
		i = rnd.IntN(8)
	}
	item := e.item(i, rnd.IntN(1000), w.expiry(rnd))
	if rnd.IntN(4) == 0 {
		w.deleteItem(e, item)
		return
	}
	w.putItem(e, item)
}

func (w *world) putItem(e *example, item string) {
	w.Call("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":{%s}}`, e.table, item))
}

// deleteItem deletes the item with the key of another one.
func (w *world) deleteItem(e *example, item string) {
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+item+"}"), &attributes); err != nil {
		w.t.Errorf("item of %s: %v", e.table, err)
		return
	}
	var key []string
	for _, k := range e.key() {
		key = append(key, fmt.Sprintf("%q:%s", k.Name, attributes[k.Name]))
	}
	w.Call("DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":{%s}}`, e.table, strings.Join(key, ",")))
}

// key returns the key of the example's table.
func (e *example) key() []sandbox.Key {
	if e.keys == nil {
		return []sandbox.Key{{Name: "pk", Type: "S"}, {Name: "sk", Type: "S"}}
	}
	return e.keys
}
