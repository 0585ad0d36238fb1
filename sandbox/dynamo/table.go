package dynamo

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// Definition is what is known of a table besides its items: what DescribeTable shows.
type Definition struct {
	Name               string
	ID                 string
	Created            time.Time
	Attributes         []AttributeDefinition
	Keys               []KeyElement
	OnDemand           bool
	Read, Write        int64 // provisioned capacity
	Local, Global      []Index
	Class              string `json:",omitempty"`
	Protected          bool   `json:",omitempty"` // against deletion
	Tags               []Tag  `json:",omitempty"`
	TTLAttribute       string `json:",omitempty"` // last one named, whether on or off
	TTLOn              bool   `json:",omitempty"`
	PointInTime        bool   `json:",omitempty"`
	StreamView         string `json:",omitempty"` // view type while a stream is on
	Status             string
	decreases          int64
	increased, reduced time.Time
}

// AttributeDefinition gives a key attribute its type.
type AttributeDefinition struct{ AttributeName, AttributeType string }

// KeyElement is one element of a key schema.
type KeyElement struct{ AttributeName, KeyType string }

// Tag is a tag on a table.
type Tag struct{ Key, Value string }

// Index is a secondary index.
type Index struct {
	Name        string
	Keys        []KeyElement
	Projection  string
	NonKey      []string
	Read, Write int64
}

// Table is one table.
type Table struct {
	name   string
	schema table.Schema

	mu    sync.RWMutex // guards what follows, and orders the table's changes
	def   Definition
	items *table.Items
	ready time.Time // when a transition of Status ends
	gone  bool      // deleted while somebody waited for mu
}

func newTable(def Definition) *Table {
	t := &Table{name: def.Name, def: def, items: table.NewItems()}
	t.schema = t.schemaOf(def.Keys)
	if def.TTLOn {
		t.items.SetTTL(def.TTLAttribute)
	}
	return t
}

// schemaOf gives a key schema the types of its attributes.
func (t *Table) schemaOf(keys []KeyElement) table.Schema {
	s := table.Schema{Hash: t.keyAttr(keys[0].AttributeName)}
	if len(keys) > 1 {
		k := t.keyAttr(keys[1].AttributeName)
		s.Range = &k
	}
	return s
}

func (t *Table) keyAttr(name string) table.KeyAttr {
	for _, a := range t.def.Attributes {
		if a.AttributeName == name {
			return table.KeyAttr{Name: name, Kind: attr.KindOf(a.AttributeType)}
		}
	}
	return table.KeyAttr{Name: name}
}

// index finds a secondary index by name.
func (t *Table) index(name string) (ix *Index, global bool) {
	for i := range t.def.Local {
		if t.def.Local[i].Name == name {
			return &t.def.Local[i], false
		}
	}
	for i := range t.def.Global {
		if t.def.Global[i].Name == name {
			return &t.def.Global[i], true
		}
	}
	return nil, false
}

// checkIndexKeys checks that an item's index key attributes have the declared types.
func (t *Table) checkIndexKeys(item attr.Map) *wire.Error {
	for _, all := range [2][]Index{t.def.Global, t.def.Local} {
		for i := range all {
			for _, k := range all[i].Keys {
				want := t.keyAttr(k.AttributeName).Kind
				v := item.Get(k.AttributeName)
				switch {
				case v == nil || t.schema.Has(k.AttributeName):
				case v.Kind != want:
					return wire.BadValue("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
						k.AttributeName, want, v.Kind, all[i].Name)
				case v.Str == "" && want != attr.N:
					kind := map[attr.Kind]string{attr.S: "string", attr.B: "binary"}[want]
					return wire.Invalid("One or more parameter values are not valid. A value specified for a secondary index key "+
						"is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s",
						kind, all[i].Name, k.AttributeName)
				}
			}
		}
	}
	return nil
}

// noNestedKeys refuses expressions that reach into a key attribute.
func (t *Table) noNestedKeys(nested map[string]bool) *wire.Error {
	for _, name := range t.schema.Names() {
		if nested[name] {
			return wire.Invalid("Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: %s", name)
		}
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

var errNoTable = &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found"}

// find returns a table for the item operations, which do not see one that is not yet,
// or no longer, there.
func (s *Server) find(name string) (*Table, *wire.Error) {
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, errNoTable
	}
	t.mu.RLock()
	status := t.status(s.o.Clock.Now())
	t.mu.RUnlock()
	if status == "CREATING" || status == "DELETING" {
		return nil, errNoTable
	}
	return t, nil
}

// findAny returns a table for the operations on tables.
func (s *Server) findAny(name string) (*Table, *wire.Error) {
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found: Table: " + name + " not found"}
	}
	t.mu.RLock()
	over := t.def.Status == "DELETING" && !s.o.Clock.Now().Before(t.ready)
	t.mu.RUnlock()
	if over {
		s.drop(t)
		return s.findAny(name)
	}
	return t, nil
}

// status is the table's status at a time.
func (t *Table) status(now time.Time) string {
	if t.def.Status != "ACTIVE" && t.def.Status != "DELETING" && !now.Before(t.ready) {
		return "ACTIVE"
	}
	return t.def.Status
}
