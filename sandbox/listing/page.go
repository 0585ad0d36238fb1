// Package listing answers Query and Scan: it reads a table or an index in order, filters and
// projects the items, and divides them into pages.
//
// query.go and scan.go hold the two operations, plan.go judges the conditions of a Query, start.go
// the keys at which a page begins, index.go reads secondary indexes, page.go has what both share.
package listing

import (
	"math"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/expr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/capacity"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Find returns a table by its name, or the service's error.
type Find func(name string) (*table.Table, *wire.Error)

// Host is the server that a Query or Scan runs in.
type Host struct {
	Find  Find
	Reads *capacity.Meter // counts and limits what is read; nil: nothing is
	// Lagging returns the items for an eventually consistent read of a table; nil, also as its
	// result, means the table itself.
	Lagging func(*table.Table) *table.Items
}

// maxPage is the largest size of a page's items, in bytes, before filters and projections.
const maxPage = 1 << 20

// listing is one Query or Scan: its parameters, and the page that it fills.
type listing struct {
	r          *wire.Node
	host       Host
	table      *table.Table
	from       *table.Items // what the page is read from; the table's own need its lock
	index      *table.Index
	global     bool         // the index is a global one
	schema     table.Schema // the index's, or the table's
	filter     *expr.Condition
	projection *expr.Projection
	start      attr.Map  // ExclusiveStartKey
	limit      int64     // records to evaluate; < 0: no limit
	countOnly  bool      // Select is COUNT
	scan       bool      // a Scan, not a Query
	first, end table.Key // of a Scan: where the page begins, and what it ends below; empty: no bound

	items   []byte        // JSON of the items on the page
	count   int           // items on the page
	scanned int64         // records evaluated
	size    int           // their total size in bytes
	last    *table.Record // the last record evaluated
	read    capacity.Read // for the table's limits
	parts   []int         // of a Scan of a table: size of the records by partition
}

// begin takes a page that begins at a key from the table's limits, and sets what the page is read
// from. The caller calls done after it has read.
func (l *listing) begin(at table.Key) (done func(), err *wire.Error) {
	if l.host.Lagging != nil && !l.r.True("ConsistentRead") {
		l.from = l.host.Lagging(l.table)
	}
	done = func() {}
	l.table.RLock()
	l.read = request.ReadOf(l.table, at)
	if l.scan && l.index == nil {
		l.parts = make([]int, l.table.Def.Partitions())
	}
	if l.from == nil {
		l.from, done = l.table.Items, l.table.RUnlock
	} else {
		l.table.RUnlock()
	}
	if !l.host.Reads.Admit(l.read) {
		done()
		return nil, request.ErrThroughput
	}
	return done, nil
}

// readListing reads the parameters that Query and Scan share. filterName is the name of the
// operation's legacy filter.
func readListing(r *wire.Node, host Host, filterName string) (*listing, *wire.Error) {
	l := &listing{r: r, host: host, limit: -1, scan: filterName == "ScanFilter"}
	if n, ok := r.Int("Limit"); ok {
		l.limit = n
	}
	tests, err := l.readLegacy(r.Get(filterName))
	if err != nil {
		return nil, err
	}
	l.filter = expr.LegacyCondition(tests, r.Str("ConditionalOperator") == "OR")
	if l.start, err = request.Item(r, "ExclusiveStartKey"); err != nil {
		return nil, wire.Invalid("%s", "The provided starting key is invalid: "+err.Message)
	}
	return l, l.readSelect()
}

// readLegacy reads AttributesToGet and the tests of a filter: a query's filter is judged first, of
// a scan AttributesToGet. Source: architect/dynalite, test/query.js and test/scan.js.
func (l *listing) readLegacy(filter *wire.Node) (tests []expr.LegacyTest, err *wire.Error) {
	if l.scan {
		if l.projection, err = request.ToGet(l.r); err != nil {
			return nil, err
		}
		return expr.LegacyTests(filter)
	}
	if tests, err = expr.LegacyTests(filter); err != nil {
		return nil, err
	}
	l.projection, err = request.ToGet(l.r)
	return tests, err
}

// readSelect checks Select against the other parameters.
func (l *listing) readSelect() *wire.Error {
	r := l.r
	selected := "" // the parameter that selects attributes
	for _, name := range []string{"AttributesToGet", "ProjectionExpression"} {
		if r.Has(name) {
			selected = name
		}
	}
	switch r.Str("Select") {
	case "COUNT":
		l.countOnly = true
		if selected != "" {
			return wire.Invalid("Cannot specify the %s when choosing to get only the Count", selected)
		}
	case "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES":
		if selected != "" {
			return wire.Invalid("Cannot specify the %s when choosing to get %s", selected, r.Str("Select"))
		}
		if r.Str("Select") == "ALL_PROJECTED_ATTRIBUTES" && !r.Has("IndexName") {
			return wire.BadValue("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
		}
	case "SPECIFIC_ATTRIBUTES":
		if selected == "" {
			return wire.Invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get " +
				"SPECIFIC_ATTRIBUTES")
		}
	}
	return nil
}

// setExpressions sets the filter and the projection of the request's expressions.
func (l *listing) setExpressions(p *request.Parsed) {
	if p.Filter != nil {
		l.filter = p.Filter
	}
	if p.Projection != nil {
		l.projection = p.Projection
	}
}

// bind finds the table and the index, and checks the parameters that depend on the index.
func (l *listing) bind() (err *wire.Error) {
	if l.table, err = l.host.Find(l.r.Str("TableName")); err != nil {
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
	case l.index.Projection == "ALL":
		return nil
	}
	if l.global && l.projection != nil {
		if err := l.checkProjected(); err != nil {
			return err
		}
	}
	return l.checkFiltered()
}

// checkAllAttributes refuses to read all attributes from a global index that lacks some.
func (l *listing) checkAllAttributes() *wire.Error {
	if l.index == nil || !l.global || l.index.Projection == "ALL" || l.r.Str("Select") != "ALL_ATTRIBUTES" {
		return nil
	}
	return wire.BadValue("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its "+
		"projection type is not ALL", l.index.Name)
}

// checkProjected refuses a projection of attributes that a global index lacks.
func (l *listing) checkProjected() *wire.Error {
	has := l.projectedNames()
	var missing []string
	for _, p := range l.projection.Paths {
		if name := p[0].Name; !slices.Contains(has, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return wire.BadValue("Global secondary index %s does not project [%s]", l.index.Name, strings.Join(missing, ", "))
}

// checkFiltered refuses the filter of a Query that reads attributes which the index lacks. For a
// Scan they are missing. Source: sensedeep/dynamodb-onetable, issue 377, and nubo-db/dynoxide,
// src/partiql/executor.rs, for both kinds of indexes and for scans.
func (l *listing) checkFiltered() *wire.Error {
	if l.filter == nil || l.scan {
		return nil
	}
	has := l.projectedNames()
	var missing []string
	for name := range l.filter.Heads() {
		if !slices.Contains(has, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return wire.BadValue("Secondary index %s does not project one or more filter attributes: [%s]", l.index.Name,
		strings.Join(missing, ", "))
}

// add evaluates a record for the page; false means that the page is full. A page ends before the
// record that would exceed 1 MB, or with the record that reaches the limit.
func (l *listing) add(r *table.Record) bool {
	size := r.Size
	if l.index != nil && l.index.Projection != "ALL" {
		size = l.projected(r.Item()).Size()
	}
	if l.scanned > 0 && l.size+size > maxPage {
		return false
	}
	l.scanned++
	l.size += size
	l.last = r
	if l.parts != nil {
		l.parts[table.Part(r.Key.Hash(), len(l.parts))] += r.Size
	}
	l.append(r)
	return l.limit < 0 || l.scanned < l.limit
}

// append appends a record's item to the page if the filter matches it.
func (l *listing) append(r *table.Record) {
	var item attr.Map
	if l.filter != nil {
		if item = r.Item(); l.scan && l.index != nil {
			item = l.projected(item)
		}
		if !l.filter.Match(item) {
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
	projection := l.projection
	if l.index != nil && l.r.Str("Select") != "ALL_ATTRIBUTES" && (projection == nil || l.global) {
		item = l.projected(r.Item())
	}
	switch {
	case projection == nil && item == nil, projection == nil && l.index == nil:
		if free := cap(l.items) - len(l.items); len(l.items) > maxPage/32 && free < len(r.JSON) {
			l.items = slices.Grow(l.items, maxPage*3/2) // most likely a full page: grow once
		}
		l.items = append(l.items, r.JSON...)
	case projection == nil:
		l.items = item.AppendJSON(l.items)
	default:
		if item == nil {
			item = r.Item()
		}
		l.items = projection.Of(item).AppendJSON(l.items)
	}
}

// units returns what the page consumes. A Scan of a table reads each partition for itself, so that
// even an empty one costs the least that a read does. Source: scylladb/scylladb,
// test/alternator/test_returnconsumedcapacity.py: test_scan_consumed_capacity.
func (l *listing) units(ended bool) (sum float64) {
	consistent := l.r.True("ConsistentRead")
	if l.parts == nil {
		return request.ReadUnits(l.size, consistent)
	}
	from, to := l.first.Hash(), uint64(math.MaxUint64)
	switch {
	case !ended && l.last != nil:
		to = l.last.Key.Hash()
	case l.end != "":
		to = l.end.Hash() - 1
	}
	for _, size := range l.parts[table.Part(from, len(l.parts)) : table.Part(to, len(l.parts))+1] {
		sum += request.ReadUnits(size, consistent)
	}
	return sum
}

// reply returns the page. ended means that no record follows it.
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
	units := l.units(ended)
	b.Add(l.table.Name, units)
	l.host.Reads.Charge(l.read, units)
	return append(b.AppendOne(out, l.r), '}')
}

// pageKey returns the LastEvaluatedKey: the last record's key, and its index key.
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

// projected returns the attributes of an item that the index projects.
func (l *listing) projected(item attr.Map) attr.Map {
	if l.index.Projection == "ALL" {
		return item
	}
	return expr.TopLevel(l.projectedNames()).Of(item)
}

// projectedNames returns the attributes of an index with a projection other than ALL.
func (l *listing) projectedNames() []string {
	names := l.table.Schema.Names()
	for _, k := range l.index.Keys {
		names = append(names, k.AttributeName)
	}
	return append(names, l.index.NonKey...)
}
