package pipeline

import (
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/ingest"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
)

// Periods are the times of the protocol. Tests shorten them.
type Periods struct {
	ClaimTTL time.Duration // a log that has not moved for so long may be taken over
	Beat     time.Duration // at most TTL/3
	Listing  time.Duration // between complete listings of a stream
	Describe time.Duration // between looks at the table for a new stream ARN
	Proof    time.Duration // between two listings for proofs that copies wait for
	Mark     time.Duration // between mark entries
	Trim     time.Duration
	Retry    time.Duration // of what halted
	Recheck  time.Duration // before what a resync found not equal is looked at again; doubles
	Settle   time.Duration // before an item that changed meanwhile is compared again; doubles
	Report   time.Duration // between log lines of a copy; before an export that cannot be read is replaced, doubles
	Verify   time.Duration // between the begins of two passes of the continuous comparison, at least; default a minute
	Verified time.Duration // before a difference that it knows is looked at again; default 5 minutes
	Shutdown time.Duration // to drain after the first signal
	Late     time.Duration // how far behind a table may be before it must be seen to move, or is not ready
	// Lead is how far versions may run ahead of creation times before Bigtable must be asked for
	// more. Only a burst of more than a thousand changes a second in one shard gets there.
	Lead time.Duration
	// Park is how long a call of Bigtable that has waited for an hour is observed before its change
	// is parked; default a minute.
	Park time.Duration
	// Order is the time between looks at the order of workers and their marks. Closing is how long
	// they may write after it is closed: only tests whose workers end sooner set it.
	Order, Closing time.Duration
	// Patience is how long the service must go on with an answer about a shard that only the same
	// answer confirms.
	Patience time.Duration
}

// WithDefaults returns the periods with defaults in place of zeros.
func (p Periods) WithDefaults() Periods {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.ClaimTTL, 15*time.Second)
	def(&p.Beat, p.ClaimTTL/3)
	def(&p.Listing, 5*time.Minute)
	def(&p.Describe, 30*time.Second)
	def(&p.Proof, 5*time.Second)
	def(&p.Mark, time.Second)
	def(&p.Trim, 10*time.Second)
	def(&p.Retry, 60*time.Second)
	def(&p.Report, time.Minute)
	def(&p.Shutdown, 25*time.Second)
	def(&p.Late, status.DefaultLate)
	def(&p.Lead, 10*time.Minute)
	def(&p.Patience, protocol.Patience)
	return p
}

// Ingest returns the periods that reading and writing need.
func (p Periods) Ingest() ingest.Periods {
	return ingest.Periods{
		Beat: p.Beat, Mark: p.Mark, Trim: p.Trim, Listing: p.Listing, Describe: p.Describe, Proof: p.Proof,
		Shutdown: p.Shutdown, Lead: p.Lead, Patience: p.Patience,
	}
}
