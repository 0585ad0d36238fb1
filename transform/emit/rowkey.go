package emit

import (
	"encoding/json"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// KeyOfRow returns the canonical key of the one item that may have a row of class R; nil where the
// row is not of that class, or its key does not show the item's in clear. The key is cut out of the
// row, and counts only if the mapping may give the row to the item with it.
func KeyOfRow(p *ir.Program, row []byte) []byte {
	for _, r := range p.Rules {
		for _, pl := range r.Plans {
			values, ok := pl.Row.Values(string(row))
			if !pl.Exclusive || !ok {
				continue
			}
			key, ok := keyFrom(p, pl, values)
			if !ok {
				continue
			}
			var d change.Decoder
			img, err := d.Image(key)
			if err != nil {
				continue
			}
			if owned, err := OwnedBy(p, img, row); err == nil && slices.Contains(owned.Rules(), pl.Name) {
				return key
			}
		}
	}
	return nil
}

// longest is how many bytes DynamoDB takes of a partition key and of a sort key. It takes no empty
// ones, and refuses to read an item with a key outside of these bounds.
var longest = [2]int{2048, 1024}

// keyFrom returns the canonical key with the values of a row's references.
func keyFrom(p *ir.Program, pl *ir.Plan, values map[string]string) ([]byte, bool) {
	attrs := []change.KeyAttr{p.Table.Schema.Partition}
	if s := p.Table.Schema.Sort; s != nil {
		attrs = append(attrs, *s)
	}
	typed := map[string]map[string]any{}
	for i, a := range attrs {
		text, ok := keyText(pl, a.Name, values)
		if !ok || text == "" || len(text) > longest[i] {
			return nil, false
		}
		typed[a.Name] = map[string]any{string(a.Type): text}
		if a.Type == 'B' {
			typed[a.Name]["B"] = []byte(text) // JSON writes it in base64
		}
	}
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, false
	}
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		return nil, false
	}
	key, err := p.Table.Schema.Canonical(nil, img)
	return key, err == nil
}

// keyText returns the text of a key attribute: the row has it as it is, or has the captures of
// which a condition makes it.
func keyText(pl *ir.Plan, attr string, values map[string]string) (string, bool) {
	if text, ok := values[attr]; ok && !pl.Row.Captured(attr) {
		return text, true
	}
	capture := func(slot int) (string, bool) {
		if slot >= len(pl.Captures) {
			return "", false
		}
		text, ok := values[pl.Captures[slot].Name]
		return text, ok
	}
	for _, conditions := range [][]ir.Condition{pl.Rule.Conditions, pl.Conditions} {
		for i := range conditions {
			c := &conditions[i]
			switch {
			case c.Attr != attr:
			case c.Equals != nil:
				return *c.Equals, true
			case c.Pattern != nil:
				if text, ok := c.Pattern.Text(capture); ok {
					return text, true
				}
			}
		}
	}
	return "", false
}
