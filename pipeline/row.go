package pipeline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

const (
	rowPatience   = 5 * time.Second  // in which Bigtable should answer at a start
	rowRetry      = 2 * time.Second  // between two tries to load the row
	logEvery      = 10 * time.Second // between two messages that Bigtable is waited for
	leastReserved = 10 * time.Minute // the least reservation that any row of a pipeline has
)

// stateRow is the pipeline's row of one table in Bigtable: the identity of what its log and its target hold, and how
// far versions may run ahead of time.
//
// A table that was read before need not wait for the row to be read on: its log holds pipeline, table and mapping, the
// position and clock of every shard. What only the row decides waits for it: whether this log is the one that the row
// names (until then nothing is applied to Bigtable), and how far versions may run ahead (until then, as far as every
// row allows; shards that would exceed it pause).
//
// The goroutine of the table's life owns it between lives. During the work of a life confirm and the readers use it: mu
// covers what they share.
type stateRow struct {
	*env
	program       *transform.Program // compiled for the table's key before anything else is called
	targetClaimed bool               // the target belongs to the pipeline
	mappingStored bool               // the mapping's text is stored beside its hash
	replaced      string             // hash of a mapping that the log accepts this one in place of
	awaitsSwitch  bool               // a mapping is to be switched once the row is known
	read          bool               // Bigtable has answered in this life

	mu       sync.Mutex      // covers stored and stale
	stored   *bigtable.State // as it was last read or written; nil: not known, or there is none
	stale    bool            // the row is not known, or another owner changed it: it must be read again
	agreed   chan struct{}   // closed when the row agrees with the log; a new one for each claim
	reserved atomic.Int64    // of the row, readable while another goroutine holds the mutex and waits for Bigtable
}

// loadForClaim reads the row before a claim. When Bigtable does not answer and the folded log proves itself, confirm
// reads the row later. s is nil while there is no log. When the log was refused, logErr, the row may still tell that
// the table recovers from it. That is asked for as long as a claim may take, and then the refusal stands.
func (r *stateRow) loadForClaim(ctx context.Context, s *checkpoint.State, logErr error) error {
	r.agreed = make(chan struct{})
	refused := (*RefusedError)(nil)
	if !provesItself(s) && !errors.As(logErr, &refused) {
		return r.load(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, min(rowPatience, r.o.Periods.ClaimTTL))
	defer cancel()
	err := r.load(patience)
	if refused != nil {
		return context.Cause(ctx) // without the row the refusal stands
	}
	switch outcome.OfRow(ctx, err).Action {
	case outcome.Proceed, outcome.Drained, outcome.Halt:
		return err
	}
	if s.Identity.Mapping != "" && !accepts(s, mappingID(r.program)) {
		return otherMapping(r.Source)
	}
	r.forget()
	r.log.Warn("the pipeline's row in Bigtable is not known yet: what the log proves is enough to read on", zap.Error(err))
	return nil
}

// reread reads a row that another owner changed, and compares it with the log: at a first start another process of the
// pipeline may have a log of its own, and have been faster.
func (r *stateRow) reread(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.agree(ctx, l, info)
}

// forget drops what is known about the row: confirm reads it anew.
func (r *stateRow) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale, r.agreed = true, make(chan struct{})
	r.reserved.Store(int64(min(r.o.Periods.Lead, leastReserved)))
}

// agrees reports whether the row has been read, or found missing, and agrees with the log.
func (r *stateRow) agrees() bool {
	select {
	case <-r.agreed:
		return true
	default:
		return false
	}
}

// confirm reads the row beside the work of a life, as soon as Bigtable answers; life is that of the log. It returns nil
// when ctx ends, and otherwise the error that refuses the log.
func (r *stateRow) confirm(ctx context.Context, life uint64, l *queue.Log, info source.TableInfo) error {
	for !r.agrees() {
		err := r.load(ctx)
		if err == nil {
			err = r.agreeLater(ctx, life, l, info)
		}
		switch outcome.OfRow(ctx, err).Action {
		case outcome.Drained:
			return nil
		case outcome.Proceed:
			if ctx.Err() != nil {
				return nil
			}
			r.log.Info("the pipeline's row in Bigtable agrees with the log")
			close(r.agreed)
			if r.awaitsSwitch {
				return &outcome.StaleError{Err: errSwitch}
			}
			return nil
		case outcome.Again, outcome.Halt:
			return err
		}
		r.log.Warn("read the pipeline's row: will be retried", zap.Error(err))
		if failure.Pause(ctx, min(logEvery, r.o.Periods.Retry)) != nil {
			return nil
		}
	}
	return nil
}

// agreeLater compares the row with a log that was read on without it.
func (r *stateRow) agreeLater(ctx context.Context, life uint64, l *queue.Log, info source.TableInfo) error {
	switch {
	case r.stored == nil:
		return refusedLog(rowMissing)
	case r.stored.Life > life:
		return refusedLog(fmt.Sprintf("the log is of life %d, the pipeline is in life %d", life, r.stored.Life))
	}
	if err := r.agree(ctx, l, info); err != nil || !r.o.Upgrade {
		return err
	}
	return r.upgrade(ctx)
}

// load reads the row once per process: later lives must start without Bigtable, because an outage there must not stop
// reading. It blocks while Bigtable does not answer.
func (r *stateRow) load(ctx context.Context) error {
	if r.stored != nil && !r.stale {
		return nil
	}
	row, err := r.loadRetrying(ctx)
	none := errors.Is(err, bigtable.ErrNoState)
	if err == nil || none {
		r.read = true
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

// loadRetrying loads the row, again and again while Bigtable does not answer. When ctx ends first, the error contains
// what Bigtable last answered.
func (r *stateRow) loadRetrying(ctx context.Context) (*bigtable.State, error) {
	var (
		last   error
		logged time.Time
	)
	for {
		row, err := r.bigtable.LoadState(ctx, r.o.Name, r.Source)
		switch {
		case last != nil && err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case bigtable.Classify(err) == failure.Transient:
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
func (r *stateRow) set(row *bigtable.State) {
	r.stored = row
	r.reserved.Store(int64(row.Lead))
}

// agree makes the row and the log agree on whose they are, or refuses. It creates the row at the first start.
func (r *stateRow) agree(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	want := r.identity(l, info)
	if r.stored != nil {
		check := want
		if r.replaced != "" && r.replaced == r.stored.Identity.MappingHash {
			check.MappingHash = r.stored.Identity.MappingHash
		}
		if refused := CheckIdentity(r.stored, check); refused != nil {
			return refused
		}
	}
	if err := r.storeMapping(ctx); err != nil {
		return err
	}
	if r.stored == nil {
		return r.create(ctx, l, want)
	}
	if !r.stored.Identity.LogCreated.Equal(want.LogCreated) {
		return r.edit(ctx, func(s *bigtable.State) { s.Identity.LogCreated = want.LogCreated })
	}
	return nil
}

// identity returns what the table, its mapping and its log are now.
func (r *stateRow) identity(l *queue.Log, info source.TableInfo) bigtable.Identity {
	return bigtable.Identity{
		Pipeline: r.o.Name, Table: r.Source, TableID: info.ID, StreamARN: info.StreamARN,
		LogCreated: l.Created().UTC(), MappingHash: mappingID(r.program), Target: r.bigtable.TargetName(r.Target),
	}
}

var errFaster = errors.New("another instance was faster")

// create stores the row of a table that is started for the first time.
func (r *stateRow) create(ctx context.Context, l *queue.Log, id bigtable.Identity) error {
	s, err := l.Fold(ctx)
	if err != nil {
		return err
	}
	if refused := CheckLog(nil, s, id, r.o.Start); refused != nil {
		// The row was looked for before the log was read: an instance that started in between has made both.
		if _, err := r.bigtable.LoadState(ctx, r.o.Name, r.Source); !errors.Is(err, bigtable.ErrNoState) {
			return &outcome.StaleError{Err: errors.Join(errFaster, err)}
		}
		return refused
	}
	floor, err := r.floorOfTarget(ctx)
	if err != nil {
		return err
	}
	row := &bigtable.State{Identity: id, Life: 1, Floor: floor, Lead: r.leadAbove(floor)}
	if err := r.bigtable.CreateState(ctx, row); err != nil {
		if errors.Is(err, bigtable.ErrStateExists) {
			return &outcome.StaleError{Err: fmt.Errorf("%w: %w", errFaster, err)} // the next life finds its row
		}
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(row)
	return nil
}

// edit changes the stored row, unless another owner has changed it.
func (r *stateRow) edit(ctx context.Context, change func(*bigtable.State)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.stored
	change(&next)
	if err := r.bigtable.CompareAndSet(ctx, r.stored, &next); err != nil {
		return r.noteChanged(err)
	}
	r.set(&next)
	return nil
}

// noteChanged returns the error of an edit; the row is read again if another owner has changed it. The mutex is held.
func (r *stateRow) noteChanged(err error) error {
	if !errors.Is(err, bigtable.ErrStateChanged) {
		return err
	}
	r.stale = true
	return &outcome.StaleError{Err: fmt.Errorf("another owner changed the pipeline's row: %w", err)}
}

// cluster returns the cluster that the row names; "" for none. The row has been read.
func (r *stateRow) cluster() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored.Cluster
}

// issue notes that the log holds changes from now on: after that, an empty log is a lost one.
func (r *stateRow) issue(ctx context.Context) error {
	// The row of a log that is read on without it says so already.
	if !r.agrees() || r.stored.Issued && !r.stored.Recovering {
		return nil
	}
	return r.edit(ctx, func(s *bigtable.State) { s.Issued, s.Recovering, s.OldLog = true, false, time.Time{} })
}

// upgrade raises the row to the newest format, unless it is not known yet: then confirm does it. Rule 11: builds that
// do not know the format refuse the row from then on.
func (r *stateRow) upgrade(ctx context.Context) error {
	if r.stored == nil || r.stale || r.stored.Format >= bigtable.StateFormat {
		return nil
	}
	return r.edit(ctx, func(s *bigtable.State) {
		s.Format, s.Identity.Target = bigtable.StateFormat, r.bigtable.TargetName(r.Target)
	})
}

// storeMapping stores the mapping's text beside its hash, once per process: the program that wrote the rows can be
// looked up later, also by a pipeline whose mapping has changed.
func (r *stateRow) storeMapping(ctx context.Context) error {
	if r.mappingStored {
		return nil
	}
	text, err := r.program.Keep()
	if err != nil {
		return err
	}
	if err := r.bigtable.StoreMapping(ctx, r.o.Name, r.Source, mappingID(r.program), text); err != nil {
		return err
	}
	r.mappingStored = true
	return nil
}

// mappingID identifies a compiled mapping, by which the rows in a target were written.
func mappingID(p *transform.Program) string {
	h := p.Hash()
	return hex.EncodeToString(h[:])
}

// await blocks until the row agrees with the log.
func (r *stateRow) await(ctx context.Context) error {
	select {
	case <-r.agreed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reserved returns how far versions may run ahead of time. It never blocks: the reading of all shards asks it, also
// while Bigtable is away.
func (r *stateRow) Reserved() time.Duration { return time.Duration(r.reserved.Load()) }

// Reserve raises the reservation to need and Periods.Lead beyond it. It blocks while Bigtable is away. The room beyond
// need does not grow with need, because each new life's floor lies above the reservation of the life before.
func (r *stateRow) Reserve(ctx context.Context, need time.Duration) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stored.Lead >= need+r.o.Periods.Lead/2 {
		return nil
	}
	row, err := r.bigtable.Reserve(ctx, r.stored, need+r.o.Periods.Lead)
	if err != nil {
		return r.noteChanged(err)
	}
	r.set(row)
	return nil
}

// Adopt names the table's new stream in the row. It blocks while Bigtable is away.
func (r *stateRow) Adopt(ctx context.Context, arn string) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	return r.edit(ctx, func(s *bigtable.State) { s.Identity.StreamARN = arn })
}
