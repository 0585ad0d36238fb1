package restore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Query selects events of a table.
type Query struct {
	Table string
	Time  Range                // of the deletion
	Class transform.EventClass // "": all
	Key   *Key                 // nil: all items

	Progress func(done, all int64) // bytes; may be nil
}

// found is an object that may hold what is asked for.
type found struct {
	bucket.Info
	part layout.Part
}

// Run yields the events as CloudEvents in JSON. The events of one item come in the order of their
// deletion, the newest last; the events of all items come hour by hour. It reads only the objects
// of the selected hours and class.
func (q *Query) Run(ctx context.Context, b bucket.Bucket, yield func(line []byte) error) error {
	hours, bytes, err := q.hours(ctx, b)
	if err != nil {
		return err
	}
	var done int64
	for _, objects := range hours {
		if err := q.hour(ctx, b, objects, yield, func(size int64) {
			if done += size; q.Progress != nil {
				q.Progress(done, bytes)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// hours returns the objects of each hour that is asked for, rising, and how many bytes they have.
func (q *Query) hours(ctx context.Context, b bucket.Bucket) (hours [][]found, bytes int64, err error) {
	byHour := map[layout.Hour][]found{}
	for f, err := range q.objects(ctx, b) {
		if err != nil {
			return nil, 0, Failed(err)
		}
		byHour[f.part.Hour] = append(byHour[f.part.Hour], f)
		bytes += f.Size
	}
	for _, h := range slices.Sorted(maps.Keys(byHour)) {
		hours = append(hours, byHour[h])
	}
	return hours, bytes, nil
}

// objects yields the objects of the partitions that are asked for.
func (q *Query) objects(ctx context.Context, b bucket.Bucket) func(yield func(found, error) bool) {
	return func(yield func(found, error) bool) {
		for _, prefix := range q.prefixes() {
			for info, err := range b.List(ctx, prefix) {
				if err != nil {
					yield(found{}, fmt.Errorf("list objects: %w", err))
					return
				}
				part, ok := layout.ParseObject(info.Name)
				if !ok || q.Class != "" && part.Class != q.Class || !q.Time.hour(part.Hour) {
					continue
				}
				if !yield(found{info, part}, nil) {
					return
				}
			}
		}
	}
}

// Classes are the classes of events in archives.
var Classes = []transform.EventClass{
	transform.ClassTTL, transform.ClassUser, transform.ClassInferred, transform.ClassHealed,
}

// maxDays is how many days are listed one by one; beyond, one listing of the table is cheaper.
const maxDays = 100

// prefixes returns what to list: days, where both bounds are known and near enough, else the table.
func (q *Query) prefixes() (all []string) {
	from, to := q.Time.Hours()
	const day = layout.Hour(24)
	if from == 0 || to == 0 || (to-from)/day > maxDays {
		return []string{layout.Table(q.Table)}
	}
	for _, class := range Classes {
		for d := from - from%day; d < to && (q.Class == "" || q.Class == class); d += day {
			all = append(all, layout.Day(q.Table, class, d))
		}
	}
	return all
}

// match is an event of one item.
type match struct {
	event *transform.Event
	line  []byte
}

// hour prints the events of the objects of one hour. The events of an item are few and are sorted;
// all events of an hour may be more than fit into memory, and come in the order of the objects.
func (q *Query) hour(
	ctx context.Context, b bucket.Bucket, objects []found, yield func([]byte) error, read func(size int64),
) error {
	var matches []match
	for _, f := range objects {
		err := q.object(ctx, b, f, func(e *transform.Event) error {
			line, err := object.AppendEvent(nil, e)
			if err == nil && q.Key == nil {
				return yield(line)
			}
			matches = append(matches, match{e, line})
			return err
		})
		if err != nil {
			return err
		}
		read(f.Size)
	}
	slices.SortStableFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.event.Created, b.event.Created), cmp.Compare(a.event.Version, b.event.Version))
	})
	for _, m := range matches {
		if err := yield(m.line); err != nil {
			return err
		}
	}
	return nil
}

// object calls yield for each event of an object that is asked for.
func (q *Query) object(ctx context.Context, b bucket.Bucket, f found, yield func(*transform.Event) error) error {
	r, err := b.Open(ctx, f.Name)
	if err != nil {
		return Failed(fmt.Errorf("open %s: %w", f.Name, err))
	}
	defer r.Close()
	for e, err := range object.Read(r, r.Size()) {
		if err != nil {
			return Failed(fmt.Errorf("read %s: %w", f.Name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !q.Time.contains(e.Time()) {
			continue
		}
		if q.Key != nil {
			if ok, err := q.Key.matches(e.Subject); err != nil || !ok {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}
