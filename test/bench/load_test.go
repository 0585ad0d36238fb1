package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// load is what is written before the daemon starts.
type load struct {
	name    string
	tables  int
	items   int    // of all tables together
	rounds  int    // changes of each item after the stream is on
	size    int    // bytes of an image's texts; 0: about 1 KB
	mapping string // empty: the preset default, class R

	network network
	forgets bool // a null server does not note the cells: they cannot be compared

	settings, options string // further YAML of the configuration, and of each table
	bigtable          string // further YAML of it
	queue             string // YAML of it; empty: the server is in the daemon's process
	poll              string // idle_poll of the source; empty: the default
}

func (l load) changes() int { return l.items * l.rounds }

func sourceName(i int) string { return fmt.Sprintf("Bench%d", i) }

func targetName(i int) string { return fmt.Sprintf("bench%d", i) }

// Twenty items share a row. In class K their columns are known from the key, in class D they are
// named by attributes.
const (
	classK = `mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: order
  match: {pk: "customer-{c:d}", sk: "order-{o:d}"}
  row: "{c}"
  cells:
  - {attr: round, to: "d:{o}/round"}
  - {attr: attribute0, to: "d:{o}/attribute0"}
  - {attr: attribute1, to: "d:{o}/attribute1"}
  - {attr: attribute2, to: "d:{o}/attribute2"}
  - {attr: attribute3, to: "d:{o}/attribute3"}
  - {attr: attribute4, to: "d:{o}/attribute4"}
  - {attr: attribute5, to: "d:{o}/attribute5"}
  - {attr: attribute6, to: "d:{o}/attribute6"}
  - {attr: attribute7, to: "d:{o}/attribute7"}
  - {attr: price, to: "d:{o}/price"}
  - {attr: lines, to: "d:{o}/lines", as: json}
`
	classD = `mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: order
  match: {pk: "customer-{c:d}", sk: "order-{o:d}"}
  row: "{c}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{o}/{attr}"}]
`
)

// write makes the tables and their items, and then the changes that the daemon shall carry.
func (l load) write(b *testing.B, sb *sandbox.Sandbox) {
	b.Helper()
	rnd := l.prepare(b, sb)
	for n := range l.rounds {
		l.round(b, sb, rnd, n+1)
	}
}

// prepare makes the tables and their items. None of these is in a stream.
func (l load) prepare(b *testing.B, sb *sandbox.Sandbox) *rand.Rand {
	b.Helper()
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range l.tables {
		post(b, sb, "CreateTable", fmt.Sprintf(`{"TableName":%q,
			"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
			"BillingMode":"PAY_PER_REQUEST"}`, sourceName(i)))
	}
	l.round(b, sb, rnd, 0)
	for i := range l.tables {
		post(b, sb, "UpdateTable", fmt.Sprintf(`{"TableName":%q,
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`, sourceName(i)))
	}
	return rnd
}

// round changes every item once.
func (l load) round(b *testing.B, sb *sandbox.Sandbox, rnd *rand.Rand, n int) {
	b.Helper()
	for i := range l.items {
		if err := sb.DynamoDB.Put(sourceName(i%l.tables), l.item(rnd, i, n)); err != nil {
			b.Fatal(err)
		}
	}
}

// item has 15 attributes. Without a size it is about 1 KB of JSON, so a record has 2.4 KB.
func (l load) item(rnd *rand.Rand, i, n int) []byte {
	texts := 3 // of 16 characters in an attribute
	if l.size > 0 {
		texts = l.size / 8 / 16
	}
	var s strings.Builder
	fmt.Fprintf(&s, `{"pk":{"S":"customer-%05d"},"sk":{"S":"order-%03d"},"round":{"N":"%d"}`, i/20, i%20, n)
	for a := range 8 {
		fmt.Fprintf(&s, `,"attribute%d":{"S":"`, a)
		for range texts {
			fmt.Fprintf(&s, "%016x", rnd.Uint64())
		}
		s.WriteString(`"}`)
	}
	s.WriteString(`,"price":{"N":"129.95"},"tags":{"SS":["blue","cotton","sale"]},"open":{"BOOL":true},` +
		`"lines":{"L":[{"M":{"sku":{"S":"a-1"},"n":{"N":"2"}}},{"M":{"sku":{"S":"b-7"},"n":{"N":"1"}}}]}}`)
	return []byte(s.String())
}
