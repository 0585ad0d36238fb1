package change

import (
	"strings"
	"time"
)

// StreamEnabled returns when a stream was enabled, as given by the last part of its ARN; false if
// there is no time in it.
//
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TableDescription.html
// (LatestStreamLabel)
func StreamEnabled(arn string) (Millis, bool) {
	at, err := time.Parse("2006-01-02T15:04:05.000", arn[strings.LastIndexByte(arn, '/')+1:])
	return MillisOf(at), err == nil
}

// wholeStream is how old a stream may be so that a start at its trim horizon promises all of it: it
// has lost nothing by then, of the 24 hours that records live, and an hour is left to read the
// first page.
const wholeStream Millis = 23 * 3600 * 1000

// StreamCompleteUntil returns the time up to which none of a stream's changes is missing when it
// was started at a date, from a time (0: the trim horizon), and nothing was read yet. Of a stream
// that is read from its trim horizon and was enabled less than a day before, that is the time when
// it was enabled: what was written between the two is still to be read. Of others it is the date.
func StreamCompleteUntil(arn string, from, date Millis) Millis {
	enabled, known := StreamEnabled(arn)
	if from > 0 || !known || date-enabled >= wholeStream {
		return date
	}
	return min(enabled, date)
}

// CreatedEarly is by how much the creation time of a change may lie before a time after which it
// was made: it is cut to seconds, and the clocks of the service's hosts differ.
const CreatedEarly Millis = 5_000

// CreatedLate is by how much the creation time of a change may lie behind a time before which it
// was made: the clocks of the service's hosts differ.
const CreatedLate Millis = 5_000
