package stream

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// ttlIdentity is the userIdentity of time-to-live deletes, with its members as the API's model
// spells them. Events for Lambda spell them principalId and type, which the SDKs ignore in a
// GetRecords reply.
const ttlIdentity = `"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"},`

// recordBytes returns an upper bound of a record's encoded size.
func recordBytes(c *Change) int { return 512 + len(c.Keys) + len(c.New) + len(c.Old) }

// appendRecord appends a record as GetRecords carries it, and a comma. The stream's view decides on
// the images.
func appendRecord(dst []byte, e *Engine, s *stream, c *Change, seq uint64, created stamp) []byte {
	dst = append(dst, `{"eventID":"`...)
	dst = appendEventID(dst, e.o.Seed, seq)
	dst = append(dst, `","eventName":"`...)
	dst = append(dst, c.Op...)
	dst = append(dst, `","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"`...)
	dst = append(dst, e.o.Region...)
	dst = append(dst, `",`...)
	if c.TTL {
		dst = append(dst, ttlIdentity...)
	}
	dst = append(dst, `"dynamodb":{"ApproximateCreationDateTime":`...)
	dst = created.append(dst)
	dst = append(dst, `,"Keys":`...)
	dst = append(dst, c.Keys...)
	if c.New != nil && (s.view == "NEW_IMAGE" || s.view == "NEW_AND_OLD_IMAGES") {
		dst = append(append(dst, `,"NewImage":`...), c.New...)
	}
	if c.Old != nil && (s.view == "OLD_IMAGE" || s.view == "NEW_AND_OLD_IMAGES") {
		dst = append(append(dst, `,"OldImage":`...), c.Old...)
	}
	dst = append(dst, `,"SequenceNumber":"`...)
	dst = e.o.Numbers.Append(dst, seq)
	dst = append(dst, `","SizeBytes":`...)
	dst = strconv.AppendInt(dst, int64(c.SizeBytes), 10)
	dst = append(dst, `,"StreamViewType":"`...)
	dst = append(dst, s.view...)
	return append(dst, `"}},`...)
}

// appendEventID appends an id of 32 hex digits that repeats with the seed.
func appendEventID(dst []byte, seed, seq uint64) []byte {
	var id [16]byte
	a, b := mix(seed^seq), mix(seed+^seq)
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	return hex.AppendEncode(dst, id[:])
}

// stamp is a creation time in whole seconds, with its spelling.
type stamp struct {
	seconds int64
	format  TimeFormat
}

// append appends the time as a JSON number.
func (t stamp) append(dst []byte) []byte {
	switch t.format {
	case Fraction:
		return append(strconv.AppendInt(dst, t.seconds, 10), ".000"...)
	case Exponent:
		text := strconv.FormatFloat(float64(t.seconds), 'E', -1, 64)
		return append(dst, strings.Replace(text, "E+0", "E", 1)...)
	}
	return strconv.AppendInt(dst, t.seconds, 10)
}
