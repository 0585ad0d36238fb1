package raw

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	tableschemas "github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamschemas "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// The protocols of the SDK, which sign calls and decode errors.
var (
	streamProtocol = awsjson.New10(streamschemas.DynamoDBStreams_20120810)
	tableProtocol  = awsjson.New10(tableschemas.DynamoDB_20120810)
)

// rawProtocol replaces the SDK's protocol for one call: it stores the body of a success instead of
// decoding it.
type rawProtocol struct {
	*awsjson.Protocol
	into *Body
}

// DeserializeResponse reads the whole body of a success, which the SDK closes afterwards. Errors
// are decoded by the SDK.
func (p rawProtocol) DeserializeResponse(ctx context.Context, op *smithy.OperationSchema, t *smithy.TypeRegistry,
	r *smithyhttp.Response, out smithy.Deserializable,
) error {
	if r.StatusCode != 200 {
		return p.Protocol.DeserializeResponse(ctx, op, t, r, out)
	}
	return p.into.read(r)
}

// ForStreams is an option of one call: the reply of a success is read into b, and nothing of it is
// decoded.
func (b *Body) ForStreams(o *dynamodbstreams.Options) { o.Protocol = rawProtocol{streamProtocol, b} }

// ForTables is ForStreams for a call to a table.
func (b *Body) ForTables(o *dynamodb.Options) { o.Protocol = rawProtocol{tableProtocol, b} }

// maxBody is the longest reply that is read. A page is 1 MB by the service's count; other servers
// do not count.
const maxBody = 128 << 20

var errTooLong = errors.New("reply is longer than 128 MiB")

// peekBytes is the largest reply that is read without memory of the budget, as long as no record is
// found in it. These bytes are part of the call, as the connection's buffers are: 1 MiB for all
// calls that may be in flight.
const peekBytes = 16 << 10

// ErrNoMemory means that the reply was dropped because it needs memory that is not free.
var ErrNoMemory = errors.New("the reply needs memory that is not free")

// Body holds the bytes of one reply, which are pooled. The zero Body is empty.
type Body struct {
	data []byte

	// Room is called before the reply takes more than peekBytes, and reserves the memory of a page.
	// False: none is free. Nil: the memory is reserved already.
	Room func() bool

	// NeedDate refuses a reply without a Date header with ErrNoDate.
	NeedDate bool
}

// Bytes returns the reply, valid until Free.
func (b *Body) Bytes() []byte { return b.data }

// Free gives the bytes back to the pool.
func (b *Body) Free() {
	putBuffer(b.data)
	b.data = nil
}

// read reads the body of a success, unless it needs memory that is not free.
func (b *Body) read(r *smithyhttp.Response) error {
	b.Free() // of an earlier attempt
	if b.NeedDate {
		if _, err := smithyhttp.ParseTime(r.Header.Get("Date")); err != nil {
			return ErrNoDate
		}
	}
	size := int(r.ContentLength)
	if size > maxBody {
		return errTooLong
	}
	if size >= peekBytes && !b.MayGrow() {
		return ErrNoMemory
	}
	b.data = getBuffer(max(size, 0) + 1) // one byte more, so that the end is found without growing
	for {
		n, err := r.Body.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return &MalformedError{fmt.Errorf("read reply after %d bytes: %w", len(b.data), err)}
		}
		if len(b.data) == cap(b.data) {
			if len(b.data) > maxBody {
				return errTooLong
			}
			if 2*cap(b.data) > peekBytes && !b.MayGrow() {
				return ErrNoMemory
			}
			b.grow()
		}
	}
	return b.check(r)
}

// MayGrow reports whether the memory of a page is reserved, and reserves it where Room does.
func (b *Body) MayGrow() bool { return b.Room == nil || b.Room() }

func (b *Body) grow() {
	bigger := append(getBuffer(2*cap(b.data)), b.data...)
	putBuffer(b.data)
	b.data = bigger
}

// check returns an error if the reply was truncated or changed in transit, as far as the service
// sent its length or checksum.
func (b *Body) check(r *smithyhttp.Response) error {
	if r.ContentLength >= 0 && int64(len(b.data)) != r.ContentLength {
		return &MalformedError{fmt.Errorf("reply has %d bytes of %d", len(b.data), r.ContentLength)}
	}
	if r.Uncompressed {
		return nil // the checksum covers the compressed bytes, and gzip has its own
	}
	sum, err := strconv.ParseUint(r.Header.Get("X-Amz-Crc32"), 10, 32)
	if err == nil && uint32(sum) != crc32.ChecksumIEEE(b.data) {
		return &MalformedError{fmt.Errorf("reply of %d bytes does not match its checksum", len(b.data))}
	}
	return nil
}
