package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// Options of a Format.
type Options struct {
	Pipeline string
	Owner    string // this process, as in its claims
	Build    string // its version
	Store    Store
	Queue    *queue.Queue
	// Members returns the replicators that announce themselves, this one among them. Nil: there are
	// none, and only `replicator upgrade --finalize` raises the format.
	Members func(context.Context) ([]Member, error)
	Every   time.Duration // between two looks at the row
	Logger  *zap.Logger
}

// Format is the format of a pipeline's logs, as a running process follows it. Safe for concurrent
// use.
type Format struct {
	o       Options
	log     *zap.Logger
	rollout *Rollout
	now     func() time.Time // for tests

	mu     sync.Mutex    // covers the rest
	target int           // min(the row's, this build's); 0: not known yet
	risen  chan struct{} // closed when target rises
}

// New returns a format that is not known yet.
func New(o Options) *Format {
	return &Format{
		o: o, log: o.Logger, rollout: NewRollout(checkpoint.Format), risen: make(chan struct{}),
		// The wall clock goes on while the machine sleeps, so that the sleep is a break.
		now: func() time.Time { return time.Now().Round(0) },
	}
}

// firstPatience is how long a start waits for the row: an outage of Bigtable must not stop the
// reading of tables.
const firstPatience = 5 * time.Second

// Begin reads the row before any log is claimed. A new pipeline gets its row, with the newest
// format. The error is a *outcome.RefusedError when the pipeline has a format that this build does
// not know; while the row cannot be read there is none, and the logs go on as they are.
func (f *Format) Begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	row, err := f.o.Store.Load(ctx, f.o.Pipeline)
	if err == nil && row == nil {
		var logs []string
		if logs, err = f.o.Queue.Tables(ctx); err == nil && len(logs) == 0 {
			row, err = f.raise(ctx, checkpoint.Format, ByStart)
		}
	}
	if err != nil {
		f.log.Warn("the format of the pipeline is not known yet: its logs go on in theirs", zap.Error(err))
		return nil
	}
	return f.note(row)
}

// Run follows the row until ctx ends, and raises it once everyone has agreed for long enough. It
// returns a *outcome.RefusedError when a newer build has raised the pipeline above what this one
// reads.
func (f *Format) Run(ctx context.Context) error {
	for {
		row, err := f.look(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("look at the format of the pipeline: will be retried", zap.Error(err))
		} else if err := f.note(row); err != nil {
			return err
		}
		if failure.Pause(ctx, f.o.Every) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// look reads the row, or makes it. Where it was lost, it names the lowest format of the logs.
func (f *Format) look(ctx context.Context) (*Row, error) {
	row, err := f.o.Store.Load(ctx, f.o.Pipeline)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		lowest, err := LowestFormat(ctx, f.o.Queue)
		if err != nil {
			return nil, err
		}
		if lowest == 0 {
			lowest = checkpoint.Format
		}
		return f.raise(ctx, lowest, ByStart)
	case row.Log >= checkpoint.Format || f.o.Members == nil:
		return row, nil
	}
	members, err := f.o.Members(ctx)
	if err != nil {
		members = nil // nobody is heard: the time begins again
	}
	claims, err := Claims(ctx, f.o.Queue)
	if err != nil {
		return row, nil //nolint:nilerr // the next look comes soon enough
	}
	if f.rollout.Observe(f.now(), members, claims) && owns(claims, f.o.Owner) {
		return f.raise(ctx, checkpoint.Format, ByAgreement)
	}
	return row, nil
}

func (f *Format) raise(ctx context.Context, to int, by string) (*Row, error) {
	row, err := Raise(ctx, f.o.Store, f.o.Pipeline, Row{Log: to, Build: f.o.Build, By: by, Since: time.Now()})
	if err != nil {
		return nil, fmt.Errorf("raise format of the pipeline to %d: %w", to, err)
	}
	return row, nil
}

// note takes a row that was read; nil is none yet.
func (f *Format) note(row *Row) error {
	if row == nil {
		return nil
	}
	if refused := row.Check(f.o.Pipeline); refused != nil {
		return refused
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if row.Log > f.target {
		f.log.Info("format of the pipeline's logs", zap.Int("format", row.Log), zap.Int("newest", checkpoint.Format),
			zap.String("by", row.By), zap.Time("since", row.Since))
		f.target = row.Log
		close(f.risen)
		f.risen = make(chan struct{})
	}
	return nil
}

// current returns the format, and a channel that is closed when it rises.
func (f *Format) current() (int, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.target, f.risen
}

// Target returns the format that logs are to be written in; 0 while that is not known.
func (f *Format) Target() int {
	target, _ := f.current()
	return target
}

// AwaitAbove blocks until logs are to be written in a higher format than have, and returns that.
func (f *Format) AwaitAbove(ctx context.Context, have int) (int, error) {
	for {
		target, risen := f.current()
		if target > have {
			return target, nil
		}
		select {
		case <-risen:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// errRisen ends the work on a log that is to be raised.
var errRisen = errors.New("the format of the pipeline was raised, and the log follows now")

// retryFull is how long a log that is too full for the snapshot that raises it goes on in its
// format.
const retryFull = time.Minute

// Follow returns a *outcome.StaleError once a log that has a format is to be raised, and nil when
// ctx ends. full is set when the log had no room for that just now.
func (f *Format) Follow(ctx context.Context, have int, full bool) error {
	if full && failure.Pause(ctx, retryFull) != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	if _, err := f.AwaitAbove(ctx, have); err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	return &outcome.StaleError{Err: errRisen}
}

// RaiseLog raises a log to the format of the pipeline, if that is higher. full is set when there
// was no room for it.
func (f *Format) RaiseLog(ctx context.Context, w *queue.Writer, log *zap.Logger) (full bool, err error) {
	have, target := w.State().Format, f.Target()
	if have >= checkpoint.Format {
		return false, nil
	}
	if target <= have {
		log.Info("the log has an older format and goes on in that: `replicator upgrade --finalize` raises it",
			zap.Int("format", have), zap.Int("newest", checkpoint.Format))
		return false, nil
	}
	err = w.Upgrade(ctx, target)
	if errors.Is(err, queue.ErrFull) {
		log.Warn("the log is full: it goes on in its older format, and is raised later", zap.Error(err))
		return true, nil
	}
	return false, err
}
