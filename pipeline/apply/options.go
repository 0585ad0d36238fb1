package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/pipeline/tracing"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Options are what the sinks need to know about their table for one life.
type Options struct {
	*life.Life
	Table  Table
	Retry  time.Duration   // between two tries of a halted sink
	Agreed <-chan struct{} // closed when the row in Bigtable agrees with the log; nothing is written there before
	Stats  *Stats
	// Retention returns the time until unread records may be lost; false while it is unknown.
	Retention func() (time.Duration, bool)
	// Park is how long a call of Bigtable is observed before its change is parked; 0: a minute.
	Park  time.Duration
	epoch uint64                 // of the claim under which the sinks apply the log
	lives map[string]change.Life // of streams with records that are older than the life
	// Gate holds back the sink of Bigtable while a setting makes writes unsafe; nil: nothing does.
	Gate *settings.Gate
	held bool // the gate has made the halt of Bigtable that is in the log
	// Archive is where deletions go; nil: the table has none.
	Archive Archive
	Tracer  *tracing.Tracer // of frames; nil: they are not traced
}

// Table is what the sinks write.
type Table struct {
	Halts   bool // a refused change halts the sink; otherwise it becomes a dead letter
	Classes Classes
	Program *transform.Program
}

// canonical returns the canonical form of a key.
func (t *Table) canonical(dec *change.Decoder, keys []byte) ([]byte, error) {
	img, err := dec.Image(keys)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	key, err := t.Program.Table().Schema.Canonical(nil, img)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return key, nil
}

// Archive keeps deletions until they are archived.
type Archive interface {
	// Store makes records durable in their order, and drops those that are there already: see
	// archiving.Archiver.
	Store(ctx context.Context, records []ledger.Record) (stored int, err error)
	// Publish publishes an event again: see archiving.Archiver.
	Publish(ctx context.Context, m archive.Message) error
}

// Shared is what the sinks of all tables of a process share: the services, memory, and workers.
type Shared struct {
	bigtable *bigtable.Client
	now      func() change.Millis
	memory   *ChangeMemory
	lanes    int // of a table
	workers  workers

	clock func() time.Time // of this machine; tests move it

	// BeforeWalk, when set, is called before every walk over the dead letters of a table. Tests
	// make it slow.
	BeforeWalk func(context.Context)
}

// Limits bound what the sinks of a process use.
type Limits struct {
	Memory int64 // bytes of changes between the log and the sinks, all tables together
	Lanes  int   // of a table: changes of an item go through the same
	Calls  int   // in work at once, all tables together; one with a large item counts as several
}

// NewShared returns what the sinks of several tables share. now is the source's clock.
func NewShared(l Limits, client *bigtable.Client, now func() change.Millis) *Shared {
	return &Shared{
		bigtable: client, now: now, clock: time.Now, memory: NewChangeMemory(l.Memory), lanes: l.Lanes,
		workers: workers{half: max(l.Calls/2, 1)},
	}
}
