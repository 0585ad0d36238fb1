package protocol

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

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

// StreamStep is what follows for a log from an answer that describes the table.
type StreamStep uint8

// The steps.
const (
	StreamStays   StreamStep = iota // the log reads the table's stream, as far as is known
	StreamRetires                   // the table has another stream: whether the old one has ended is to be confirmed
	StreamDrains                    // what the old stream holds is still read or applied
	StreamFollows                   // the next stream begins, behind a gap: NextStart
)

// NextStream decides what follows from what the description of the table shows. disabled is set
// once the log holds that its stream takes no more records, and applied once that is read to its end
// and every sink has passed it.
//
// Rule 5: changes of the next stream are applied only behind all changes of the old one.
func NextStream(shows StreamShown, disabled, applied bool) StreamStep {
	switch {
	case shows != StreamReplaced:
		return StreamStays
	case !disabled:
		return StreamRetires
	case !applied:
		return StreamDrains
	}
	return StreamFollows
}

// NextStart returns what begins the next stream inside a life: the gap between the old stream and
// the new one, which was listed at a time, and the start of the new one from its trim horizon.
//
// Rule 5: its versions are above all earlier ones, which highest is.
func NextStart(old, next string, readTo, listed change.Millis, highest change.Version) (
	*checkpoint.Gap, *checkpoint.Start,
) {
	gap := &checkpoint.Gap{
		Feed: change.Feed{Stream: old}, Since: readTo, Until: listed, Found: listed, Ends: true,
		Reason: "the stream was disabled and enabled again; what was written in between is in no stream",
	}
	return gap, &checkpoint.Start{Stream: next, Date: listed, Floor: highest}
}
