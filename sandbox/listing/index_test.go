package listing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// indexedItems have g and l in an order that is not that of the table. a2 lacks both, so no index
// has it.
var indexedItems = []string{
	item("a", 1, "'g':{'S':'y'},'l':{'S':'3'},'x':{'S':'one'},'z':{'S':'z'},"),
	item("a", 2, "'x':{'S':'two'},"),
	item("a", 3, "'g':{'S':'y'},'l':{'S':'1'},'x':{'S':'three'},"),
	item("b", 2, "'g':{'S':'y'},'l':{'S':'2'},"),
	item("b", 1, "'g':{'S':'x'},"),
}

const ofY = "'IndexName':'byG','KeyConditionExpression':'g = :g','ExpressionAttributeValues':{':g':{'S':'y'}}"

func TestIndexHasTheItemsWithItsKeyInItsOrder(t *testing.T) {
	tb := newTable(t, indexedItems...)
	for fields, want := range map[string][]string{
		ofY:                               {"a1", "b2", "a3"},
		ofY + ",'ScanIndexForward':false": {"a3", "b2", "a1"},
		"'IndexName':'byL'," + ofA:        {"a3", "a1"},
		"'IndexName':'byL'," + sortCondition("l > :l", "':l':{'S':'1'}"): {"a1"},
	} {
		if diff := cmp.Diff(want, mustAsk(t, tb, "Query", fields).ids(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fields, diff)
		}
	}
	if p := mustAsk(t, tb, "Scan", "'IndexName':'byG'"); p.Count != 4 || p.ScannedCount != 4 {
		t.Errorf("scan of the index: %d of %d items, want 4", p.Count, p.ScannedCount)
	}
}

func TestIndexProjectsItsAttributes(t *testing.T) {
	tb := newTable(t, indexedItems...)
	const oldest, newest = "'Limit':1", "'Limit':1,'ScanIndexForward':false"
	for name, c := range map[string]struct{ fields, want string }{
		"keys only": {ofY + "," + oldest, "{'c':{'N':'1'},'g':{'S':'y'},'p':{'S':'a'}}"},
		"include": {"'IndexName':'byL'," + ofA + "," + newest,
			"{'c':{'N':'1'},'l':{'S':'3'},'p':{'S':'a'},'x':{'S':'one'}}"},
		// A local index reads what it lacks from the table.
		"all of a local index": {"'IndexName':'byL','Select':'ALL_ATTRIBUTES'," + ofA + "," + newest,
			"{'c':{'N':'1'},'g':{'S':'y'},'l':{'S':'3'},'p':{'S':'a'},'x':{'S':'one'},'z':{'S':'z'}}"},
		"part of a local index": {"'IndexName':'byL','ProjectionExpression':'z,c'," + ofA + "," + newest,
			"{'c':{'N':'1'},'z':{'S':'z'}}"},
		"part of a global index": {ofY + ",'ProjectionExpression':'p'," + oldest, "{'p':{'S':'a'}}"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustAsk(t, tb, "Query", c.fields)
			if got := strings.ReplaceAll(string(p.Items[0]), `"`, "'"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestScanOfAnIndexFiltersWhatTheIndexHas: source: nubo-db/dynoxide, src/partiql/executor.rs: a
// scan matches nothing by an attribute that its index lacks.
func TestScanOfAnIndexFiltersWhatTheIndexHas(t *testing.T) {
	tb := newTable(t, indexedItems...)
	for filter, want := range map[string]int64{"attribute_exists(x)": 0, "attribute_not_exists(x)": 4,
		"attribute_exists(g)": 4} {
		p := mustAsk(t, tb, "Scan", "'IndexName':'byG','FilterExpression':'"+filter+"'")
		if int64(p.Count) != want || p.ScannedCount != 4 {
			t.Errorf("%s: %d of %d items, want %d of 4", filter, p.Count, p.ScannedCount, want)
		}
	}
}

// TestSegmentsOfAnIndexHaveEachItemOnce: source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html: segments "of a
// table or an index".
func TestSegmentsOfAnIndexHaveEachItemOnce(t *testing.T) {
	// the partitions d and f are in the second and the third segment
	items := append(slices.Clone(indexedItems), item("d", 1, "'g':{'S':'y'},"), item("f", 1, "'g':{'S':'y'},"))
	tb := newTable(t, items...)
	seen := map[string]int{}
	for segment := range 3 {
		fields := fmt.Sprintf("'IndexName':'byG','TotalSegments':3,'Segment':%d", segment)
		for _, id := range mustAsk(t, tb, "Scan", fields).ids(t) {
			seen[id]++
		}
	}
	if diff := cmp.Diff(map[string]int{"a1": 1, "a3": 1, "b1": 1, "b2": 1, "d1": 1, "f1": 1}, seen); diff != "" {
		t.Errorf("items of all segments (-want +got):\n%s", diff)
	}
}

// TestIndexIsAsLargeAsItsAttributes: source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html, "Read capacity units":
// what counts are the sizes of the index entries, not of the items in the table.
func TestIndexIsAsLargeAsItsAttributes(t *testing.T) {
	var items []string
	for i := range 8 {
		items = append(items, item("a", i, "'g':{'S':'y'},'x':{'S':'"+strings.Repeat("x", 300_000)+"'},"))
	}
	tb := newTable(t, items...)
	for _, op := range []string{"Query", "Scan"} {
		fields := ofY
		if op == "Scan" {
			fields = "'IndexName':'byG'"
		}
		p := mustAsk(t, tb, op, fields+",'ReturnConsumedCapacity':'TOTAL'")
		if p.Count != 8 || p.LastEvaluatedKey != nil {
			t.Errorf("%s: %d items on a page, want all 8", op, p.Count)
		}
	}
}

// TestIndexPageIsContinuedByBothKeys: several items may have one index key, so the table's key goes
// along.
func TestIndexPageIsContinuedByBothKeys(t *testing.T) {
	tb := newTable(t, indexedItems...)
	p := mustAsk(t, tb, "Query", ofY+",'Limit':1")
	want := `{"p":{"S":"a"},"c":{"N":"1"},"g":{"S":"y"}}`
	if got := string(p.LastEvaluatedKey); got != want {
		t.Errorf("last evaluated key %s, want %s", got, want)
	}
	if diff := cmp.Diff([][]string{{"a1"}, {"b2"}, {"a3"}, nil}, walk(t, tb, "Query", ofY+",'Limit':1")); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
