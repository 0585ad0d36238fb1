package staterow

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	rowPatience   = 5 * time.Second  // in which Bigtable should answer at a start
	rowRetry      = 2 * time.Second  // between two tries to load the row
	logEvery      = 10 * time.Second // between two messages that Bigtable is waited for
	leastReserved = 10 * time.Minute // the least reservation that any row of a pipeline has
)

// Options are what a row needs to know about its table and its pipeline.
type Options struct {
	Pipeline string
	Source   string // table
	Target   string // "": none, what is deleted from the table is archived and that is all
	Start    Start
	Shares   bool // another table of the pipeline has the same target
	Sole     bool // no other table may have the target, of whichever replicator of the pipeline
	Adopt    bool // a target of another pipeline may be taken over

	ClaimTTL time.Duration
	Lead     time.Duration // how far versions may run ahead of creation times before the reservation is raised
	Retry    time.Duration // at most, between two reads of a row that is not known

	Store  Store                // of the row
	Client *bigtable.Client     // of the target
	Now    func() change.Millis // the service's clock
	Logger *zap.Logger
}

// Row is the pipeline's row of one table, in Bigtable or, for a table without a target, in the
// archive's bucket: the identity of what its log and its target hold, and how far versions may run
// ahead of time.
//
// A table that was read before need not wait for the row to be read on: its log holds pipeline,
// table and mapping, the position and clock of every shard. What only the row decides waits for it:
// whether this log is the one that the row names (until then nothing is applied to Bigtable), and
// how far versions may run ahead (until then, as far as every row allows; shards that would exceed
// it pause).
//
// The goroutine of the table's life owns it between lives. During the work of a life Confirm and
// the readers use it: mu covers what they share.
type Row struct {
	Program *transform.Program // compiled for the table's key; it is set before anything else is called

	o             Options
	log           *zap.Logger
	targetClaimed bool              // the target belongs to the pipeline
	mappingStored bool              // the mapping's text is stored beside its hash
	replaced      string            // hash of a mapping that the log accepts this one in place of
	awaitsSwitch  bool              // a mapping is to be switched once the row is known
	read          bool              // Bigtable has answered in this life
	fence         *checkpoint.Fence // that the log has

	noted atomic.Pointer[protocol.LogNote] // the newest note that was read or stored; nil: none
	whole atomic.Bool                      // the log of the current claim is no older copy

	mu       sync.Mutex      // covers stored and stale
	stored   *bigtable.State // as it was last read or written; nil: not known, or there is none
	stale    bool            // the row is not known, or another owner changed it: it must be read again
	agreed   chan struct{}   // closed when the row agrees with the log; a new one for each claim
	reserved atomic.Int64    // of the row, readable while another goroutine holds the mutex and waits for Bigtable
}

// New returns a row that is not known yet.
func New(o Options) *Row { return &Row{o: o, log: o.Logger} }

// Known returns the row as it was last read or written; nil while it is not known, and where there
// is none. The goroutine of the table's life may call it between lives.
func (r *Row) Known() *bigtable.State { return r.stored }

// Stale reports whether the row must be read again before it decides anything.
func (r *Row) Stale() bool { return r.stale }

// Recovers reports whether a recovery has begun according to the row.
func (r *Row) Recovers() bool { return !r.stale && r.stored != nil && r.stored.Recovering }

// Agreed is closed when the row agrees with the log of the current claim.
func (r *Row) Agreed() <-chan struct{} { return r.agreed }

// Agrees reports whether the row has been read, or found missing, and agrees with the log.
func (r *Row) Agrees() bool {
	select {
	case <-r.agreed:
		return true
	default:
		return false
	}
}

// Await blocks until the row agrees with the log.
func (r *Row) Await(ctx context.Context) error {
	select {
	case <-r.agreed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Switch replaces the program by the program of an accepted mapping, with its text stored.
func (r *Row) Switch(p *transform.Program) { r.Program, r.mappingStored = p, true }

// load reads the row once per process: later lives must start without Bigtable, because an outage
// there must not stop reading. It blocks while Bigtable does not answer.
func (r *Row) load(ctx context.Context) error {
	if r.stored != nil && !r.stale {
		return nil
	}
	row, err := r.loadRetrying(ctx)
	none := errors.Is(err, bigtable.ErrNoState)
	if err == nil || none {
		r.read = true
		if none {
			if err := r.checkFirst(ctx); err != nil {
				return err
			}
		}
		if err := r.claimTarget(ctx); err != nil {
			return err
		}
	}
	switch {
	case none:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stored, r.stale = nil, false
		return nil
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(row)
	r.stale = false
	return nil
}

// loadRetrying loads the row, again and again while Bigtable does not answer. When ctx ends first,
// the error contains what Bigtable last answered.
func (r *Row) loadRetrying(ctx context.Context) (*bigtable.State, error) {
	var (
		last   error
		logged time.Time
	)
	for {
		row, err := r.o.Store.LoadState(ctx, r.o.Pipeline, r.o.Source)
		var foreign *OtherPipelineError
		switch {
		case errors.As(err, &foreign):
			return nil, &outcome.RefusedError{What: foreign.Error(), Hint: foreign.Hint()}
		case last != nil && err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case isTransient(err):
			last = err
		default:
			return row, err
		}
		if time.Since(logged) > logEvery {
			r.log.Warn("load the pipeline's row: will be retried", zap.Error(err))
			logged = time.Now()
		}
		if cause := failure.Pause(ctx, rowRetry); cause != nil {
			return nil, fmt.Errorf("%w: %w", cause, err)
		}
	}
}

// set notes the row as it is stored. The mutex is held.
func (r *Row) set(row *bigtable.State) {
	r.stored = row
	r.reserved.Store(int64(row.Lead))
}

// Edit changes the stored row, unless another owner has changed it.
func (r *Row) Edit(ctx context.Context, change func(*bigtable.State)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.stored
	change(&next)
	if err := r.o.Store.CompareAndSet(ctx, r.stored, &next); err != nil {
		return r.noteChanged(err)
	}
	r.set(&next)
	return nil
}

// noteChanged returns the error of an edit; the row is read again if another owner has changed it.
// The mutex is held.
func (r *Row) noteChanged(err error) error {
	if !errors.Is(err, bigtable.ErrStateChanged) {
		return err
	}
	r.stale = true
	return &outcome.StaleError{Err: fmt.Errorf("another owner changed the pipeline's row: %w", err)}
}

// Cluster returns the cluster that the row names; "" for none. The row has been read.
func (r *Row) Cluster() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored.Cluster
}

// Issue notes that the log holds changes from now on: after that, an empty log is a lost one.
func (r *Row) Issue(ctx context.Context) error {
	// The row of a log that is read on without it has Issued set already.
	if !r.Agrees() || r.stored.Issued && !r.stored.Recovering {
		return nil
	}
	return r.Edit(ctx, func(s *bigtable.State) { s.Issued, s.Recovering, s.OldLog = true, false, time.Time{} })
}

// NoteMapping brings the row up to the mapping that the log has.
func (r *Row) NoteMapping(ctx context.Context) error {
	want := r.MappingID()
	if r.stored.Identity.MappingHash == want {
		return nil
	}
	return r.Edit(ctx, func(row *bigtable.State) { row.Identity.MappingHash = want })
}

// storeMapping stores the mapping's text beside its hash, once per process. So the program that
// wrote the rows can be looked up later, also after the mapping of the pipeline has changed.
func (r *Row) storeMapping(ctx context.Context) error {
	if r.mappingStored || r.o.Target == "" {
		return nil
	}
	text, err := r.Program.Keep()
	if err != nil {
		return err
	}
	if err := r.o.Client.StoreMapping(ctx, r.o.Pipeline, r.o.Source, MappingID(r.Program), text); err != nil {
		return err
	}
	r.mappingStored = true
	return nil
}

// MappingID identifies the mapping of the table; "" for a table without a target: its mapping
// writes nothing.
func (r *Row) MappingID() string {
	if r.o.Target == "" {
		return ""
	}
	return MappingID(r.Program)
}

// targetName returns the full name of the target; "" without one.
func (r *Row) targetName() string {
	if r.o.Target == "" {
		return ""
	}
	return r.o.Client.TargetName(r.o.Target)
}

// MappingID identifies a compiled mapping, by which the rows in a target were written.
func MappingID(p *transform.Program) string {
	h := p.Hash()
	return hex.EncodeToString(h[:])
}

// Reserved returns how far versions may run ahead of time. It never blocks: the reading of all
// shards calls it, also while Bigtable is away.
func (r *Row) Reserved() time.Duration { return time.Duration(r.reserved.Load()) }

// Reserve raises the reservation to need and Options.Lead beyond it. It blocks while Bigtable is
// away. The room beyond need does not grow with need, because each new life's floor lies above the
// reservation of the life before.
func (r *Row) Reserve(ctx context.Context, need time.Duration) error {
	if err := r.Await(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stored.Lead >= need+r.o.Lead/2 {
		return nil
	}
	row, err := r.o.Store.Reserve(ctx, r.stored, need+r.o.Lead)
	if err != nil {
		return r.noteChanged(err)
	}
	r.set(row)
	return nil
}

// Adopt names the table's new stream in the row. It blocks while Bigtable is away.
func (r *Row) Adopt(ctx context.Context, arn string) error {
	if err := r.Await(ctx); err != nil {
		return err
	}
	return r.Edit(ctx, func(s *bigtable.State) { s.Identity.StreamARN = arn })
}
