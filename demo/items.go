package demo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// attribute is an attribute of an item, its value in DynamoDB JSON.
type attribute struct{ name, value string }

// join returns the attributes as the fields of a JSON object.
func join(attributes []attribute) string {
	var b strings.Builder
	for i, a := range attributes {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", a.name, a.value)
	}
	return b.String()
}

// text returns a string value in DynamoDB JSON.
func text(format string, args ...any) string {
	return `{"S":` + strconv.Quote(fmt.Sprintf(format, args...)) + `}`
}

// number returns a number value in DynamoDB JSON.
func number(n int64) string { return `{"N":"` + strconv.FormatInt(n, 10) + `"}` }

// gen makes the random parts of items.
type gen struct {
	*rand.Rand
	now func() int64 // DynamoDB's clock, unix seconds
}

// pick returns one of the words.
func (g *gen) pick(words ...string) string { return words[g.IntN(len(words))] }

// iso returns a time of a fixed day as an application writes it.
func iso(seconds int) string {
	return time.Date(2023, 9, 10, 0, 0, seconds, 0, time.UTC).Format("2006-01-02T15:04:05")
}

// expiry returns a time to live that ends within seconds, or after the demo.
func (g *gen) expiry() string {
	if g.IntN(4) == 0 {
		return number(g.now() + int64(g.IntN(3)))
	}
	return number(g.now() + 3600 + int64(g.IntN(3600)))
}

// Keys that several examples share.
var (
	pkSK        = []string{"pk:S", "sk:S"}
	messageKeys = []string{"userId:S", "msgId:S"}
)

// Examples are all worked examples. The one that hashes with a secret gets it from Secrets.
var Examples = []Example{
	{Source: "ProductCatalog", Target: "productcatalog", Mapping: "01_catalog.yaml", keys: pkSK, item: product},
	{Source: "Videos", Target: "videos", Mapping: "02_video.yaml", keys: pkSK, item: video},
	{Source: "VideosSafe", Target: "videos_safe", Mapping: "02b_video_safe.yaml", keys: pkSK, item: video},
	{Source: "VideosTimed", Target: "videos_timed", Mapping: "02c_video_sk_time.yaml", keys: pkSK, item: video},
	{Source: "Invoices", Target: "invoices", Mapping: "03_invoice.yaml", keys: pkSK, item: invoice},
	{Source: "Votes", Target: "votes", Mapping: "04_counter.yaml", keys: []string{"pk:S"}, item: votes},
	{Source: "Docs", Target: "docs", Mapping: "05_versions.yaml", keys: pkSK, item: version},
	{Source: "Portal", Target: "portal", Mapping: "06_erd.yaml", keys: []string{"PK:S", "SK:S"}, item: portal},
	{Source: "Messages", Target: "messages", Mapping: "07_ttl.yaml", TTL: "expiresAt", keys: messageKeys, item: message},
	{Source: "MessagesAging", Target: "messages_aging", Mapping: "07b_ttl_gc.yaml", TTL: "expiresAt", keys: messageKeys,
		item: message},
	{Source: "Anything", Target: "anything", Mapping: "08_document.yaml", View: "NEW_IMAGE", keys: pkSK, item: anything},
	{Source: "Mixed", Target: "mixed", Mapping: "09_tags_lists.yaml", keys: []string{"pk:S", "sk:N"}, item: mixed},
	{Source: "Devices", Target: "devices", Mapping: "10_regroup.yaml", keys: []string{"id:S"}, item: device},
	{Source: "Users", Target: "users", Mapping: "11_google.yaml", keys: []string{"Username:S"}, item: user},
}

func product(g *gen) []attribute {
	a := []attribute{{"pk", text("%s", g.pick("hats", "shoes", "bags"))},
		{"sk", text("%s#brand%c", g.pick("fedoras", "sneakers", "newsboy"), 'A'+g.IntN(26))},
		{"Price", number(int64(g.IntN(200)))}, {"Description", text("words %d", g.IntN(1000))}}
	if g.IntN(2) == 0 {
		a = append(a, attribute{"Thumbnail", text("https://storage/%d", g.IntN(1000))})
	}
	return a
}

// video is one of the items of a video. A comment's time follows from its sort key, so no two
// comments of a video have the same time. A video has its views in the old shape or in the new one,
// not in both.
func video(g *gen) []attribute {
	n := g.IntN(20)
	id := attribute{"pk", text("%04d", n)}
	views, count := "VideoStatsViews", "Count"
	if n%2 == 1 {
		views, count = "VideoStats", "ViewCount"
	}
	switch kind := g.IntN(6); kind {
	case 0:
		return []attribute{id, {"sk", text("Video")}, {"UploadDate", text("%s", iso(g.IntN(5)))},
			{"Format", text(`{"480":"https://storage/%d"}`, g.IntN(100))}}
	case 1:
		return []attribute{id, {"sk", text("VideoStatsLikes")}, {"Count", number(g.Int64N(1e6))}}
	case 2:
		return []attribute{id, {"sk", text("%s", views)}, {count, number(g.Int64N(1e6))}}
	default:
		c := g.IntN(50)
		return []attribute{id, {"sk", text("VideoComment#%d", 98765432-c)}, {"CreatedAt", text("%s", iso(100+c))},
			{"Content", text("comment %d", g.IntN(1e6))}}
	}
}

func invoice(g *gen) []attribute {
	id := fmt.Sprintf("Invoice-%04d", g.IntN(30))
	rest := []attribute{{"DateCreated", text("%s", iso(g.IntN(1000)))},
		{"Details", text(`{"amount_usd": %d}`, g.IntN(1000))}}
	if g.IntN(3) == 0 {
		return append([]attribute{{"pk", text("%s", id)}, {"sk", text("%s", id)}}, rest...)
	}
	return append([]attribute{{"pk", text("%s", id)}, {"sk", text("Payment-%04d", g.IntN(6))}}, rest...)
}

func votes(g *gen) []attribute {
	candidate := "Cand" + g.pick("A", "B", "C", "D")
	if shard := g.IntN(21); shard < 20 {
		candidate = fmt.Sprintf("%s.%d", candidate, shard)
	}
	return []attribute{{"pk", text("%s", candidate)}, {"votes", number(g.Int64N(1000))}}
}

func version(g *gen) []attribute {
	return []attribute{{"pk", text("owner%d", g.IntN(5))}, {"sk", text("v%d_doc%d", g.IntN(12), g.IntN(4))},
		{"t", text("text %d", g.IntN(1000))},
		{"words", number(int64(g.IntN(1000)))}}
}

// portal is one of the entities of a single table design.
func portal(g *gen) []attribute {
	user, service := text("USER#%03d", g.IntN(30)), g.pick("news", "mail", "shop")
	switch g.IntN(5) {
	case 0:
		return []attribute{{"PK", user}, {"SK", text("USER#")}, {"email", text("%d@example.com", g.IntN(1000))},
			{"name", text("n%d", g.IntN(100))}}
	case 1:
		return []attribute{{"PK", user}, {"SK", text("PERSONAL#%s#%s", service, g.pick("layout", "alerts"))},
			{"cols", number(int64(g.IntN(9)))}}
	case 2:
		return []attribute{{"PK", user}, {"SK", text("SUBSCRIBE#%s#NEWS#%d", service, g.IntN(5))},
			{"data", text("SUBSCRIBE_USER")}}
	case 3:
		return []attribute{{"PK", text("SERVICE#%s", service)}, {"SK", text("SERVICE#")},
			{"name", text("service %d", g.IntN(100))}}
	default:
		return []attribute{{"PK", text("SUBSCRIBE#%s#NEWS#%d", service, g.IntN(5))}, {"SK", text("SUBSCRIBE#")},
			{"title", text("title %d", g.IntN(100))}}
	}
}

func message(g *gen) []attribute {
	return []attribute{{"userId", text("u%02d", g.IntN(20))}, {"msgId", text("%05d", g.IntN(20))},
		{"body", text("hello %d", g.IntN(1000))}, {"expiresAt", g.expiry()}}
}

func anything(g *gen) []attribute {
	return []attribute{{"pk", text("p%d", g.IntN(10))}, {"sk", text("s#%d", g.IntN(20))},
		{"n", `{"N":"12345678901234567890123456789012345678"}`},
		{"any", g.pick(`{"NULL":true}`, `{"S":""}`, `{"BOOL":false}`, `{"L":[{"N":"1"},{"M":{}}]}`,
			`{"NS":["3","1","2"]}`, `{"B":"3q2+7w=="}`)}}
}

func mixed(g *gen) []attribute {
	return []attribute{{"pk", text("%s#user%d@example.com", g.pick("acme", "apex"), g.IntN(20))},
		{"sk", `{"N":"` + g.pick("-3.5", "0", "0.25", "7", "1e20") + `"}`},
		{"tags", g.pick(`{"SS":["new"]}`, `{"SS":["new","red"]}`, `{"SS":["old","red","sale"]}`)},
		{"opts", fmt.Sprintf(`{"M":{"size":{"N":"%d"},%q:{"BOOL":true}}}`, g.IntN(50), g.pick("gift", "odd:name", "größe"))},
		{"lines", g.pick(`{"L":[]}`, `{"L":[{"S":"one"}]}`, `{"L":[{"S":"one"},{"N":"2"},{"NULL":true}]}`)},
		{"note", text("note %d", g.IntN(100))}}
}

// device is an item that moves between rows: its row key is its site.
func device(g *gen) []attribute {
	return []attribute{{"id", text("dev%03d", g.IntN(60))},
		{"site", text("site-%s", g.pick("north", "south", "east", "west"))}, {"level", number(int64(g.IntN(100)))},
		{"state", text("%s", g.pick("ok", "low", "off"))}}
}

func user(g *gen) []attribute {
	return []attribute{{"Username", text("user%d", g.IntN(100))}, {"Age", number(int64(g.IntN(100)))},
		{"Address", fmt.Sprintf(`{"M":{"city":{"S":%q},"geo":{"M":{"lat":{"N":"%d.5"}}}}}`, g.pick("Oslo", "Lima"),
			g.IntN(60))},
		{"Active", g.pick(`{"BOOL":true}`, `{"BOOL":false}`)}}
}
