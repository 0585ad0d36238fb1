package stream

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
)

// iterator is a position in a shard. Its text is opaque to clients, as the service's is.
type iterator struct {
	arn, shard string
	pos        uint64 // sequence position of the first record to read
	issued     int64  // unix ms
	reader     uint64 // the chain of iterators that began with one GetShardIterator
}

// iteratorMark stands between the ARN and the rest of an iterator's text.
const iteratorMark = "|1|"

// text returns the iterator as clients get it, with a checksum against forged ones.
func (it *iterator) text() string {
	raw := make([]byte, 0, 28+len(it.shard))
	raw = binary.BigEndian.AppendUint64(raw, it.pos)
	raw = binary.BigEndian.AppendUint64(raw, uint64(it.issued))
	raw = binary.BigEndian.AppendUint64(raw, it.reader)
	raw = append(raw, it.shard...)
	raw = binary.BigEndian.AppendUint32(raw, checksum(it.arn, raw))
	return it.arn + iteratorMark + base64.StdEncoding.EncodeToString(raw)
}

func checksum(arn string, raw []byte) uint32 {
	return uint32(hashKey(append([]byte(arn), raw...)))
}

// parseIterator reads what text wrote; ok is false for any other text.
func parseIterator(text string) (*iterator, bool) {
	arn, code, ok := strings.Cut(text, iteratorMark)
	raw, err := base64.StdEncoding.DecodeString(code)
	if !ok || err != nil || len(raw) < 28 {
		return nil, false
	}
	cut := len(raw) - 4
	if binary.BigEndian.Uint32(raw[cut:]) != checksum(arn, raw[:cut]) {
		return nil, false
	}
	return &iterator{
		arn: arn, shard: string(raw[24:cut]), pos: binary.BigEndian.Uint64(raw),
		issued: int64(binary.BigEndian.Uint64(raw[8:])), reader: binary.BigEndian.Uint64(raw[16:]),
	}, true
}

type getShardIteratorInput struct {
	StreamArn, ShardId, ShardIteratorType, SequenceNumber string
	Timestamp                                             *json.Number
}

type getShardIteratorOutput struct{ ShardIterator string }

// getShardIterator returns an iterator to the position that the request describes.
func (e *Engine) getShardIterator(in *getShardIteratorInput) (*getShardIteratorOutput, *serviceError) {
	if bad := checkIteratorInput(in); bad != nil {
		return nil, bad
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	s, bad := e.find(in.StreamArn)
	if bad != nil {
		return nil, bad
	}
	sh, bad := e.readable(s, in.ShardId)
	if bad != nil {
		return nil, bad
	}
	pos, bad := e.position(sh, in)
	if bad != nil {
		return nil, bad
	}
	it := iterator{arn: s.arn, shard: sh.id, pos: pos, issued: e.now().UnixMilli(), reader: mix(e.chains.Add(1))}
	return &getShardIteratorOutput{it.text()}, nil
}

// checkIteratorInput checks the form of a request, in the service's order.
func checkIteratorInput(in *getShardIteratorInput) *serviceError {
	if bad := checkARN("streamArn", in.StreamArn); bad != nil {
		return bad
	}
	if bad := checkShardID("shardId", in.ShardId); bad != nil {
		return bad
	}
	switch in.ShardIteratorType {
	case "TRIM_HORIZON", "LATEST":
		if in.SequenceNumber != "" {
			return invalid("SequenceNumber must not be specified for the iterator type %s", in.ShardIteratorType)
		}
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
		if in.SequenceNumber == "" {
			return invalid("SequenceNumber is required for the iterator type %s", in.ShardIteratorType)
		}
	case "AT_TIMESTAMP":
		if in.Timestamp == nil {
			return invalid("Timestamp is required for the iterator type AT_TIMESTAMP")
		}
	default:
		return constraint(in.ShardIteratorType, "shardIteratorType",
			"satisfy enum value set: [AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER, AT_TIMESTAMP, TRIM_HORIZON, LATEST]")
	}
	return nil
}

// readable returns a shard of a stream with its expired records trimmed, or the error for a shard
// that is gone.
func (e *Engine) readable(s *stream, id string) (*shard, *serviceError) {
	sh := s.byID[id]
	if sh == nil || sh.closed && sh.closedAt.Before(e.horizon().Add(-e.o.Linger)) {
		return nil, notFound("Shard does not exist")
	}
	sh.trim(e.horizon())
	return sh, nil
}

// position returns the sequence position at which an iterator starts.
func (e *Engine) position(sh *shard, in *getShardIteratorInput) (uint64, *serviceError) {
	switch in.ShardIteratorType {
	case "TRIM_HORIZON":
		return sh.oldest(), nil
	case "LATEST":
		if slack := e.faults.latestSlack(); slack > 0 {
			return sh.since(e.now().Add(-slack).Unix()), nil
		}
		return sh.tip(), nil
	case "AT_TIMESTAMP":
		return e.atTimestamp(sh, in.Timestamp)
	}
	return e.atSequence(sh, in)
}

// atTimestamp returns the position of the first record that is not older than a time. The time has
// milliseconds, records have whole seconds.
func (e *Engine) atTimestamp(sh *shard, stamp *json.Number) (uint64, *serviceError) {
	seconds, err := stamp.Float64()
	if err != nil {
		return 0, refusal("SerializationException", "Timestamp is not a number")
	}
	if seconds > float64(e.now().UnixMilli())/1000 {
		return 0, invalid("The timestamp value %v is in the future", stamp)
	}
	return sh.since(int64(math.Ceil(seconds))), nil
}

// atSequence returns the position at or after a sequence number, which no record needs to have.
func (e *Engine) atSequence(sh *shard, in *getShardIteratorInput) (uint64, *serviceError) {
	pos, ok := e.o.Numbers.Parse(in.SequenceNumber)
	if !ok {
		return 0, invalid("Invalid SequenceNumber %s", in.SequenceNumber)
	}
	sh.mu.RLock()
	first, trimmed, closed, end := sh.first, sh.trimmed, sh.closed, sh.end
	sh.mu.RUnlock()
	if pos < first || closed && pos > end || pos > e.last.Load() {
		return 0, invalid("Invalid SequenceNumber: %s is not in the range of shard %s", in.SequenceNumber, sh.id)
	}
	if in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
		pos++
	}
	if pos <= trimmed && pos > first {
		return 0, trimmedAccess()
	}
	if pos <= first { // a shard's starting number stands for all of its records
		pos = max(first, trimmed+1)
	}
	return pos, nil
}
