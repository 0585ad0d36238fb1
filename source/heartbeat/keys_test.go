package heartbeat

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

const mark = `,"tailrace_at":{"N":"1795257720123"}`

// TestHeartbeatsHaveTheKeyAndTheAttribute: either alone makes no heartbeat, so no item of a user is
// left out.
func TestHeartbeatsHaveTheKeyAndTheAttribute(t *testing.T) {
	strings, list := Keys{Prefix: "_tr#"}, Keys{List: []string{"-1.0", "2e1"}}
	binary := Keys{List: []string{"AAE="}}
	for _, c := range []struct {
		keys Keys
		kind byte
		pk   string // typed
		mark string
		want bool
	}{
		{strings, 'S', `{"S":"_tr#0"}`, mark, true},
		{strings, 'S', `{"S":"_tr#0"}`, "", false},                                     // the user's item under the prefix
		{strings, 'S', `{"S":"_tr#0"}`, `,"x":{"S":"\"tailrace_at\""}`, false},         // the name in a value
		{strings, 'S', `{"S":"_tr#0"}`, `,"m":{"M":{"tailrace_at":{"N":"1"}}}`, false}, // an inner attribute
		{strings, 'S', `{"S":"_tr"}`, mark, false},
		{strings, 'S', `{"S":"x_tr#0"}`, mark, false},
		{list, 'N', `{"N":"-1"}`, mark, true},
		{list, 'N', `{"N":"20.0"}`, mark, true},
		{list, 'N', `{"N":"2"}`, mark, false},
		{list, 'N', `{"N":"20"}`, "", false},
		{binary, 'B', `{"B":"AAE="}`, mark, true},
		{binary, 'B', `{"B":"AAI="}`, mark, false},
		{Keys{}, 'S', `{"S":"_tr#0"}`, mark, false},
		{strings, 'N', `{"N":"1"}`, mark, false}, // a prefix of numbers fits no table
	} {
		f := NewFilter(c.keys, change.KeyAttr{Name: "pk", Type: c.kind})
		item := fmt.Sprintf(`{"pk":%s,"sk":{"S":"heartbeat"}%s}`, c.pk, c.mark)
		if got := f.Item([]byte(item)); got != c.want {
			t.Errorf("%s: %v", item, got)
		}
		var d change.Decoder
		keys, err := d.Image([]byte(`{"pk":` + c.pk + `,"sk":{"S":"heartbeat"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, got := f.Record(&change.Record{New: []byte(item)}, keys); got != c.want {
			t.Errorf("record of %s: %v", item, got)
		}
	}
}

// TestRecordsOfTheUserUnderAHeartbeatsKeyCount: what a user writes over a heartbeat is the user's.
func TestRecordsOfTheUserUnderAHeartbeatsKeyCount(t *testing.T) {
	f := NewFilter(Keys{Prefix: "_"}, change.KeyAttr{Name: "pk", Type: 'S'})
	var d change.Decoder
	keys, err := d.Image([]byte(`{"pk":{"S":"_1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	ours, users := []byte(`{"pk":{"S":"_1"}`+mark+`}`), []byte(`{"pk":{"S":"_1"},"x":{"N":"1"}}`)
	for _, c := range []struct {
		name     string
		old, new []byte
		want     bool
	}{
		{"written", nil, ours, true}, {"written again", ours, ours, true}, {"deleted", ours, nil, true},
		{"overwritten by the user", ours, users, false}, {"the user's", nil, users, false},
		{"the user's, deleted", users, nil, false}, {"without images", nil, nil, false},
	} {
		if key, got := f.Record(&change.Record{Old: c.old, New: c.new}, keys); got != c.want || got && key != "_1" {
			t.Errorf("%s: %v, key %q", c.name, got, key)
		}
	}
}

func TestKeysFitTheTable(t *testing.T) {
	for _, c := range []struct {
		keys Keys
		kind byte
		want []string
		ok   bool
	}{
		{Keys{Prefix: "_"}, 'S', nil, true}, {Keys{Prefix: "_"}, 'N', nil, false}, {Keys{Prefix: "_"}, 'B', nil, false},
		{Keys{List: []string{"1"}}, 'S', nil, false},
		{Keys{List: []string{"1.50", "2"}}, 'N', []string{"1.5", "2"}, true},
		{Keys{List: []string{"1.0", "1"}}, 'N', nil, false}, {Keys{List: []string{"x"}}, 'N', nil, false},
		{Keys{List: []string{"AAE="}}, 'B', []string{"AAE="}, true}, {Keys{List: []string{"%"}}, 'B', nil, false},
		{Keys{List: []string{""}}, 'B', nil, false},
	} {
		fit, err := c.keys.Fit(change.KeyAttr{Name: "pk", Type: c.kind})
		if (err == nil) != c.ok {
			t.Errorf("%+v of %c: %v", c.keys, c.kind, err)
		} else if d := cmp.Diff(c.want, fit.List); c.ok && d != "" {
			t.Errorf("%+v: %s", c.keys, d)
		}
	}
}

// TestHeartbeatsAreNoItems: they are left out of pages, and blank in replies that keep the order of
// what was asked for.
func TestHeartbeatsAreNoItems(t *testing.T) {
	f := NewFilter(Keys{List: []string{"1"}}, change.KeyAttr{Name: "pk", Type: 'N'})
	ours, users := `{"pk":{"N":"1.0"}`+mark+`}`, `{"pk":{"N":"2"}}`
	items := func() [][]byte { return [][]byte{[]byte(users), []byte(ours), nil, []byte(users)} }
	if got := f.Remaining(items()); len(got) != 3 || string(got[2]) != users {
		t.Errorf("remaining: %q", got)
	}
	if got := (*Filter)(nil).Remaining(items()); len(got) != 4 {
		t.Errorf("without heartbeats: %q", got)
	}
	all := items()
	if f.Blank(all); len(all) != 4 || all[1] != nil || string(all[0]) != users || string(all[3]) != users {
		t.Errorf("blank: %q", all)
	}
	var d change.Decoder
	keys, err := d.Image([]byte(`{"pk":{"N":"1.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := f.Record(&change.Record{New: []byte(ours)}, keys); !ok || key != "1" {
		t.Errorf("the key of a number is canonical: %q, %v", key, ok)
	}
	for _, k := range []Keys{{}, {List: []string{"x"}}} {
		if NewFilter(k, change.KeyAttr{Name: "pk", Type: 'N'}) != nil {
			t.Errorf("%+v: a filter", k)
		}
	}
}

// TestHeartbeatNeverOverwritesAnItem: the write has a condition, and the one that asks for
// permission is never true.
func TestHeartbeatNeverOverwritesAnItem(t *testing.T) {
	schema := change.KeySchema{
		Partition: change.KeyAttr{Name: "p", Type: 'B'}, Sort: &change.KeyAttr{Name: "s", Type: 'N'},
	}
	want := map[string]types.AttributeValue{
		"p": &types.AttributeValueMemberB{Value: []byte{0, 1}}, "s": &types.AttributeValueMemberN{Value: "0"},
		Attr: &types.AttributeValueMemberN{Value: "77"},
	}
	for never, condition := range map[bool]string{false: "attribute_not_exists(#pk) OR attribute_exists(#at)",
		true: "attribute_exists(#pk) AND attribute_not_exists(#pk) AND attribute_exists(#at)"} {
		put, err := Put("T", schema, "AAE=", 77, never)
		if err != nil || *put.TableName != "T" || *put.ConditionExpression != condition ||
			!reflect.DeepEqual(put.Item, want) || put.ExpressionAttributeNames["#pk"] != "p" {
			t.Errorf("never %v: %+v, %v", never, put, err)
		}
	}
	alone := change.KeySchema{Partition: change.KeyAttr{Name: "p", Type: 'S'}}
	if put, err := Put("T", alone, "_1", 77, false); err != nil || len(put.Item) != 2 ||
		!reflect.DeepEqual(put.Item["p"], &types.AttributeValueMemberS{Value: "_1"}) {
		t.Errorf("without a sort key: %+v, %v", put, err)
	}
	if _, err := Put("T", schema, "%", 77, false); err == nil {
		t.Error("a key that is not base64")
	}
}
