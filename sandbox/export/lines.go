package export

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Full returns the lines of a full export: the items of a table that the filter takes, in so many
// parts of its key space.
func Full(items *table.Items, f *Filter, parts int64) []iter.Seq[Line] {
	var files []iter.Seq[Line]
	for i := range parts {
		first, end := table.Segment(i, parts)
		files = append(files, func(yield func(Line) bool) {
			var json []byte
			items.Ascend(first, func(r *table.Record) bool {
				if end != "" && r.Key >= end {
					return false
				}
				r, taken := f.record(r)
				if !taken {
					return true
				}
				json = append(append(append(json[:0], `{"Item":`...), r.JSON...), '}')
				return yield(Line{json, r.Size})
			})
		})
	}
	return files
}

// Incremental returns the lines of an incremental export: each item that the changes concern, with
// its last change, in so many parts of the key space. old adds the item as it was before the first
// change. An item that neither was there before nor is afterwards has no line, nor has one that the
// filter does not take.
func Incremental(
	schema *table.Schema, changes []table.Change, f *Filter, old bool, parts int64,
) []iter.Seq[Line] {
	net := map[table.Key]table.Change{}
	for _, c := range changes {
		if before, ok := net[c.Key]; ok {
			c.Old = before.Old
		}
		net[c.Key] = c
	}
	keys := slices.Sorted(maps.Keys(net))
	var files []iter.Seq[Line]
	for i := range parts {
		first, end := table.Segment(i, parts)
		files = append(files, func(yield func(Line) bool) {
			at, _ := slices.BinarySearch(keys, first)
			for ; at < len(keys) && (end == "" || keys[at] < end); at++ {
				c := net[keys[at]]
				if c.Old == nil && c.New == nil {
					continue
				}
				shown, taken := f.change(c)
				if taken && !yield(lineOf(schema, &c, &shown, old)) {
					return
				}
			}
		})
	}
	return files
}

// lineOf returns the line of an item with its net change c; the images come from shown.
func lineOf(schema *table.Schema, c, shown *table.Change, old bool) Line {
	rec := c.New
	if rec == nil {
		rec = c.Old
	}
	l := Line{JSON: append([]byte(nil), `{"Metadata":{"WriteTimestampMicros":{"N":"`...)}
	l.JSON = strconv.AppendInt(l.JSON, c.At.UnixMicro(), 10)
	l.JSON = append(l.JSON, `"}},"Keys":`...)
	l.JSON = schema.KeyMap(rec.Item()).AppendJSON(l.JSON)
	if old && shown.Old != nil {
		l.JSON = append(append(l.JSON, `,"OldImage":`...), shown.Old.JSON...)
		l.Size += shown.Old.Size
	}
	if shown.New != nil {
		l.JSON = append(append(l.JSON, `,"NewImage":`...), shown.New.JSON...)
		l.Size += shown.New.Size
	}
	l.JSON = append(l.JSON, '}')
	return l
}
