package protocol

import "time"

// StreamCall is the kind of call that an answer about a stream came from.
type StreamCall uint8

// The calls.
const (
	DescribesStream StreamCall = iota + 1 // DescribeStream, of the stream itself
	DescribesTable                        // DescribeTable, of its table
)

// StreamShown is what an answer shows about a stream.
type StreamShown uint8

// What an answer may show.
const (
	StreamUnclear  StreamShown = iota // nothing: there was no answer, or the stream is being switched on or off
	StreamTakes                       // it takes records
	StreamOff                         // it takes no more records
	StreamReplaced                    // the table has another stream
	StreamUnknown                     // the service does not know the stream, or its table
)

// StreamAnswer is an answer of the service about a stream. Times are compared by the monotonic
// clock.
type StreamAnswer struct {
	By              StreamCall
	Shows           StreamShown
	Asked, Answered time.Time
}

// StreamEnded reports whether two answers prove that a stream takes no more records, so that its
// open shards are its last ones and another stream may follow.
//
// Rule 13: the second answer was requested after the first had come, and by another call. "Not
// found" alone proves nothing, however often it is said: one of the two describes a stream that is
// off, or was replaced.
func StreamEnded(first, second StreamAnswer) bool {
	ends := func(a StreamAnswer) bool {
		return a.Shows == StreamOff || a.Shows == StreamReplaced || a.Shows == StreamUnknown
	}
	return first.By != second.By && first.By != 0 && second.By != 0 && !second.Asked.Before(first.Answered) &&
		ends(first) && ends(second) && (first.Shows != StreamUnknown || second.Shows != StreamUnknown)
}
