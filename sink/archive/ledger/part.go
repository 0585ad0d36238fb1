package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// PartKey names a part: the events of a class in an hour.
type PartKey struct {
	Class transform.EventClass
	Hour  layout.Hour
}

// MarshalText writes ttl/2026-05-04T23.
func (k PartKey) MarshalText() ([]byte, error) {
	return []byte(string(k.Class) + "/" + k.Hour.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *PartKey) UnmarshalText(b []byte) (err error) {
	class, hour, _ := strings.Cut(string(b), "/")
	k.Class = transform.EventClass(class)
	k.Hour, err = layout.ParseHour(hour)
	return err
}

// Part are the events of a part that are in no object yet.
type Part struct {
	First    uint64       `json:"first"` // the first of them is in this entry or behind it
	Last     uint64       `json:"last"`  // of them; 0: not known, because an earlier build wrote the snapshot
	Events   int64        `json:"events"`
	Bytes    int64        `json:"bytes"` // of their blocks
	Coverage coverage.Set `json:"cover"`
}

// sortedParts returns the keys of a map in order.
func sortedParts[T any](m map[PartKey]T) []PartKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b PartKey) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Class, b.Class))
	})
}

// OpenParts returns the parts with events that are in no object, the oldest hour first.
func (s *State) OpenParts() []PartKey { return sortedParts(s.Parts) }

// EndOf returns the entry behind which a part has no events: without it, the object of an hour that
// is over would be looked for in everything that came later.
func (s *State) EndOf(key PartKey) uint64 {
	if p := s.Parts[key]; p.Last >= p.First {
		return p.Last
	}
	return s.Seq
}
