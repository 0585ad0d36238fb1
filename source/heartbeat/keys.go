package heartbeat

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// Attr is the attribute that only heartbeats have: when the item was written, in milliseconds. Each
// write changes it, so that there is a record of each.
const Attr = "tailrace_at"

// Keys are the partition keys of a table's heartbeats: all that begin with a prefix or, if the
// partition key is a number or binary, the keys in a list. The zero Keys are none.
type Keys struct {
	Prefix string
	List   []string // numbers, or base64
}

// None reports whether the table has no heartbeats.
func (k Keys) None() bool { return k.Prefix == "" && len(k.List) == 0 }

// Fit returns why the keys cannot be partition keys of a table, and its list in canonical notation;
// the prefix is for strings, the list for the other types.
func (k Keys) Fit(partition change.KeyAttr) (Keys, error) {
	if (partition.Type == 'S') != (k.Prefix != "") {
		if partition.Type == 'S' {
			return k, fmt.Errorf("the partition key %s is a string: heartbeats need a prefix", partition.Name)
		}
		return k, fmt.Errorf("the partition key %s is of type %c: heartbeats need a list of keys, not a prefix",
			partition.Name, partition.Type)
	}
	fit := Keys{Prefix: k.Prefix}
	for _, text := range k.List {
		one, err := canonical(text, partition.Type)
		if err != nil {
			return k, err
		}
		if slices.Contains(fit.List, one) {
			return k, fmt.Errorf("key %q of the heartbeats is there twice", text)
		}
		fit.List = append(fit.List, one)
	}
	return fit, nil
}

// canonical returns the notation of a key in which records are compared with it.
func canonical(text string, kind byte) (string, error) {
	if kind == 'N' {
		n, err := change.CanonicalNumber(text)
		if err != nil {
			return "", fmt.Errorf("key %q of the heartbeats is not a number", text)
		}
		return n, nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 {
		return "", fmt.Errorf("key %q of the heartbeats is not base64", text)
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

// Nth returns candidate i, from 0; false if there are no more.
func (k Keys) Nth(i int) (key string, ok bool) {
	if k.Prefix != "" {
		return k.Prefix + strconv.Itoa(i), true
	}
	if i >= len(k.List) {
		return "", false
	}
	return k.List[i], true
}

// has reports whether a partition key is one of the keys.
func (k Keys) has(v *change.Value) bool {
	switch {
	case v == nil:
		return false
	case v.Kind == change.KindString:
		return k.Prefix != "" && strings.HasPrefix(v.S, k.Prefix)
	case v.Kind == change.KindNumber:
		n, err := change.CanonicalNumber(v.S)
		return err == nil && slices.Contains(k.List, n)
	}
	return v.Kind == change.KindBinary && slices.Contains(k.List, v.S)
}

// Filter separates the heartbeats of one table from its other items. A nil Filter matches none.
type Filter struct {
	keys      Keys
	partition string
}

// NewFilter returns the Filter of a table; nil for keys that are none, or that are no keys of the
// table.
func NewFilter(k Keys, partition change.KeyAttr) *Filter {
	fit, err := k.Fit(partition)
	if k.None() || err != nil {
		return nil
	}
	return &Filter{fit, partition.Name}
}

// Item reports whether an item in typed JSON is a heartbeat.
func (f *Filter) Item(item []byte) bool {
	if f == nil || !marked(item) {
		return false
	}
	return f.keys.has(attribute(item, f.partition))
}

// Record returns the partition key of a record that is one of a heartbeat. keys are the record's,
// decoded. A record that replaces a heartbeat by another item is not: that item is the user's.
func (f *Filter) Record(r *change.Record, keys change.Image) (key string, ok bool) {
	if f == nil {
		return "", false
	}
	v := keys.Get(f.partition)
	image := r.New
	if image == nil {
		image = r.Old
	}
	if !f.keys.has(v) || !marked(image) {
		return "", false
	}
	if v.Kind == change.KindNumber {
		n, _ := change.CanonicalNumber(v.S) // has has read it
		return n, true
	}
	return v.S, true
}

// Remaining returns the items that are no heartbeats, in the same array.
func (f *Filter) Remaining(items [][]byte) [][]byte {
	if f == nil {
		return items
	}
	return slices.DeleteFunc(items, f.Item)
}

// Blank sets the items that are heartbeats to nil: there are no such items.
func (f *Filter) Blank(items [][]byte) {
	for i, item := range items {
		if f.Item(item) {
			items[i] = nil
		}
	}
}

// marked reports whether an item has the attribute of heartbeats. The search for its name spares
// almost every item the decoder: a service that escapes plain letters in names does not exist.
func marked(item []byte) bool {
	return bytes.Contains(item, []byte(`"`+Attr+`"`)) && attribute(item, Attr) != nil
}

// attribute returns one attribute of an item, nil without it.
func attribute(item []byte, name string) *change.Value {
	var d change.Decoder
	image, err := d.PartialImage(item, func(n string) bool { return n == name })
	if err != nil {
		return nil
	}
	return image.Get(name)
}
