package sim

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
	"github.com/tailrace-cdc/replicator/test/sometimes"
)

// World is everything that one history happens in: the table with its stream, the log, the target,
// the processes, and one clock. Only choices of its tape decide what happens.
type World struct {
	*tape
	o       Options
	mutant  Mutant
	now     change.Millis
	mapping mapping
	dec     change.Decoder

	items   []*item
	streams []*stream
	shards  []*shard
	records []*record
	writes  int

	log       *server
	target    *cells.Table
	late      []lateWrite // requests that are under way
	processes []*process
	nonces    int
	mappings  int                       // that were accepted
	copied    map[copiedItem]bool       // what copies have written
	orders    int                       // of resyncs, by owners
	replaces  bool                      // an owner replaces the first resync that ends at rest, at its very end
	above     map[string]change.Version // the highest version that was given out before each order of a resync

	lives   uint64 // how often the log was lost, or the table retired
	adopted bool   // its life is one that adopted the rows of a retired table, not a recovery
	floor   change.Version
	lead    change.Version // how far versions have run ahead of time

	small    *smallWorld // in an enumerated history
	deleting bool        // the next write deletes its item

	profile   int // how rough the history is
	stored    change.Millis
	upSince   change.Millis   // since when the log can be reached
	lies      map[string]lie  // about shards
	unread    map[string]bool // shards that are finished, and that a listing has shown without an end since
	falseEnd  bool            // two answers agreed that a stream has ended that takes records
	letters   letters         // as their stream holds them
	retriedAt change.Millis
	bulk      bulk // with workers outside the daemon
	readers   map[viewKey]view
	tainted   map[*item]bool // a gap lost changes of them, and no resync has healed it yet
	verbose   bool
	trace     []string
}

// Options say how large a history is.
type Options struct {
	items, shards, processes, steps int
	backfill, letters               bool
	workers                         bool // outside the daemon copy the table
	workersWithout                  workersMutant
	afterClosed                     bool // what workers write after their order is closed is found by what readers get
	mapping                         int  // 1 + index; 0: the history chooses
	lettersWithout                  lettersMutant
	rest                            int               // steps after which a history must have come to rest
	counted                         *sometimes.Counts // of the branches that the history takes; nil: they are not counted
}

// begin is when histories begin, in ms.
const begin change.Millis = 1_700_000_000_000

// Kinds of faults, by what they strike.
const (
	faultAppend = iota
	faultWrite
	faultLag
	faultDenial
	faultListing
)

// fault returns 0 when nothing goes wrong, or which of n-1 things does.
func (w *World) fault(kind, n int) int {
	if w.small != nil {
		return w.exploredFault(n)
	}
	return w.faultOf(kind, n, 1)
}

// faultOf is fault with so many variants of each answer: of n-1 faults, variant 0 is 0 to n-1,
// variant 1 is n to 2n-1.
func (w *World) faultOf(kind, n, variants int) int {
	rate := [...]int{16, 10, 6, 30, 12}[kind]
	if w.profile == 0 {
		rate *= 3
	}
	var weights []int
	for range variants {
		weights = append(append(weights, (n-1)*(rate-1)), ones[:n-1]...)
	}
	return w.weighted(weights...)
}

var ones = [...]int{1, 1, 1, 1, 1, 1}

// issue notes that a version was given out.
func (w *World) issue(v change.Version) { w.lead = max(w.lead, v-change.Version(w.now)) }

// newWatch returns what a process that owns no log observes it with.
func (w *World) newWatch() protocol.ClaimWatch {
	return protocol.ClaimWatch{
		TTL: claimTTL * time.Millisecond, Random: func(d time.Duration) time.Duration {
			return d * time.Duration(w.choose(3)) / 3
		},
	}
}

// owner returns the process that the log names, while it lives and is not frozen.
func (w *World) owner() *process {
	t := w.log.truth
	for _, p := range w.processes {
		if p.s != nil && p.frozen == 0 && p.epoch == t.Epoch && p.nonce == t.Nonce {
			return p
		}
	}
	return nil
}

// smallWorld is what a small world has besides.
type smallWorld struct {
	*explorer
	faults, preemptions int // that are left
	current             int // process
	events              int // that have happened to the table
	ticks               int
}

// exploredFault is fault in an enumerated history.
func (w *World) exploredFault(n int) int {
	if w.small.faults == 0 {
		return 0
	}
	v := w.small.pick(n)
	if v > 0 {
		w.small.faults--
	}
	return v
}
