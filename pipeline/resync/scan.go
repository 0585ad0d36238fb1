package resync

import (
	"context"
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
)

// scan reads a table with strong consistency, segment by segment.
type scan struct {
	o     *Options
	began change.Millis
	total int        // segments
	limit func() int // items of a page; 0: any number
}

// pageLimit returns how many items a page of a part may hold; 0: as many as the service returns.
func (s *scan) pageLimit(x *part) int {
	limit := s.o.Budget.PageLimit(x.itemUnits)
	if other := s.limit(); other > 0 && (limit == 0 || other < limit) {
		limit = other
	}
	return limit
}

const (
	// segmentUnits is how many read capacity units per second one segment may take: a segment may
	// lie in one partition, which has 3000 for all readers of the table.
	segmentUnits = 500
	// firstUnits estimates the cost of a page while none of its part was read: 1 MB read with
	// strong consistency is 256.
	firstUnits = 64
	// maxReaders is how many segments are read at once.
	maxReaders = 16
)

// readers leaves at least four segments to each reader: those that end early or are throttled do
// not hold the rest up.
func (s *scan) readers() int { return min(max(s.total/4, 1), maxReaders) }

func (s *scan) read(ctx context.Context, x *part, from string) (*batch, func(), error) {
	taken := x.units
	if taken == 0 {
		taken = firstUnits
	}
	if err := s.o.Budget.Take(ctx, taken); err != nil {
		return nil, nil, err
	}
	pg, err := s.o.Reader.ScanPage(ctx, source.ScanRequest{
		Table: s.o.Source, Segment: x.Number, Total: s.total, After: from, Limit: s.pageLimit(x),
	})
	if err != nil {
		s.o.Budget.Settle(taken, 0)
		return nil, nil, err
	}
	s.o.Budget.Settle(taken, pg.Units)
	if pg.Requested < s.began { // the clock went back: see Copy.Began
		pg.Free()
		return nil, nil, errEarly
	}
	return &batch{
		items: pg.Items, after: pg.After, last: pg.Done, version: s.o.versionOf(pg.Requested),
		requested: pg.Requested, proof: pg.Answered + answerMargin, at: pg.At, units: pg.Units,
	}, pg.Free, nil
}

// errEarly reports that a page was read before the copy may begin.
var errEarly = &source.Error{Op: "scan", Class: failure.Transient, Err: errors.New("the service's clock went back")}

func (s *scan) due(b *batch) time.Time {
	return time.Now().Add(time.Duration(b.units / segmentUnits * float64(time.Second)))
}

func (*scan) close() {}

// Segments returns the number of segments for a table of that size: one for each 8 MB, from 8 to
// 64.
func Segments(bytes int64) int { return int(min(max(bytes>>23, 8), 64)) }
