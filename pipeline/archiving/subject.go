package archiving

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Publisher is the subject of an archive. It makes events durable before it returns: at least once, with stable
// ids.
type Publisher interface {
	Write(ctx context.Context, messages []archive.Message) error
}

// publishBatch is how many events are published before the progress may be stored.
const publishBatch = 1024

// publish publishes the stream from the stored progress on until ctx ends or something fails.
func (l *life) publish(ctx context.Context) error {
	var done uint64
	l.w.view(func(s *ledger.State) { done = *s.Subject })
	r := l.w.journal.Read(done + 1)
	defer r.Close(context.WithoutCancel(ctx))
	p := progress{seq: done, at: time.Now()}
	for {
		var last uint64
		changed := l.w.view(func(s *ledger.State) { last = s.Seq })
		if p.due(done, last) {
			if err := l.w.append(ctx, &ledger.Subject{Seq: done}); err != nil {
				return err
			}
			p = progress{seq: done, at: time.Now()}
			l.a.clear(ctx, SinkSubject)
			continue
		}
		if done >= last {
			l.a.clear(ctx, SinkSubject)
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
		done, p.events = seq, p.events+n
	}
}

// progress is what the stream knows of the subject.
type progress struct {
	seq    uint64    // it has everything up to this entry
	at     time.Time // when that was stored
	events int       // published since then
}

// due reports whether the progress is to be stored: up to done, where the stream ends with last.
//
// Rule 1: it never passes an event that is not durable. One that moves behind few entries without events would be an
// entry itself, for ever; but behind many, or the stream is never trimmed while all deletions are skipped.
func (p *progress) due(done, last uint64) bool {
	if p.events == 0 {
		return done-p.seq >= progressEntries
	}
	return done >= last || time.Since(p.at) > progressEvery
}

// progressEntries is behind how many entries without events the subject's progress is stored.
const progressEntries = 256

// progressEvery is how often the subject's progress is stored while there is always more.
const progressEvery = time.Second

// publishEntry publishes the events of an entry and returns their number.
func (l *life) publishEntry(ctx context.Context, e *ledger.Entry) (n int, err error) {
	var batch []archive.Message
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := l.a.o.Subject.Write(ctx, batch)
		n, batch = n+len(batch), nil
		return err
	}
	err = e.Each("", 0, func(e *transform.Event) error {
		body, err := object.AppendEvent(nil, e)
		if err != nil {
			return fmt.Errorf("encode event %s: %w", e.ID(), err)
		}
		if batch = append(batch, archive.Message{ID: e.ID(), Body: body}); len(batch) < publishBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return n, err
}
