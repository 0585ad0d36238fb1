// Package listing answers Query and Scan: it walks a table or an index, filters,
// projects and cuts into pages.
package listing

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/expr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// Find finds a table by its name.
type Find func(name string) (*table.Table, *wire.Error)

// maxPage is how many bytes of items a page has at most.
const maxPage = 1 << 20

// listing is what Query and Scan have in common: a page of records, filtered and
// projected, with its counts and the key where the next page begins.
type listing struct {
	r          *wire.Node
	table      *table.Table
	index      *table.Index
	global     bool
	schema     table.Schema // the index's, or the table's
	filter     *expr.Condition
	projection *expr.Projection
	start      attr.Map // ExclusiveStartKey
	limit      int64
	countOnly  bool
	scan       bool

	items   []byte
	count   int
	scanned int64
	size    int
	last    *table.Record // of a page that ended before the records did
}

// readListing reads the parameters that Query and Scan share. filterName is the legacy
// filter's.
func readListing(r *wire.Node, filterName string) (*listing, *wire.Error) {
	l := &listing{r: r, limit: -1, scan: filterName == "ScanFilter"}
	if n, ok := r.Int("Limit"); ok {
		l.limit = n
	}
	var err *wire.Error
	if l.projection, err = request.ToGet(r); err != nil {
		return nil, err
	}
	tests, err := request.LegacyTests(r.Get(filterName))
	if err != nil {
		return nil, err
	}
	l.filter = expr.LegacyCondition(tests, r.Str("ConditionalOperator") == "OR")
	if l.start, err = request.Item(r, "ExclusiveStartKey"); err != nil {
		return nil, wire.Invalid("%s", "The provided starting key is invalid: "+err.Message)
	}
	return l, l.readSelect()
}

func (l *listing) readSelect() *wire.Error {
	r := l.r
	part := ""
	for _, name := range []string{"AttributesToGet", "ProjectionExpression"} {
		if r.Has(name) {
			part = name
		}
	}
	switch r.Str("Select") {
	case "COUNT":
		l.countOnly = true
		if part != "" {
			return wire.Invalid("Cannot specify the %s when choosing to get only the Count", part)
		}
	case "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES":
		if part != "" {
			return wire.Invalid("Cannot specify the %s when choosing to get %s", part, r.Str("Select"))
		}
		if r.Str("Select") == "ALL_PROJECTED_ATTRIBUTES" && !r.Has("IndexName") {
			return wire.BadValue("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case "SPECIFIC_ATTRIBUTES":
		if part == "" {
			return wire.Invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
		}
	}
	return nil
}

// use takes over the expressions of the request.
func (l *listing) use(p *request.Parsed) {
	if p.Filter != nil {
		l.filter = p.Filter
	}
	if p.Projection != nil {
		l.projection = p.Projection
	}
}

// bind finds the table and the index.
func (l *listing) bind(find Find) (err *wire.Error) {
	if l.table, err = find(l.r.Str("TableName")); err != nil {
		return err
	}
	l.schema = l.table.Schema
	name := l.r.Str("IndexName")
	if name == "" {
		return nil
	}
	l.table.RLock()
	if l.index, l.global = l.table.Index(name); l.index != nil {
		l.schema = l.table.SchemaOf(l.index.Keys)
	}
	l.table.RUnlock()
	switch {
	case l.index == nil:
		return wire.Invalid("The table does not have the specified index: %s", name)
	case l.global && l.r.True("ConsistentRead"):
		return wire.Invalid("Consistent reads are not supported on global secondary indexes")
	case l.r.Str("Select") == "ALL_ATTRIBUTES" && l.global && l.index.Projection != "ALL":
		return wire.BadValue("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", name)
	case l.global && l.index.Projection != "ALL" && l.projection != nil:
		return l.checkProjected()
	}
	return nil
}

// checkProjected refuses a read of attributes that a global index does not have.
func (l *listing) checkProjected() *wire.Error {
	has := l.projectedNames()
	var lacks []string
	for _, p := range l.projection.Paths {
		if name := p[0].Name; !slices.Contains(has, name) && !slices.Contains(lacks, name) {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return wire.BadValue("Global secondary index %s does not project [%s]", l.index.Name, strings.Join(lacks, ", "))
}

// add puts a record on the page; false when the page is full. A page ends before the
// record that would take it past 1 MB, or with the one that reaches the limit.
func (l *listing) add(r *table.Record) bool {
	if l.scanned > 0 && l.size+r.Size > maxPage {
		return false
	}
	l.scanned++
	l.size += r.Size
	l.last = r
	l.take(r)
	return l.limit < 0 || l.scanned < l.limit
}

func (l *listing) take(r *table.Record) {
	var item attr.Map
	if l.filter != nil {
		if item = r.Item(); !l.filter.Match(item) {
			return
		}
	}
	l.count++
	if l.countOnly {
		return
	}
	if l.count > 1 {
		l.items = append(l.items, ',')
	}
	cut := l.projection
	if l.index != nil && l.r.Str("Select") != "ALL_ATTRIBUTES" && (cut == nil || l.global) {
		item = l.projected(r.Item())
	}
	switch {
	case cut == nil && item == nil, cut == nil && l.index == nil:
		l.items = append(l.items, r.JSON...)
	case cut == nil:
		l.items = item.AppendJSON(l.items)
	default:
		if item == nil {
			item = r.Item()
		}
		l.items = cut.Of(item).AppendJSON(l.items)
	}
}

// reply writes the page. ended says that there are no records after it.
func (l *listing) reply(ended bool) []byte {
	out := append(make([]byte, 0, len(l.items)+256), '{')
	if !l.countOnly {
		out = append(wire.AppendField(out, "Items"), '[')
		out = append(append(out, l.items...), ']')
	}
	out = wire.AppendInt(out, "Count", int64(l.count))
	out = wire.AppendInt(out, "ScannedCount", l.scanned)
	if !ended && l.last != nil {
		out = l.pageKey().AppendJSON(wire.AppendField(out, "LastEvaluatedKey"))
	}
	var b request.Bill
	b.Add(l.table.Name, request.ReadUnits(l.size, l.r.True("ConsistentRead")))
	return append(b.AppendOne(out, l.r), '}')
}

// pageKey is the key to go on after: the last record's, and its index keys.
func (l *listing) pageKey() attr.Map {
	item := l.last.Item()
	key := l.table.Schema.KeyMap(item)
	if l.index != nil {
		for _, k := range l.index.Keys {
			if !l.table.Schema.Has(k.AttributeName) {
				key = append(key, attr.Attr{Name: k.AttributeName, Value: *item.Get(k.AttributeName)})
			}
		}
	}
	return key
}

var errStartKey = wire.Invalid("The provided starting key is invalid")

// checkStart checks the ExclusiveStartKey against the schemas of table and index.
func (l *listing) checkStart() *wire.Error {
	if l.start == nil {
		return nil
	}
	want := l.table.Schema.Names()
	schema := []table.Schema{l.table.Schema}
	if l.index != nil {
		schema = append(schema, l.schema)
		for _, k := range l.index.Keys {
			if !l.table.Schema.Has(k.AttributeName) {
				want = append(want, k.AttributeName)
			}
		}
	}
	whole := errStartKey
	if l.scan && l.index == nil {
		whole = badStart(errKeySchema)
	}
	if len(l.start) != len(want) {
		return whole
	}
	for _, name := range want {
		if l.start.Get(name) == nil {
			return whole
		}
	}
	for i := range schema {
		if err := schema[i].CheckKey(schema[i].KeyMap(l.start).Sorted()); err != nil {
			if !l.scan && err.Message == errKeySchema.Message {
				return err
			}
			return badStart(err)
		}
	}
	return nil
}

var errKeySchema = wire.Invalid("The provided key element does not match the schema")

func badStart(err *wire.Error) *wire.Error {
	return wire.Invalid("%s", errStartKey.Message+": "+err.Message)
}
