package archiving

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// Publisher is the subject of an archive. It makes events durable before it returns: at least once, with stable ids.
type Publisher interface {
	Write(ctx context.Context, events []*transform.Event) error
}

// publishBatch is how many events are published before the progress may be stored.
const publishBatch = 1024

// publish publishes the stream from the stored progress on until ctx ends or something fails.
func (l *life) publish(ctx context.Context) error {
	var done uint64
	l.w.view(func(s *ledger.State) { done = *s.Subject })
	r := l.w.journal.Read(done + 1)
	defer r.Close(context.WithoutCancel(ctx))
	for stored := time.Now(); ; {
		var last uint64
		changed := l.w.view(func(s *ledger.State) { last = s.Seq })
		if done >= last {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changed:
				continue
			}
		}
		seq, msg, err := r.Next(ctx)
		if err != nil {
			return err
		}
		e, err := ledger.Decode(msg)
		if err != nil {
			return fmt.Errorf("publish entry %d: %w", seq, err)
		}
		n, err := l.publishEntry(ctx, e)
		if err != nil {
			return &sinkError{sink: SinkSubject, err: err}
		}
		done = seq
		// Rule 1: the progress never passes an event that is not durable. One that moves behind entries without events
		// would be an entry itself, for ever.
		if n > 0 && (time.Since(stored) > progressEvery || done >= last) {
			if err := l.w.append(ctx, &ledger.Subject{Seq: done}); err != nil {
				return err
			}
			stored = time.Now()
			l.a.clear(ctx, SinkSubject)
		}
	}
}

// progressEvery is how often the subject's progress is stored while there is always more.
const progressEvery = time.Second

// publishEntry publishes the events of an entry and returns their number.
func (l *life) publishEntry(ctx context.Context, e *ledger.Entry) (n int, err error) {
	var batch []*transform.Event
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := l.a.o.Subject.Write(ctx, batch)
		n, batch = n+len(batch), nil
		return err
	}
	err = e.Each("", 0, func(e *transform.Event) error {
		if batch = append(batch, e); len(batch) < publishBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return n, err
}
