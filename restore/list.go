package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Hour is a class in an hour, as `archive list` prints it.
type Hour struct {
	Schema     int                  `json:"schema"`
	Table      string               `json:"table"`
	Hour       layout.Hour          `json:"hour"`
	Class      transform.EventClass `json:"class"`
	State      string               `json:"state"` // closed, incomplete, open
	Objects    int64                `json:"objects"`
	Events     int64                `json:"events"`
	Bytes      int64                `json:"bytes"`
	Incomplete []string             `json:"incomplete,omitempty"` // ids of gaps and recoveries
}

// Object is an object, as `archive list --objects` prints it.
type Object struct {
	Schema int                  `json:"schema"`
	Table  string               `json:"table"`
	Hour   layout.Hour          `json:"hour"`
	Class  transform.EventClass `json:"class"`
	Object string               `json:"object"`
	Named  bool                 `json:"named"` // by a manifest
	Events int64                `json:"events"`
	Bytes  int64                `json:"bytes"`
}

// The states of an hour.
const (
	stateClosed     = "closed"
	stateIncomplete = "incomplete"
	stateOpen       = "open"
)

// Listing is what an archive has of a table.
type Listing struct {
	Hours   []Hour // rising
	Objects []Object
	// Fault is why the chain of manifests ends too early; "" if it does not.
	Fault string
}

// lister is one call of List.
type lister struct {
	table  string
	in     Range
	hours  map[layout.Part]*Hour
	closed map[layout.Hour]bool
	named  map[string]bool
	all    []Object
}

// List returns what manifests name, and what they do not name yet.
func List(ctx context.Context, b bucket.Bucket, table string, in Range) (*Listing, error) {
	l := &lister{
		table: table, in: in, hours: map[layout.Part]*Hour{}, closed: map[layout.Hour]bool{}, named: map[string]bool{},
	}
	out := &Listing{}
	for m, err := range manifest.Chain(ctx, b, table, manifest.Head{}) {
		var broken *manifest.ChainError
		if errors.As(err, &broken) {
			out.Fault = broken.Error()
			break
		}
		if err != nil {
			return nil, Failed(err)
		}
		for i := range m.Hours {
			l.add(&m.Hours[i])
		}
	}
	if err := l.unnamed(ctx, b); err != nil {
		return nil, Failed(err)
	}
	for _, part := range slices.SortedFunc(maps.Keys(l.hours), func(a, b layout.Part) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Class, b.Class))
	}) {
		out.Hours = append(out.Hours, *l.hours[part])
	}
	out.Objects = l.all
	slices.SortStableFunc(out.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Object, b.Object))
	})
	return out, nil
}

// add takes an hour of a manifest.
func (l *lister) add(h *manifest.Hour) {
	l.closed[h.Hour] = true
	for i := range h.Objects {
		l.named[h.Objects[i].Name] = true
	}
	if !l.in.hour(h.Hour) {
		return
	}
	row := l.row(layout.Part{Table: l.table, Class: h.Class, Hour: h.Hour})
	row.State, row.Incomplete = stateClosed, h.Incomplete
	if len(h.Incomplete) > 0 {
		row.State = stateIncomplete
	}
	for i := range h.Objects {
		o := &h.Objects[i]
		l.object(row, o.Name, o.Events, o.Bytes, true)
	}
}

func (l *lister) row(part layout.Part) *Hour {
	if l.hours[part] == nil {
		l.hours[part] = &Hour{Schema: schema, Table: l.table, Hour: part.Hour, Class: part.Class, State: stateOpen}
	}
	return l.hours[part]
}

// schema is the format number of every JSON object.
const schema = 1

func (l *lister) object(row *Hour, name string, events, bytes int64, named bool) {
	row.Objects, row.Events, row.Bytes = row.Objects+1, row.Events+events, row.Bytes+bytes
	l.all = append(l.all, Object{Schema: schema, Table: l.table, Hour: row.Hour, Class: row.Class, Object: name,
		Named: named, Events: events, Bytes: bytes})
}

// unnamed takes the objects that no manifest names: objects of open hours, and late ones.
func (l *lister) unnamed(ctx context.Context, b bucket.Bucket) error {
	for info, err := range b.List(ctx, layout.Table(l.table)) {
		if err != nil {
			return fmt.Errorf("list objects of %s: %w", l.table, err)
		}
		part, ok := layout.ParseObject(info.Name)
		if !ok || l.named[info.Name] || !l.in.hour(part.Hour) {
			continue
		}
		row := l.row(part)
		if row.State == stateOpen && l.closed[part.Hour] {
			row.State = stateClosed
		}
		l.object(row, info.Name, eventsOf(ctx, b, info.Name), info.Size, false)
	}
	return nil
}

// eventsOf returns how many events an object holds, by its footer; 0 where it cannot be read, which
// verify reports.
func eventsOf(ctx context.Context, b bucket.Bucket, name string) int64 {
	r, err := b.Open(ctx, name)
	if err != nil {
		return 0
	}
	defer r.Close()
	foot, err := object.ReadFooter(r, r.Size())
	if err != nil {
		return 0
	}
	return foot.Events
}
