package staterow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// BeginLife notes that a life of the table begins.
func (r *Row) BeginLife() { r.read = false }

// LoadForClaim reads the row before a claim. When Bigtable does not answer and the folded log
// proves itself, Confirm reads the row later. s is nil while there is no log. When the log was
// refused, logErr, the row may still tell that the table recovers from it. That is asked for as
// long as a claim may take, and then the refusal stands.
func (r *Row) LoadForClaim(ctx context.Context, s *checkpoint.State, logErr error) error {
	r.replaced = replacedBy(s, r.MappingID())
	r.agreed = make(chan struct{})
	r.whole.Store(false)
	refused := (*outcome.RefusedError)(nil)
	if !ProvesItself(s) && !errors.As(logErr, &refused) {
		return r.load(ctx)
	}
	patience, cancel := context.WithTimeout(ctx, min(rowPatience, r.o.ClaimTTL))
	defer cancel()
	err := r.load(patience)
	if refused != nil {
		return context.Cause(ctx) // without the row the refusal stands
	}
	switch outcome.OfRow(ctx, err).Action {
	case outcome.Proceed, outcome.Drained, outcome.Halt:
		return err
	}
	if s.Identity.Mapping != "" && !accepts(s, r.MappingID()) {
		return OtherMapping(r.o.Source)
	}
	r.Forget()
	r.log.Warn("the pipeline's row in Bigtable is not known yet: what the log proves is enough to read on", zap.Error(err))
	return nil
}

// Reread reads a row that another owner changed, and compares it with the log: at a first start
// another process of the pipeline may have a log of its own, and have been faster.
func (r *Row) Reread(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.agree(ctx, l, info)
}

// Forget drops what is known about the row: Confirm reads it again.
func (r *Row) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale, r.agreed = true, make(chan struct{})
	r.reserved.Store(int64(min(r.o.Lead, leastReserved)))
}

// Judge returns the outcome of a life that was refused. A refusal by a row that was read in an
// earlier life proves nothing: this process may have slept, or stood by, while a recovery changed
// it. The next life reads the row again.
func (r *Row) Judge(out outcome.Outcome) outcome.Outcome {
	if !r.read && r.stored != nil && !r.stale {
		return outcome.Outcome{Action: outcome.Again}
	}
	out.Refused = r.read // while Bigtable does not answer, the table halts and the process stays
	return out
}

// Confirm reads the row beside the work of a life, as soon as Bigtable answers; life is the life of
// the log. It returns nil when ctx ends, and otherwise the error that refuses the log.
func (r *Row) Confirm(ctx context.Context, life uint64, l *queue.Log, info source.TableInfo) error {
	for !r.Agrees() {
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
		if failure.Pause(ctx, min(logEvery, r.o.Retry)) != nil {
			return nil
		}
	}
	return nil
}

// agreeLater compares the row with a log that was read on without it.
func (r *Row) agreeLater(ctx context.Context, life uint64, l *queue.Log, info source.TableInfo) error {
	switch {
	case r.stored == nil:
		return noRow(r.o.Source, r.o.Target)
	case r.stored.Life > life:
		return refusedLog(fmt.Sprintf("the log is of life %d, the pipeline is in life %d", life, r.stored.Life))
	}
	if err := r.checkFence(ctx); err != nil {
		return err
	}
	if err := r.agree(ctx, l, info); err != nil {
		return err
	}
	return r.CheckCopy(ctx, l)
}

// AwaitSwitch sets whether a mapping is to be switched once the row is known: then Confirm ends the
// life.
func (r *Row) AwaitSwitch(awaits bool) { r.awaitsSwitch = awaits }

// errSwitch ends the work of a life that went on without the row, once the row is known.
var errSwitch = errors.New("a mapping was accepted, and is switched now")

// Agree makes the row and the log agree on their pipeline and table, or refuses. It creates the row
// at the first start.
func (r *Row) Agree(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	if err := r.agree(ctx, l, info); err != nil {
		return err
	}
	close(r.agreed)
	return nil
}

// agree is Agree without the note that they do.
func (r *Row) agree(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	want := r.Identity(l, info)
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
		return r.Edit(ctx, func(s *bigtable.State) { s.Identity.LogCreated = want.LogCreated })
	}
	return nil
}

// Identity returns what the table, its mapping and its log are now.
func (r *Row) Identity(l *queue.Log, info source.TableInfo) bigtable.Identity {
	return bigtable.Identity{
		Pipeline: r.o.Pipeline, Table: r.o.Source, TableID: info.ID, StreamARN: info.StreamARN,
		LogCreated: l.Created().UTC(), MappingHash: r.MappingID(), Target: r.targetName(),
	}
}

var errFaster = errors.New("another instance was faster")

// create stores the row of a table that is started for the first time.
func (r *Row) create(ctx context.Context, l *queue.Log, id bigtable.Identity) error {
	s, err := l.Fold(ctx)
	if err != nil {
		return err
	}
	if refused := CheckLog(nil, s, id, r.o.Start); refused != nil {
		// The row was looked for before the log was read: an instance that started in between has
		// made both.
		if _, err := r.o.Store.LoadState(ctx, r.o.Pipeline, r.o.Source); !errors.Is(err, bigtable.ErrNoState) {
			return &outcome.StaleError{Err: errors.Join(errFaster, err)}
		}
		return refused
	}
	floor, err := r.floorOfTarget(ctx)
	if err != nil {
		return err
	}
	row := &bigtable.State{Identity: id, Life: 1, Floor: floor, Lead: r.leadAbove(floor)}
	if err := r.o.Store.CreateState(ctx, row); err != nil {
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

// unfenceTime is how long after the log's fence was taken away the row may still be fenced.
const unfenceTime = 5 * time.Second

// NoteFence takes the log's fence for the work that begins. If the known row has another fence, it
// is read again beside the work, and nothing is applied before that: another process may have
// fenced the table, or unfenced it.
func (r *Row) NoteFence(f *checkpoint.Fence) {
	r.fence = f
	if r.stored == nil || r.stale {
		return
	}
	if known := r.stored.Fenced; (known == nil) != (f == nil) || f != nil && known.ID != f.ID {
		r.Forget()
	}
}

// checkFence compares the row with the log's fence. For a moment it waits for the end of an undo.
func (r *Row) checkFence(ctx context.Context) error {
	for until := time.Now().Add(unfenceTime); ; {
		refused := checkFence(r.stored, r.fence, false)
		if refused == nil {
			return nil
		}
		if time.Now().After(until) || failure.Pause(ctx, min(unfenceTime/20, r.o.Retry)) != nil {
			return refused
		}
		r.mu.Lock()
		r.stale = true
		r.mu.Unlock()
		if err := r.load(ctx); err != nil {
			return err
		}
	}
}
