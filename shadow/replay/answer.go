package replay

import (
	"encoding/json"
	"errors"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
)

// answered is what DynamoDB has answered to one read.
type answered struct {
	items [][]byte
	part  bool // the read may have more items
	left  bool // the service left the key to a later request
}

var errItems = errors.New("the answer has not the items that were asked for")

// answersOf returns the answers to the reads of a request, in their order.
func (r *Replayer) answersOf(request *pattern.Request, text []byte) ([]answered, error) {
	switch request.Asked[0].Pattern.Operation {
	case "Query":
		var a struct {
			Items            []json.RawMessage
			LastEvaluatedKey map[string]json.RawMessage
		}
		err := json.Unmarshal(text, &a)
		out := answered{part: len(a.LastEvaluatedKey) > 0 || request.Asked[0].Pattern.Paginated}
		for _, item := range a.Items {
			out.items = append(out.items, item)
		}
		return []answered{out}, err
	case "GetItem":
		var a struct{ Item json.RawMessage }
		err := json.Unmarshal(text, &a)
		return []answered{one(a.Item)}, err
	case "TransactGetItems":
		var a struct {
			Responses []struct{ Item json.RawMessage }
		}
		err := json.Unmarshal(text, &a)
		if err == nil && len(a.Responses) != len(request.Asked) {
			err = errItems
		}
		if err != nil {
			return nil, err
		}
		out := make([]answered, len(request.Asked))
		for i := range out {
			out[i] = one(a.Responses[i].Item)
		}
		return out, nil
	}
	return r.batchOf(request, text)
}

func one(item []byte) (a answered) {
	if len(item) > 0 && string(item) != "{}" {
		a.items = [][]byte{item}
	}
	return a
}

// batchOf returns the answers to the reads of a BatchGetItem: its items are in any order, under the
// names by which the request calls their tables. What it leaves to a later request is no missing item.
func (r *Replayer) batchOf(request *pattern.Request, text []byte) ([]answered, error) {
	var a struct {
		Responses       map[string][]json.RawMessage
		UnprocessedKeys map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	items := map[string]map[string][]byte{} // by the name of the table, and the key
	out := make([]answered, len(request.Asked))
	for i := range request.Asked {
		x := &request.Asked[i]
		t := r.tables[x.Pattern.Table]
		if t == nil || x.Pattern.Projection {
			continue // it is skipped
		}
		if items[x.Named] == nil {
			items[x.Named] = map[string][]byte{}
			for _, item := range a.Responses[x.Named] {
				key, err := change.NewKeyReader(t.Schema).Of(nil, item)
				if err != nil {
					return nil, err
				}
				items[x.Named][string(key)] = item
			}
		}
		var keys change.Image
		for _, test := range x.Tests {
			keys = append(keys, change.Attr{Name: test.Attr, Value: test.Values[0]})
		}
		key, err := t.Schema.Canonical(nil, keys)
		if err != nil {
			return nil, err
		}
		out[i] = one(items[x.Named][string(key)])
		_, some := a.UnprocessedKeys[x.Named]
		out[i].left = some && len(out[i].items) == 0
	}
	return out, nil
}
