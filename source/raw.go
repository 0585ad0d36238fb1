package source

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"sync"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	tableschemas "github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamschemas "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// The SDK decodes a page fifteen times slower than we scan it. So for the calls that carry data its protocol
// is replaced for one call: signing, endpoints and typed errors stay the SDK's, the body of a success comes
// to us as it is.
var (
	streamProtocol = awsjson.New10(streamschemas.DynamoDBStreams_20120810)
	tableProtocol  = awsjson.New10(tableschemas.DynamoDB_20120810)
)

type rawProtocol struct {
	*awsjson.Protocol
	into *body
}

// DeserializeResponse reads the body of a success whole; the SDK closes it afterwards. Errors go the
// SDK's way.
func (p rawProtocol) DeserializeResponse(ctx context.Context, op *smithy.OperationSchema, t *smithy.TypeRegistry,
	r *smithyhttp.Response, out smithy.Deserializable,
) error {
	if r.StatusCode != 200 {
		return p.Protocol.DeserializeResponse(ctx, op, t, r, out)
	}
	return p.into.read(r)
}

func (b *body) ofStreams(o *dynamodbstreams.Options) { o.Protocol = rawProtocol{streamProtocol, b} }

func (b *body) ofTables(o *dynamodb.Options) { o.Protocol = rawProtocol{tableProtocol, b} }

// A page is 1 MB by the service's count; other servers do not count. This is where we stop believing.
const maxBody = 128 << 20

var errTooLong = errors.New("reply is too long")

// peekBytes is the largest reply that is read without memory of the budget, as long as no record is found in it. It
// belongs to the call, as the connection's own buffers do: as many as there may be calls in flight, 1 MiB.
const peekBytes = 16 << 10

var errNoMemory = errors.New("the reply needs memory that is not free")

// body is the pooled bytes of one reply. The zero body is empty; free gives the bytes back.
type body struct {
	data []byte
	room func() bool // asked before the reply takes more than peekBytes; nil: the memory is reserved
}

func (b *body) free() {
	putBuffer(b.data)
	b.data = nil
}

func (b *body) read(r *smithyhttp.Response) error {
	b.free() // of an earlier attempt
	size := int(r.ContentLength)
	if size > maxBody {
		return errTooLong
	}
	if size >= peekBytes && !b.mayGrow() {
		return errNoMemory
	}
	b.data = getBuffer(max(size, 0) + 1) // one more, so that the end is seen without growing
	for {
		n, err := r.Body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return malformed{fmt.Errorf("read reply after %d bytes: %w", len(b.data), err)}
		}
		if len(b.data) == cap(b.data) {
			if len(b.data) > maxBody {
				return errTooLong
			}
			if 2*cap(b.data) > peekBytes && !b.mayGrow() {
				return errNoMemory
			}
			b.grow()
		}
	}
	return b.check(r)
}

func (b *body) mayGrow() bool { return b.room == nil || b.room() }

func (b *body) grow() {
	bigger := append(getBuffer(2*cap(b.data)), b.data...)
	putBuffer(b.data)
	b.data = bigger
}

// check catches a reply that was cut or bent on its way, as far as the service lets us know.
func (b *body) check(r *smithyhttp.Response) error {
	if r.ContentLength >= 0 && int64(len(b.data)) != r.ContentLength {
		return malformed{fmt.Errorf("reply has %d bytes of %d", len(b.data), r.ContentLength)}
	}
	if r.Uncompressed {
		return nil // the sum is of the packed bytes, gzip has its own
	}
	if sum, err := strconv.ParseUint(r.Header.Get("X-Amz-Crc32"), 10, 32); err == nil && uint32(sum) != crc32.ChecksumIEEE(b.data) {
		return malformed{fmt.Errorf("reply of %d bytes has another checksum", len(b.data))}
	}
	return nil
}

// Pools by size, so that the pages of idle and of slow shards do not hold a megabyte each.
var pools = [...]struct {
	size int
	sync.Pool
}{{size: 2 << 10}, {size: 16 << 10}, {size: 128 << 10}, {size: 512 << 10}, {size: 1<<20 + 256<<10}, {size: 4 << 20}}

// getBuffer returns an empty slice of at least that capacity.
func getBuffer(size int) []byte {
	for i := range pools {
		p := &pools[i]
		if size > p.size {
			continue
		}
		if b, ok := p.Get().(*[]byte); ok {
			return (*b)[:0]
		}
		return make([]byte, 0, p.size)
	}
	return make([]byte, 0, size)
}

func putBuffer(b []byte) {
	for i := range pools {
		if cap(b) == pools[i].size {
			b = b[:0]
			pools[i].Put(&b)
			return
		}
	}
}

// date returns the service's time of a call in unix ms, never later than the call's start: the Date header
// less the time that has passed from our start until its reply was there. It is 0 when the server sent none.
// It feeds the source's idea of the service's clock.
func (s *Source) date(md middleware.Metadata, start time.Time) int64 {
	date, ok := awsmiddleware.GetServerTime(md)
	if !ok {
		return 0
	}
	at, ok := awsmiddleware.GetResponseAt(md)
	if !ok {
		at = time.Now()
	}
	return s.dated(date, start, at)
}

func (s *Source) dated(date, start, at time.Time) int64 {
	s.now.observe(date.UnixMilli(), start, at)
	return date.UnixMilli() - at.Sub(start).Milliseconds() - 1
}
