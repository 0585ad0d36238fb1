package source

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// ItemPage is one page of a scan, without the heartbeats in it.
type ItemPage struct {
	Items [][]byte // raw items in DynamoDB's typed JSON, for change.Decoder; they alias the page's memory
	After string   // key that the next page begins after, in typed JSON; "" when Done
	Done  bool     // the segment ends with this page

	// Requested and Answered enclose the moment of each item's reading, by the service's clock.
	// Requested is never later than the request. Answered is the reply's Date, which is cut to
	// whole seconds: the reading may be a second later.
	Requested, Answered change.Millis

	At    time.Time // of the request, by our clock
	Units float64   // read capacity that the page cost
	Bytes int       // of the reply

	last []byte // the reply's last item, be it a heartbeat
	body raw.Body
}

// Free lets the page's memory be used again. Its Items must not be used afterwards. A page that is
// never freed is collected as garbage.
func (p *ItemPage) Free() { p.body.Free() }

// ScanRequest requests one page of one segment of a table.
type ScanRequest struct {
	Table          string
	Segment, Total int    // Total 0 or 1: the whole table
	After          string // ItemPage.After of the page before; "": from the segment's begin
	Limit          int    // items; 0: as many as fit into 1 MB
	Eventual       bool   // reads may lag, at half the cost; default strongly consistent
	Sampled        bool   // items may be missing: the end of the segment is not confirmed
}

// ScanPage reads one page with one call. It does not retry: the caller has a pace of its own, which
// must know about every throttled call. A truncated reply is Transient, and so is ErrNoDate, a
// reply without the service's time: its age is unknown. Where a page ends its segment, a second
// call confirms that; Units counts both.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
func (s *Source) ScanPage(ctx context.Context, r ScanRequest) (*ItemPage, error) {
	page := &ItemPage{body: raw.Body{NeedDate: true}}
	err := s.scanInto(ctx, r, page, func(o *dynamodb.Options) { o.Retryer = s.noRetry })
	if err != nil {
		return nil, err
	}
	return page, nil
}

// Scan reads one segment of a table with strong consistency, page by page. An error ends it, after
// the retries of the SDK. A page is freed when the next one is read. Where the server sends no
// Date, Requested and Answered are 0.
func (s *Source) Scan(ctx context.Context, table string, segment, total int) iter.Seq2[*ItemPage, error] {
	return func(yield func(*ItemPage, error) bool) {
		r := ScanRequest{Table: table, Segment: segment, Total: total}
		for {
			more, ok := s.scanNext(ctx, &r, yield)
			if !ok || !more {
				return
			}
		}
	}
}

// sampleSegments is the number of segments that a sample is spread over, because all items of one
// segment may belong to one large item collection.
const sampleSegments = 16

// Sample reads about n items, or all if there are fewer, spread over a table. It reads with
// eventual consistency, which costs half, and may return some more than n.
func (s *Source) Sample(ctx context.Context, table string, n int) iter.Seq2[*ItemPage, error] {
	return func(yield func(*ItemPage, error) bool) {
		var segments []*ScanRequest
		for i := range sampleSegments {
			segments = append(segments, &ScanRequest{
				Table: table, Segment: i, Total: sampleSegments, Eventual: true,
				Limit: (n + sampleSegments - 1) / sampleSegments, Sampled: true,
			})
		}
		for len(segments) > 0 && n > 0 {
			more, ok := s.scanNext(ctx, segments[0], func(page *ItemPage, err error) bool {
				if page != nil {
					n -= len(page.Items)
				}
				return yield(page, err)
			})
			if !ok {
				return
			}
			if more {
				segments = append(segments, segments[0])
			}
			segments = segments[1:]
		}
	}
}

// scanNext reads one page with the SDK's retries, yields it or its error, frees it, and moves r to
// the next page. more reports whether there is a next page, ok whether the consumer continues.
func (s *Source) scanNext(
	ctx context.Context, r *ScanRequest, yield func(*ItemPage, error) bool,
) (more, ok bool) {
	page := &ItemPage{}
	if err := s.scanInto(ctx, *r, page); err != nil {
		return false, yield(nil, err)
	}
	defer page.Free()
	r.After = page.After
	return !page.Done, yield(page, nil)
}

// falseEnds is how many false ends of a segment in a row are an error.
const falseEnds = 3

// scanInto reads the page that r requests into page.
//
// Rule 13: a page without a key to go on from ends its segment only if a second call, which begins
// after its last item, finds nothing more. Otherwise the next page begins there. A false empty page
// would leave out the rest of the segment.
func (s *Source) scanInto(ctx context.Context, r ScanRequest, page *ItemPage, opts ...func(*dynamodb.Options)) error {
	units := 0.0
	for range falseEnds {
		if err := s.scanOnce(ctx, r, page, opts...); err != nil {
			return err
		}
		if !page.Done || r.Sampled {
			page.Units += units
			return nil
		}
		last, err := s.lastKey(ctx, &r, page)
		if err != nil {
			page.Free()
			return err
		}
		more, paid, err := s.follows(ctx, r, last)
		units += paid
		switch {
		case err == nil && !more:
			page.Units += units
			return nil
		case last != r.After: // the items are read: the next page asks again, also after an error
			page.Units, page.After, page.Done = page.Units+units, last, false
			return nil
		case err != nil:
			page.Free()
			return err
		}
		units += page.Units
		page.Free()
	}
	return s.wrap(ctx, "scan table "+r.Table, &raw.MalformedError{Err: errFalseEnd})
}

var errFalseEnd = errors.New("pages without items and without a key to go on from, and items follow")

// follows reports whether a segment has an item after a key, and what the answer cost. The SDK
// retries the call: where reads are throttled, a second call at once would hardly ever succeed, and
// the page would be read again and again.
func (s *Source) follows(ctx context.Context, r ScanRequest, key string) (more bool, units float64, err error) {
	page := ItemPage{}
	defer page.Free()
	r.After, r.Limit = key, 1
	if err = s.scanOnce(ctx, r, &page); err != nil {
		return false, 0, err
	}
	return page.last != nil || !page.Done, page.Units, nil
}

// lastKey returns the key of the last item of a page in typed JSON; without items, where the page
// begins.
func (s *Source) lastKey(ctx context.Context, r *ScanRequest, page *ItemPage) (string, error) {
	if page.last == nil {
		return r.After, nil
	}
	schema, err := s.schema(ctx, r.Table)
	if err != nil {
		return "", err
	}
	key, err := change.NewKeyReader(schema).Of(nil, page.last)
	if err != nil {
		return "", s.wrap(ctx, "scan table "+r.Table, &raw.MalformedError{Err: err})
	}
	return string(key), nil
}

// scanOnce makes the call of scanInto once.
func (s *Source) scanOnce(ctx context.Context, r ScanRequest, page *ItemPage, opts ...func(*dynamodb.Options)) error {
	op := "scan table " + r.Table
	in, err := r.input(s.Address(r.Table))
	if err != nil {
		return &Error{Op: op, Class: failure.Fatal, Err: err}
	}
	ours, err := s.Heartbeats(ctx, r.Table)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, s.callDeadline())
	defer cancel()
	page.At = time.Now()
	out, err := s.tables.Scan(call, in, append(opts, page.body.ForTables)...)
	if err == nil {
		err = page.fill(r.After)
		s.metrics.table(r.Table).countUnits(page.Units)
		page.Items = ours.Remaining(page.Items)
	}
	s.metrics.callEnded(ctx, "Scan", page.At, err)
	if err != nil {
		page.Free()
		return s.wrap(ctx, op, err)
	}
	page.Requested, page.Answered, err = s.observeDates(out.ResultMetadata, page.At)
	if err != nil && page.body.NeedDate {
		page.Free()
		return s.wrap(ctx, op, err)
	}
	return nil
}

// input returns the SDK's form of the request, to a table that is named by its ARN or its name.
func (r *ScanRequest) input(table string) (*dynamodb.ScanInput, error) {
	in := &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(!r.Eventual),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if r.Total > 1 {
		in.Segment, in.TotalSegments = aws.Int32(int32(r.Segment)), aws.Int32(int32(r.Total))
	}
	if r.Limit > 0 {
		in.Limit = aws.Int32(int32(r.Limit))
	}
	var err error
	if r.After != "" {
		in.ExclusiveStartKey, err = itemKey([]byte(r.After))
	}
	return in, err
}

// fill takes the items and the other members out of the reply. after is the key that the page
// begins after.
func (p *ItemPage) fill(after string) error {
	found, err := scanReply(p.body.Bytes())
	if err != nil {
		return err
	}
	if found.After != "" && found.After == after {
		return ErrRepeatedCursor
	}
	p.Items, p.After, p.Done, p.last = found.Items, found.After, found.After == "", nil
	p.Units, p.Bytes = found.Units, len(p.body.Bytes())
	if n := len(found.Items); n > 0 {
		p.last = found.Items[n-1]
	}
	return nil
}
