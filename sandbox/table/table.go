package table

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// Definition is a table without its items: what DescribeTable shows.
type Definition struct {
	Name               string
	ID                 string
	Created            time.Time
	Attributes         []AttributeDefinition
	Keys               []KeyElement
	OnDemand           bool
	OnDemandSince      time.Time `json:",omitzero"` // the last change to on demand; zero: none
	Read, Write        int64     // provisioned capacity
	Local, Global      []Index
	Class              string `json:",omitempty"`
	Protected          bool   `json:",omitempty"` // against deletion
	Tags               []Tag  `json:",omitempty"`
	TTLAttribute       string `json:",omitempty"` // of the last UpdateTimeToLive, also while it is disabled
	TTLOn              bool   `json:",omitempty"`
	PointInTime        bool   `json:",omitempty"`
	RecoveryDays       int64  `json:",omitempty"` // how far back point-in-time recovery reaches; 0: 35 days
	StreamView         string `json:",omitempty"` // view type while a stream is enabled
	Status             string
	decreases          int64     // decreases of the capacity
	increased, reduced time.Time // last changes of the capacity
}

// AttributeDefinition gives a key attribute its type.
type AttributeDefinition struct{ AttributeName, AttributeType string }

// KeyElement is one element of a key schema.
type KeyElement struct{ AttributeName, KeyType string }

// Index is a secondary index.
type Index struct {
	Name        string
	Keys        []KeyElement
	Projection  string
	NonKey      []string
	Read, Write int64

	status   string // empty: ACTIVE
	building bool   // shown as the service shows an index that UpdateTable makes
}

// Table is one table. Callers of its methods hold its lock.
type Table struct {
	Name   string
	Schema Schema

	sync.RWMutex // guards what follows, and orders the table's changes
	Def          Definition
	Items        *Items
	Ready        time.Time // when a transition of the status ends
	Gone         bool      // deleted: a caller that waited for the lock must give up
	Counted      *Counts   // what descriptions show as the table's size; nil: the exact size
	past         *past     // nil: changes are not remembered
}

// Counts is the size of a table as a description shows it.
type Counts struct{ Items, Bytes int64 }

// counts returns the size of the table as a description shows it.
func (t *Table) counts() Counts {
	if t.Counted != nil {
		return *t.Counted
	}
	return Counts{int64(t.Items.Len()), t.Items.Bytes()}
}

// NewTable returns an empty table.
func NewTable(def Definition) *Table {
	t := &Table{Name: def.Name, Def: def, Items: NewItems()}
	t.Schema = t.SchemaOf(def.Keys)
	if def.TTLOn {
		t.Items.SetTTL(def.TTLAttribute)
	}
	return t
}

// SchemaOf returns a key schema with the types of its attributes.
func (t *Table) SchemaOf(keys []KeyElement) (s Schema) {
	for _, k := range keys {
		if k.KeyType == "HASH" {
			s.Hash = append(s.Hash, t.keyAttr(k.AttributeName))
		} else {
			s.Range = append(s.Range, t.keyAttr(k.AttributeName))
		}
	}
	return s
}

// keyAttr returns a key attribute with its defined type.
func (t *Table) keyAttr(name string) KeyAttr {
	for _, a := range t.Def.Attributes {
		if a.AttributeName == name {
			return KeyAttr{Name: name, Kind: attr.KindOf(a.AttributeType)}
		}
	}
	return KeyAttr{Name: name}
}

// Index returns a secondary index by its name, nil if there is none.
func (t *Table) Index(name string) (ix *Index, global bool) {
	for i := range t.Def.Local {
		if t.Def.Local[i].Name == name {
			return &t.Def.Local[i], false
		}
	}
	for i := range t.Def.Global {
		if t.Def.Global[i].Name == name {
			return &t.Def.Global[i], true
		}
	}
	return nil, false
}

// emptyName returns the type as messages about empty values name it.
func emptyName(k attr.Kind) string {
	if k == attr.B {
		return "binary"
	}
	return "string"
}

// CheckIndexKeys checks the index key attributes of an item: their types, and that they are neither
// empty nor too large. before is the item that an update changed, nil for a put; the service checks
// only what an update changed, and with another message. Of several faults it names the index that
// is first by name.
func (t *Table) CheckIndexKeys(item, before attr.Map, updated bool) *wire.Error {
	var first *wire.Error
	name := ""
	for _, all := range [2][]Index{t.Def.Global, t.Def.Local} {
		for i := range all {
			if first != nil && all[i].Name > name {
				continue
			}
			if err := t.checkIndexKeys(&all[i], item, before, updated); err != nil {
				first, name = err, all[i].Name
			}
		}
	}
	return first
}

// checkIndexKeys is CheckIndexKeys for one index. The table's own key, of which a new item may have
// more in an index than fits there, changes with nothing else.
func (t *Table) checkIndexKeys(ix *Index, item, before attr.Map, updated bool) *wire.Error {
	changed := before == nil
	schema := t.SchemaOf(ix.Keys)
	for _, k := range schema.All() {
		v := item.Get(k.Name)
		if v == nil || t.Schema.Has(k.Name) {
			continue
		}
		if old := before.Get(k.Name); old != nil && old.Equal(v) {
			continue
		}
		if err := checkIndexKey(ix.Name, k, v, updated); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return schema.checkSizes(item)
}

// checkIndexKey checks the type of one index key attribute, and that it is not empty.
func checkIndexKey(index string, k KeyAttr, v *attr.Value, updated bool) *wire.Error {
	empty := wire.Invalid("One or more parameter values are not valid. A value specified for a secondary index key "+
		"is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, "+
		"IndexKey: %s", emptyName(k.Kind), index, k.Name)
	switch {
	case v.Kind != k.Kind:
		return wire.BadValue("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", k.Name, k.Kind,
			v.Kind, index)
	case v.Str != "" || k.Kind == attr.N:
		return nil
	case updated:
		empty = wire.Invalid("One or more parameter values are not valid. The update expression attempted to update a "+
			"secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot "+
			"contain an empty %s value.", emptyName(k.Kind))
	}
	empty.Whole = true
	return empty
}

// NoNestedKeys refuses an expression with a path into a key attribute.
func (t *Table) NoNestedKeys(nested map[string]bool) *wire.Error {
	for _, name := range t.Schema.Names() {
		if nested[name] {
			return wire.Invalid("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "+
				"Key: %s", name)
		}
	}
	return nil
}

// Status returns the table's status at a time.
func (t *Table) Status(now time.Time) string {
	if t.Def.Status != "ACTIVE" && t.Def.Status != "DELETING" && !now.Before(t.Ready) {
		return "ACTIVE"
	}
	return t.Def.Status
}
