package listing

import (
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Scan answers a Scan request.
func Scan(r *wire.Node, host Host) ([]byte, *wire.Error) {
	if err := request.CheckStyles(r, []string{"ProjectionExpression", "FilterExpression"},
		[]string{"AttributesToGet", "ScanFilter", "ConditionalOperator"}); err != nil {
		return nil, err
	}
	l, err := readListing(r, host, "ScanFilter")
	if err != nil {
		return nil, err
	}
	if err := checkSegments(r); err != nil {
		return nil, err
	}
	p, err := request.Parse(r)
	if err != nil {
		return nil, err
	}
	l.setExpressions(&p)
	if err := l.bind(); err != nil {
		return nil, err
	}
	if err := l.checkScan(); err != nil {
		return nil, err
	}
	first, end := segmentOf(r)
	if l.start != nil {
		key := l.table.Schema.KeyOf(l.start)
		if l.index == nil && (key < first || end != "" && key >= end) {
			segment, _ := r.Int("Segment")
			total, _ := r.Int("TotalSegments")
			return nil, wire.Invalid("The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "+
				"ExclusiveStartKey "+
				"with correct Segment. TotalSegments: %d Segment: %d", total, segment)
		}
	}
	at := first
	if l.start != nil {
		at = l.table.Schema.KeyOf(l.start)
	}
	l.first, l.end = at, end
	done, err := l.begin(at)
	if err != nil {
		return nil, err
	}
	defer done()
	if l.index != nil {
		return l.reply(l.addIndexed(l.indexed(nil, first, end), false)), nil
	}
	return l.reply(l.addRange(first, end)), nil
}

// addRange fills the page with the records from first on, below end, after the start key. It
// reports whether it reached the last of them.
func (l *listing) addRange(first, end table.Key) (ended bool) {
	var after table.Key
	if l.start != nil {
		after = l.table.Schema.KeyOf(l.start)
		first = after
	}
	ended = true
	l.from.Ascend(first, func(r *table.Record) bool {
		switch {
		case end != "" && r.Key >= end:
			return false
		case r.Key == after && l.start != nil:
			return true
		}
		ended = l.add(r)
		return ended
	})
	return ended
}

// checkSegments checks Segment and TotalSegments, which go together.
func checkSegments(r *wire.Node) *wire.Error {
	segment, has := r.Int("Segment")
	total, hasTotal := r.Int("TotalSegments")
	switch {
	case has && !hasTotal:
		return wire.Invalid("The TotalSegments parameter is required but was not present in the request when Segment " +
			"parameter is present")
	case hasTotal && !has:
		return wire.Invalid("The Segment parameter is required but was not present in the request when parameter " +
			"TotalSegments is present")
	case has && segment >= total:
		return wire.Invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: "+
			"Segment: %d is not less than TotalSegments: %d", segment, total)
	}
	return nil
}

// segmentOf returns the bounds of the request's segment, empty for a whole scan.
func segmentOf(r *wire.Node) (first, end table.Key) {
	total, ok := r.Int("TotalSegments")
	if !ok {
		return "", ""
	}
	segment, _ := r.Int("Segment")
	return table.Segment(segment, total)
}
