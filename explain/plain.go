package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// typedItem returns an item that is written as plain JSON, {"pk":"hats","price":12.5}, in DynamoDB's
// typed notation: texts as S, numbers as N, lists as L and objects as M. Sets and binaries have no
// plain form.
func typedItem(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var item map[string]any
	if err := d.Decode(&item); err != nil || item == nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	typed := map[string]any{}
	for name, value := range item {
		typed[name] = typedOf(value)
	}
	return json.Marshal(typed)
}

func typedOf(value any) map[string]any {
	switch v := value.(type) {
	case nil:
		return map[string]any{"NULL": true}
	case bool:
		return map[string]any{"BOOL": v}
	case json.Number:
		return map[string]any{"N": v.String()}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = typedOf(v[i])
		}
		return map[string]any{"L": list}
	case map[string]any:
		members := map[string]any{}
		for name, member := range v {
			members[name] = typedOf(member)
		}
		return map[string]any{"M": members}
	}
	return map[string]any{"S": value}
}
