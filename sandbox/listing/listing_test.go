package listing_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/listing"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// tester is the part of testing.T that rapid.T has too.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// newTable returns a table Tab with partition key p (S) and sort key c (N), a sparse global index
// byG of g (S) that has its keys only, and a local index byL of l (S) that includes x.
func newTable(t tester, items ...string) *table.Table {
	t.Helper()
	key := func(hash, sort string) []table.KeyElement {
		return []table.KeyElement{{AttributeName: hash, KeyType: "HASH"}, {AttributeName: sort, KeyType: "RANGE"}}
	}
	tb := table.NewTable(table.Definition{
		Name: "Tab", Keys: key("p", "c"), Status: "ACTIVE",
		Attributes: []table.AttributeDefinition{
			{AttributeName: "p", AttributeType: "S"}, {AttributeName: "c", AttributeType: "N"},
			{AttributeName: "g", AttributeType: "S"}, {AttributeName: "l", AttributeType: "S"},
		},
		Global: []table.Index{{Name: "byG", Keys: key("g", "c"), Projection: "KEYS_ONLY"}},
		Local:  []table.Index{{Name: "byL", Keys: key("p", "l"), Projection: "INCLUDE", NonKey: []string{"x"}}},
	})
	for _, text := range items {
		item := decode(t, text)
		tb.Items.Put(nil, table.NewRecord(tb.Schema.KeyOf(item), item), item)
	}
	return tb
}

// decode reads DynamoDB JSON in which ' stands for ".
func decode(t tester, text string) attr.Map {
	t.Helper()
	item, err := attr.DecodeMap(parse(t, text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return item
}

func parse(t tester, text string) *wire.Node {
	t.Helper()
	n, err := wire.Parse(strings.ReplaceAll(text, "'", `"`))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// page is a reply.
type page struct {
	Items            []json.RawMessage
	Count            int
	ScannedCount     int
	LastEvaluatedKey json.RawMessage
	ConsumedCapacity struct{ CapacityUnits float64 }
}

// ids returns p and c of each item on the page, as "p1".
func (p *page) ids(t tester) (out []string) {
	t.Helper()
	for _, item := range p.Items {
		var keys struct{ P, C struct{ S, N string } }
		if err := json.Unmarshal(item, &keys); err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		out = append(out, keys.P.S+keys.C.N)
	}
	return out
}

// ask answers an operation whose body lacks the table's name and the outer braces.
func ask(t tester, tb *table.Table, op, fields string) (*page, *wire.Error) {
	t.Helper()
	shape, run := request.Scan, listing.Scan
	if op == "Query" {
		shape, run = request.Query, listing.Query
	}
	n := parse(t, strings.TrimSuffix("{'TableName':'Tab',"+fields, ",")+"}")
	if err := shape.Check(n, attr.CheckShape); err != nil {
		return nil, err
	}
	out, bad := run(n, listing.Host{Find: func(name string) (*table.Table, *wire.Error) {
		if name != "Tab" {
			return nil, &wire.Error{Code: "ResourceNotFoundException"}
		}
		return tb, nil
	}})
	if bad != nil {
		return nil, bad
	}
	p := &page{}
	if err := json.Unmarshal(out, p); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return p, nil
}

func mustAsk(t tester, tb *table.Table, op, fields string) *page {
	t.Helper()
	p, err := ask(t, tb, op, fields)
	if err != nil {
		t.Fatalf("%s %s: %v", op, fields, err)
	}
	return p
}

// walk asks again from each LastEvaluatedKey and returns the ids of every page.
func walk(t tester, tb *table.Table, op, fields string) (pages [][]string) {
	t.Helper()
	start := ""
	for range 1000 {
		p := mustAsk(t, tb, op, fields+start)
		pages = append(pages, p.ids(t))
		if p.LastEvaluatedKey == nil {
			return pages
		}
		start = ",'ExclusiveStartKey':" + string(p.LastEvaluatedKey)
	}
	t.Fatalf("%s %s: the pages have no end", op, fields)
	return nil
}

// item returns an item; more are fields beside the key, each followed by a comma.
func item(p string, c int, more string) string {
	return fmt.Sprintf("{%s'p':{'S':'%s'},'c':{'N':'%d'}}", more, p, c)
}

// numbered returns n items of partition p with sort keys from 1.
func numbered(p string, n int) (items []string) {
	for c := range n {
		items = append(items, item(p, c+1, ""))
	}
	return items
}

const ofA = "'KeyConditionExpression':'p = :p','ExpressionAttributeValues':{':p':{'S':'a'}}"

// sortCondition is a query of partition a with a condition on the sort key.
func sortCondition(condition, values string) string {
	return "'KeyConditionExpression':'p = :p AND " + condition +
		"','ExpressionAttributeValues':{':p':{'S':'a'}," + values + "}"
}

func TestLimitCountsEvaluatedItems(t *testing.T) {
	tb := newTable(t, numbered("a", 5)...)
	for name, c := range map[string]struct {
		fields string
		want   [][]string
	}{
		"no limit": {ofA, [][]string{{"a1", "a2", "a3", "a4", "a5"}}},
		"two":      {ofA + ",'Limit':2", [][]string{{"a1", "a2"}, {"a3", "a4"}, {"a5"}}},
		// A page that the limit ends has a LastEvaluatedKey, whether or not an item follows.
		"all":       {ofA + ",'Limit':5", [][]string{{"a1", "a2", "a3", "a4", "a5"}, nil}},
		"more":      {ofA + ",'Limit':6", [][]string{{"a1", "a2", "a3", "a4", "a5"}}},
		"backwards": {ofA + ",'Limit':3,'ScanIndexForward':false", [][]string{{"a5", "a4", "a3"}, {"a2", "a1"}}},
		// The filter comes after the limit: pages may be empty and still not be the last.
		"filtered": {"'KeyConditionExpression':'p = :p','FilterExpression':'attribute_exists(x)'," +
			"'ExpressionAttributeValues':{':p':{'S':'a'}},'Limit':2", [][]string{nil, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, walk(t, tb, "Query", c.fields)); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([][]string{{"a1", "a2", "a3"}, {"a4", "a5"}}, walk(t, tb, "Scan", "'Limit':3")); diff != "" {
		t.Errorf("pages of a scan (-want +got):\n%s", diff)
	}
}

func TestPageEndsBeforeOneMegabyte(t *testing.T) {
	big := "'x':{'S':'" + strings.Repeat("x", 300<<10) + "'},"
	var items []string
	for c := range 7 {
		items = append(items, item("a", c+1, big))
	}
	tb := newTable(t, items...)
	want := [][]string{{"a1", "a2", "a3"}, {"a4", "a5", "a6"}, {"a7"}}
	if diff := cmp.Diff(want, walk(t, tb, "Query", ofA)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	// A projection makes the reply smaller, not the page longer.
	p := mustAsk(t, tb, "Scan", "'ProjectionExpression':'c','Select':'SPECIFIC_ATTRIBUTES'")
	if p.Count != 3 || string(p.Items[0]) != `{"c":{"N":"1"}}` {
		t.Errorf("%d items, first %.100s", p.Count, p.Items[0])
	}
}

func TestSortKeyConditions(t *testing.T) {
	items := append(numbered("a", 12), item("a", -3, ""), item("b", 2, ""), item("aa", 2, ""))
	tb := newTable(t, items...)
	n := func(values ...int) (out []string) {
		for _, v := range values {
			out = append(out, fmt.Sprint("a", v))
		}
		return out
	}
	for condition, want := range map[string][]string{
		"c = :c":                 n(2),
		"c < :c":                 n(-3, 1),
		"c <= :c":                n(-3, 1, 2),
		"c > :d":                 n(11, 12), // numbers, not texts
		"c >= :d":                n(10, 11, 12),
		"c BETWEEN :c AND :d":    n(2, 3, 4, 5, 6, 7, 8, 9, 10),
		":c > c":                 n(-3, 1),
		"c BETWEEN :d AND :d":    n(10),
		"c BETWEEN :none AND :c": n(-3, 1, 2),
	} {
		values := ""
		for name, v := range map[string]string{":c": "2", ":d": "10", ":none": "-7"} {
			if strings.Contains(condition, name) {
				values += ",'" + name + "':{'N':'" + v + "'}"
			}
		}
		p := mustAsk(t, tb, "Query", sortCondition(condition, strings.TrimPrefix(values, ",")))
		if diff := cmp.Diff(want, p.ids(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
	}
}

// TestStartKeyNeedNotExist: a page goes on at the place of its start key, also when that item was
// deleted meanwhile.
func TestStartKeyNeedNotExist(t *testing.T) {
	tb := newTable(t, item("a", 1, ""), item("a", 5, ""), item("a", 9, ""))
	start := ",'ExclusiveStartKey':" + item("a", 6, "")
	for fields, want := range map[string][]string{
		ofA + start: {"a9"},
		ofA + ",'ScanIndexForward':false" + start: {"a5", "a1"},
		"'Limit':9" + start:                       {"a9"},
	} {
		op := "Query"
		if strings.HasPrefix(fields, "'Limit'") {
			op = "Scan"
		}
		if diff := cmp.Diff(want, mustAsk(t, tb, op, fields).ids(t)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", op, fields, diff)
		}
	}
}

// TestPagesAddUpToTheWhole draws tables, directions, limits and segments: the pages together are
// the unpaged answer.
func TestPagesAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []string
		for _, c := range rapid.SliceOfNDistinct(rapid.IntRange(-20, 20), 0, 20, rapid.ID[int]).Draw(t, "sort keys") {
			more := ""
			if rapid.Bool().Draw(t, "indexed") {
				more = "'g':{'S':'a'},'l':{'S':'" + rapid.StringMatching("[a-c]{1,2}").Draw(t, "l") + "'},"
			}
			items = append(items, item(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "p"), c, more))
		}
		tb := newTable(t, items...)
		backward := ",'ScanIndexForward':" + fmt.Sprint(rapid.Bool().Draw(t, "forward"))
		segment := rapid.IntRange(0, 2).Draw(t, "segment")
		op := "Query"
		var fields string
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			fields = ofA + backward
		case 1:
			fields = ofA + backward + ",'IndexName':'byL'"
		case 2:
			fields = strings.Replace(ofA, "p = :p", "g = :p", 1) + backward + ",'IndexName':'byG'"
		case 3:
			op, fields = "Scan", fmt.Sprintf("'TotalSegments':3,'Segment':%d", segment)
		default:
			op, fields = "Scan", "'IndexName':'byG'"
		}
		whole := mustAsk(t, tb, op, fields).ids(t)
		paged := walk(t, tb, op, fields+fmt.Sprintf(",'Limit':%d", rapid.IntRange(1, 5).Draw(t, "limit")))
		if diff := cmp.Diff(whole, slices.Concat(paged...)); diff != "" {
			t.Fatalf("%s %s (-whole +paged):\n%s", op, fields, diff)
		}
	})
}

func TestSegmentsDivideATable(t *testing.T) {
	var items, want []string
	for p := range 40 {
		items, want = append(items, item(fmt.Sprint("p", p, "-"), 1, "")), append(want, fmt.Sprint("p", p, "-1"))
	}
	tb := newTable(t, items...)
	slices.Sort(want)
	for _, total := range []int{1, 2, 7, 1000000} {
		var got []string
		for segment := range min(total, 7) {
			got = append(got, mustAsk(t, tb, "Scan", fmt.Sprintf("'TotalSegments':%d,'Segment':%d", total, segment)).ids(t)...)
		}
		slices.Sort(got)
		if total <= 7 && !slices.Equal(got, want) {
			t.Errorf("%d segments: %d items of %d: %v", total, len(got), len(want), got)
		}
		if total > 7 && len(got) > 2 {
			t.Errorf("%d segments: the first seven have %d items of 40", total, len(got))
		}
	}
}
