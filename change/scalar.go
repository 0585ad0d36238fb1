package change

import (
	"bytes"
	"cmp"
	"time"
)

// Millis is a time on the clock of the service that reported it: unix milliseconds.
type Millis int64

// MillisOf returns a time in unix milliseconds.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time returns the time in the local zone, as time.UnixMilli does.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)) }

// Version orders the changes of one item: milliseconds of a shard's hybrid clock, see Clock.
type Version int64

// SequenceNumber is DynamoDB's position of a record in its shard: 21 to 40 decimal digits, without
// leading zeros.
type SequenceNumber string

// Compare orders two sequence numbers of a shard as numbers: -1 when n is the lower one, 0, or 1.
func (n SequenceNumber) Compare(other SequenceNumber) int {
	if len(n) != len(other) {
		return cmp.Compare(len(n), len(other))
	}
	return cmp.Compare(n, other)
}

// Follows reports whether a record comes after the one with a sequence number: the order of
// SequenceNumber.Compare.
func (r *Record) Follows(prev []byte) bool {
	if len(r.SequenceNumber) != len(prev) {
		return len(r.SequenceNumber) > len(prev)
	}
	return bytes.Compare(r.SequenceNumber, prev) > 0
}
