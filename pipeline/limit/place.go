package limit

import "time"

// Place is where the changes of a table wait at one look.
type Place uint8

const (
	Nowhere Place = iota
	// AtCall is the place of changes that wait until Bigtable has answered earlier calls: as many as
	// the bound allows are in flight, each lane has one, or the changes of few items wait for each
	// other.
	AtCall
	// AtRetry is the place of changes that wait until Bigtable is tried again as a whole.
	AtRetry
	// AtMemory is the place of changes that wait for a part of memory.total: as pages, as entries of
	// the log, or for a call.
	AtMemory
	// AtLog is the place of changes that wait until NATS has stored or sent an entry, or until the
	// log has room.
	AtLog
	// AtProcessor is the place of changes that wait for a goroutine that packs or unpacks others.
	AtProcessor

	places
)

// Late is how long a change may wait at one place while the table counts as keeping up. Pages come
// several times a second, and each is a burst for what follows. With a tenth of it, bursts would
// count; with ten times as much, a table could be seconds behind while nothing is said to limit it.
const Late = time.Second
