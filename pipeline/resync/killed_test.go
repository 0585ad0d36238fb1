package resync

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
)

// mortal is what the owner of a delegated copy calls, until it is killed at one of its calls. The
// call has happened then, or not.
type mortal struct {
	*delegated
	left   atomic.Int64 // calls until then; 0: it lives on
	after  bool         // the last call happens
	kill   context.CancelFunc
	closed time.Time // when the order was stored as closed

	freeze func() // in place of a kill
	lost   bool   // another process has claimed the log
}

var errLost = errors.New("another process has claimed the log")

// call makes a call, or kills the owner.
func (m *mortal) call(f func() error) error {
	if m.left.Add(-1) != 0 {
		return f()
	}
	if m.freeze != nil {
		m.freeze()
		return f()
	}
	defer m.kill()
	if m.after {
		_ = f()
	}
	return errAway
}

func (m *mortal) LoadOrder(ctx context.Context, pipeline, table string) (seen *delegation.Seen, err error) {
	err = m.call(func() error { seen, err = m.delegated.LoadOrder(ctx, pipeline, table); return err })
	return seen, err
}

func (m *mortal) SwapOrder(
	ctx context.Context, pipeline, table string, old, next *delegation.Order,
) (done bool, err error) {
	err = m.call(func() error {
		if done, err = m.delegated.SwapOrder(ctx, pipeline, table, old, next); done && !next.Open() {
			m.closed = time.Now()
		}
		return err
	})
	return done && err == nil, err
}

func (m *mortal) StoreBeat(
	ctx context.Context, pipeline, table string, b delegation.Beat, fresh func() error,
) (there bool, err error) {
	err = m.call(func() error { there, err = m.delegated.StoreBeat(ctx, pipeline, table, b, fresh); return err })
	return there, err
}

func (m *mortal) LoadFileMarks(
	ctx context.Context, o *delegation.Order, row int, wanted func(int) bool, f func(int, *delegation.FileMark) error,
) error {
	return m.call(func() error { return m.delegated.LoadFileMarks(ctx, o, row, wanted, f) })
}

// RemoveFileMarks removes them: what they show must be in the log.
func (m *mortal) RemoveFileMarks(ctx context.Context, o *delegation.Order) error {
	return m.call(func() error {
		m.mu.Lock()
		for file := range m.marks {
			if !m.state.Marks[file].Done {
				m.t.Errorf("the mark of file %d is removed before the log has it", file)
			}
		}
		m.mu.Unlock()
		return m.delegated.RemoveFileMarks(ctx, o)
	})
}

func (m *mortal) note(ctx context.Context, seq uint64) error {
	return m.call(func() error { return m.delegated.note(ctx, seq) })
}

func (m *mortal) Resync(ctx context.Context, r *apply.ResyncItem) (out apply.ResyncOutcome, err error) {
	err = m.call(func() error { out, err = m.delegated.Resync(ctx, r); return err })
	return out, err
}

func (m *mortal) append(ctx context.Context, body any) error {
	if b, ok := body.(*checkpoint.CopyMarks); ok && b.Closed && !m.lost {
		if m.order.Open() || time.Since(m.closed) < delegation.CloseWait {
			m.t.Errorf("it is closed in the log %s after it was closed for its workers: %+v", time.Since(m.closed), m.order)
		}
	}
	return m.call(func() error {
		if m.lost {
			return errLost
		}
		return m.delegated.append(ctx, body)
	})
}

// own runs the owner, and reports whether it was killed.
func (m *mortal) own(left int) (killed bool) {
	ctx, kill := context.WithCancel(m.t.Context())
	defer kill()
	m.left.Store(int64(left))
	m.kill = kill
	o := m.options()
	o.Append, o.Writer, o.Workers.Store, o.Workers.Note = m.append, m, m, m.note
	m.mu.Lock()
	state := *m.state
	m.mu.Unlock()
	if err := New(o, &state).Run(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errLost) {
		m.t.Error(err)
	}
	return ctx.Err() != nil
}

// TestOwnerIsKilledAtEachStep of opening, following and closing an order, and the next one goes on.
// The operator takes the copy back meanwhile, or the workers copy all files.
func TestOwnerIsKilledAtEachStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, takeback := range []bool{false, true} {
			for left, more := 1, true; more; left++ {
				t.Run(fmt.Sprintf("%t %t %d", after, takeback, left), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := &mortal{delegated: newDelegated(t, [][]string{{"a", "b"}, {"c"}, {"d", "e"}}), after: after}
						ctx, end := context.WithCancel(t.Context())
						go func() { // a worker
							for n := 0; failure.Pause(ctx, time.Minute) == nil; {
								m.mu.Lock()
								open := m.order.Open()
								m.mu.Unlock()
								if open && n < 3 {
									m.mark(n, "backfill-1.77", []int64{1}[:1-n%2]...)
									n++
								}
							}
						}()
						if more = m.own(left); more && takeback && m.state.Delegated > 0 {
							m.state.TakenBack = true
						}
						for further, again := left+1, more; again; further++ {
							again = m.own(further)
						}
						end()
						synctest.Wait()
						if m.state.Delegated > 0 || m.order.Open() {
							t.Errorf("not closed: %+v, %+v", m.state, m.order)
						}
						for i := range m.files {
							if !m.state.Marks[i].Done {
								t.Errorf("file %d is not copied: %+v", i, m.state.Marks)
							}
						}
					})
				})
			}
		}
	}
}
