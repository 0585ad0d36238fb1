package pipeline

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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

// claim takes the table's log over. The steps of a first start stand in this order, each may be repeated, and
// a crash between any two is taken up by the next start:
//
//	target claimed → log created → mapping kept → row {identity, issued: false} → claim → start entry → issued: true → first frame
func (t *table) claim(ctx context.Context) (*queue.Writer, error) {
	info, err := t.describe(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := t.stored(ctx)
	if err != nil {
		return nil, err
	}
	if stored != nil {
		if refused := checkStored(stored, t.identity(t.logOf(), info), t.p.o.Start); refused != nil {
			return nil, refused
		}
	}
	if err := t.knowRow(ctx, stored); err != nil {
		return nil, err
	}
	if !t.stale {
		if err := t.agreeAtStart(ctx, info); err != nil {
			return nil, err
		}
	}
	t.started.Store(true)
	w, err := t.awaitTurn(ctx, t.logOf())
	if err != nil {
		return nil, fmt.Errorf("claim log: %w", err)
	}
	if refused := t.refuse(w.State(), t.identity(t.logOf(), info)); refused != nil {
		return nil, errors.Join(refused, w.Release(ctx))
	}
	return w, nil
}

// agreeAtStart opens the log, makes it at the first start, and holds it against the row.
func (t *table) agreeAtStart(ctx context.Context, info source.TableInfo) error {
	l, err := t.openLog(ctx)
	if err == nil {
		err = t.agree(ctx, l, info)
	}
	if err == nil {
		close(t.confirmed)
	}
	return err
}

func (t *table) claimOptions() queue.ClaimOptions {
	o := queue.ClaimOptions{
		Owner: t.p.o.Owner, TTL: t.p.o.Periods.ClaimTTL,
		Identity: &checkpoint.Identity{Pipeline: t.p.o.Name, Table: t.Source, TableID: t.Info.ID, Mapping: t.mapping()},
	}
	if t.row != nil {
		o.Life = t.row.Life // without the row the log's own
	}
	if t.p.queue.Embedded() {
		o.TTL = time.Millisecond // we hold the store's lock: whoever owned the log before us is dead
	}
	return o
}

// describe asks what the table is now, and compiles the mapping for its key at the first time.
func (t *table) describe(ctx context.Context) (source.TableInfo, error) {
	info, err := t.p.src.Table(ctx, t.Source)
	if err != nil {
		return info, err
	}
	if info.StreamARN == "" {
		return info, fmt.Errorf("table %s has no stream: enable one with view type NEW_AND_OLD_IMAGES", t.Source)
	}
	if t.Program == nil {
		if t.Program, err = t.Compile(info); err != nil {
			return info, err
		}
		t.p.declare(t.Target, t.Source, t.Program.Families())
	}
	t.Info = info
	return info, nil
}

// loadRow reads the table's row in Bigtable once per process: later lives must start without Bigtable, for
// an outage there must not stop reading.
func (t *table) loadRow(ctx context.Context) error {
	if t.row != nil && !t.stale {
		return nil
	}
	row, err := t.p.sink.LoadState(ctx, t.p.o.Name, t.Source)
	for said := (time.Time{}); bigtable.Classify(err) == failure.Transient; row, err = t.p.sink.LoadState(ctx, t.p.o.Name, t.Source) {
		if time.Since(said) > sayEvery {
			t.log.Warn("load the pipeline's row: will be retried", zap.Error(err))
			said = time.Now()
		}
		if !sleep(ctx, reserveRetry) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
	if err == nil || errors.Is(err, bigtable.ErrNoState) {
		if err := t.claimTarget(ctx); err != nil {
			return err
		}
	}
	if errors.Is(err, bigtable.ErrNoState) {
		t.rowMu.Lock()
		defer t.rowMu.Unlock()
		t.row, t.stale = nil, false
		return nil
	}
	if err != nil {
		if bigtable.Classify(err) == failure.Missing {
			err = fmt.Errorf("%w (make the tables: replicator schema --apply)", err)
		}
		return err
	}
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	t.hasRow(row)
	t.stale = false
	return nil
}

// sayEvery is how often the log says that a service is waited for.
const sayEvery = 10 * time.Second

// hasRow takes note of the table's row as it is stored.
func (t *table) hasRow(row *bigtable.State) {
	t.row = row
	t.lead.Store(int64(row.Lead))
}

func (t *table) openLog(ctx context.Context) (*queue.Log, error) {
	l, err := t.p.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		if t.row != nil && t.row.Issued {
			return nil, refusedLog(lostLog)
		}
		var token [12]byte
		if _, err := rand.Read(token[:]); err != nil {
			return nil, err
		}
		if l, err = t.p.queue.CreateLog(ctx, t.Source, hex.EncodeToString(token[:])); err != nil {
			if other, lookErr := t.p.queue.Log(ctx, t.Source); lookErr == nil {
				l, err = other, nil // another instance was faster
			} else if errors.Is(err, queue.ErrNoLog) {
				err = &outcome.StaleError{Err: err} // it was, and its log is not to be seen from here yet
			}
		}
	}
	if err != nil {
		return nil, err
	}
	t.stream.Store(l)
	return l, nil
}

// mapping identifies the compiled mapping: what the rows in the target were written by.
func (t *table) mapping() string {
	h := t.Program.Hash()
	return hex.EncodeToString(h[:])
}

func (t *table) logOf() *queue.Log { return t.stream.Load() }

// agree makes the row in Bigtable and the log agree on whose they are, or refuses.
func (t *table) agree(ctx context.Context, l *queue.Log, info source.TableInfo) error {
	want := t.identity(l, info)
	if t.row != nil {
		if refused := CheckIdentity(t.row, want); refused != nil {
			return refused
		}
	}
	if err := t.keepMapping(ctx); err != nil {
		return err
	}
	if t.row == nil {
		return t.createRow(ctx, l, want)
	}
	if !t.row.Identity.LogCreated.Equal(want.LogCreated) {
		return t.setRow(ctx, func(s *bigtable.State) { s.Identity.LogCreated = want.LogCreated })
	}
	return nil
}

// identity is what the table, its mapping and its log are now.
func (t *table) identity(l *queue.Log, info source.TableInfo) bigtable.Identity {
	return bigtable.Identity{
		Pipeline: t.p.o.Name, Table: t.Source, TableID: info.ID, StreamARN: info.StreamARN,
		LogCreated: l.Created().UTC(), MappingHash: t.mapping(), Target: t.p.sink.TargetName(t.Target),
	}
}

func (t *table) createRow(ctx context.Context, l *queue.Log, id bigtable.Identity) error {
	s, err := l.Fold(ctx)
	if err != nil {
		return err
	}
	if refused := CheckLog(nil, s, id, t.p.o.Start); refused != nil {
		// The row was looked for before the log was read: an instance that started in between has made both.
		if _, err := t.p.sink.LoadState(ctx, t.p.o.Name, t.Source); !errors.Is(err, bigtable.ErrNoState) {
			return &outcome.StaleError{Err: errors.Join(errFaster, err)}
		}
		return refused
	}
	row := &bigtable.State{Identity: id, Life: 1, Lead: t.p.o.Periods.Lead}
	if err := t.p.sink.CreateState(ctx, row); err != nil {
		if errors.Is(err, bigtable.ErrStateExists) {
			return &outcome.StaleError{Err: fmt.Errorf("%w: %w", errFaster, err)} // the next life finds its row
		}
		return err
	}
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	t.hasRow(row)
	return nil
}

var errFaster = errors.New("another instance was faster")

func (t *table) setRow(ctx context.Context, edit func(*bigtable.State)) error {
	t.rowMu.Lock()
	defer t.rowMu.Unlock()
	next := *t.row
	edit(&next)
	if err := t.p.sink.CompareAndSet(ctx, t.row, &next); err != nil {
		if errors.Is(err, bigtable.ErrStateChanged) {
			t.stale = true
			return &outcome.StaleError{Err: fmt.Errorf("another owner changed the pipeline's row: %w", err)}
		}
		return err
	}
	t.hasRow(&next)
	return nil
}

func (t *table) adopt(ctx context.Context, arn string) error {
	if err := t.awaitRow(ctx); err != nil {
		return err
	}
	return t.setRow(ctx, func(s *bigtable.State) { s.Identity.StreamARN = arn })
}

// startParts cuts a start into what fits into messages. Format 1 has one entry for it: a listing that is too large
// for the server is an error there.
func (t *table) startParts(s *checkpoint.State, e *checkpoint.Start) []*checkpoint.Start {
	if s.Format < 2 {
		return []*checkpoint.Start{e}
	}
	return e.Split(t.listingPart())
}

// listingPart is how many bytes of shards go into one entry.
func (t *table) listingPart() int { return min(checkpoint.ListingPartBytes, t.p.queue.MaxPayload()/2) }

// start decides where every shard starts, in one entry or in parts of which only the last one counts, and never
// again (Rule 3).
func (t *table) start(ctx context.Context, w *queue.Writer) error {
	var ls source.Listing
	err := t.beating(ctx, w, func(ctx context.Context) (err error) {
		ls, err = t.p.src.List(ctx, t.Info.StreamARN)
		return err
	})
	if err != nil {
		return err
	}
	if len(ls.Shards) == 0 { // a stream that is being enabled: its shards would be taken for later ones
		return &outcome.StaleError{Err: outcome.ErrNotListed}
	}
	g := graphOf(ls)
	at, err := t.p.o.Start.at(ls.Started)
	if err != nil {
		return err
	}
	e := &checkpoint.Start{
		Stream: ls.Stream, Mode: t.p.o.Start.mode(), At: at, Date: ls.Started, Floor: t.row.Floor, Shards: g.Shards,
	}
	s := w.State()
	for _, part := range t.startParts(s, e) {
		if _, err := w.Append(ctx, part, nil); err != nil {
			return fmt.Errorf("append start: %w", needsUpgrade(s, err))
		}
	}
	t.log.Info("start", zap.String("stream", ls.Stream), zap.Int("shards", len(g.Shards)), zap.String("from", e.Mode))
	return nil
}

// issue writes down that the log holds changes from now on: an empty log is a lost one after that.
func (t *table) issue(ctx context.Context) error {
	if !t.rowKnown() || t.row.Issued { // a log that is read on without its row was issued
		return nil
	}
	return t.setRow(ctx, func(s *bigtable.State) { s.Issued = true })
}

func (s Start) mode() string {
	switch {
	case s.Latest:
		return "latest"
	case s.At.IsZero():
		return "trim_horizon"
	}
	return s.At.UTC().Format(time.RFC3339Nano)
}

// at returns the start as a time on the service's clock. LATEST itself is never sent: it has no durable
// position, and a crash during the first start would lose or flood.
func (s Start) at(date int64) (int64, error) {
	switch {
	case s.Latest:
		return date, nil
	case s.At.IsZero():
		return 0, nil
	case s.At.UnixMilli() > date:
		return 0, &RefusedError{What: "source.start lies in the future: " + s.mode(), Hint: "use latest, trim_horizon or a time in the last 24 hours"}
	}
	return s.At.UnixMilli(), nil
}

func refusedLog(what string) *RefusedError {
	return &RefusedError{What: what, Hint: "versions must grow across lives, so a lost log is not started over in silence: bring the queue's volume back; " +
		"where it is gone, start under another pipeline name with empty target tables (`replicator recover`, which needs neither, comes with a later version)"}
}
