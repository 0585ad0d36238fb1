package archiving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Publisher is the subject of an archive. It makes events durable before it returns: at least once,
// with stable ids. It returns those that are too large for it, compressed too.
type Publisher interface {
	Write(ctx context.Context, messages []archive.Message) (refused []archive.Message, err error)
}

// publishAtOnce is how many events are published together at most.
const publishAtOnce = 1024

// publish publishes the stream from the stored progress on until ctx ends or something fails.
func (l *life) publish(ctx context.Context) error {
	var done uint64
	l.w.view(func(s *ledger.State) { done = *s.Subject })
	r := l.w.journal.Read(done + 1)
	defer r.Close(context.WithoutCancel(ctx))
	p := progress{seq: done, at: time.Now()}
	for {
		l.published.Store(done)
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
		e, err := decode(seq, msg)
		if err != nil {
			return err
		}
		n, err := l.publishEntry(ctx, e)
		if err != nil {
			return &sinkError{sink: SinkSubject, err: err}
		}
		done, p.events = seq, p.events+n
	}
}

// progress is how far the subject is, as stored in the stream.
type progress struct {
	seq    uint64    // it has everything up to this entry
	at     time.Time // when that was stored
	events int       // published since then
}

// due reports whether the progress is to be stored: up to done, where the stream ends with last.
//
// Rule 1: it never passes an event that is not durable. One that moves behind few entries without
// events would be an entry itself, for ever; but behind many, or the stream is never trimmed while
// all deletions are skipped.
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
	var batch publication
	err = e.Each("", 0, func(e *transform.Event) error {
		if err := batch.add(e); err != nil || len(batch.events) < publishAtOnce {
			return err
		}
		n += len(batch.events)
		return l.publishEvents(ctx, &batch)
	})
	if err == nil && len(batch.events) > 0 {
		n += len(batch.events)
		err = l.publishEvents(ctx, &batch)
	}
	return n, err
}

// publication is events with their messages.
type publication struct {
	events   []*transform.Event
	messages []archive.Message
}

func (p *publication) add(e *transform.Event) error {
	body, err := object.AppendEvent(nil, e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID(), err)
	}
	p.events, p.messages = append(p.events, e), append(p.messages, archive.Message{ID: e.ID(), Body: body})
	return nil
}

// publishEvents publishes events; those that are too large become dead letters.
//
// Rule 8: what cannot be published is kept with its reason, before the progress passes it.
func (l *life) publishEvents(ctx context.Context, p *publication) error {
	refused, err := l.a.o.Subject.Write(ctx, p.messages)
	if err != nil {
		return err
	}
	for _, m := range refused {
		at := slices.IndexFunc(p.events, func(e *transform.Event) bool { return e.ID() == m.ID })
		why := &UnpublishableError{Size: len(m.Body)}
		if err := l.a.o.Letter(ctx, p.events[at], m.Body, CodeTooLarge, why.Error()); err != nil {
			return err
		}
	}
	*p = publication{}
	return nil
}

// CodeTooLarge is the code of the letters of events that are larger than a message may be.
const CodeTooLarge = "too_large"

// UnpublishableError means that an event is too large for its subject, compressed too.
type UnpublishableError struct{ Size int }

func (e *UnpublishableError) Error() string {
	return fmt.Sprintf("the event has %d bytes, and compressed it is still larger than a message on archive.subject may "+
		"be: raise max_payload of the NATS server, or max_msg_size of the stream on the subject, then `replicator dlq retry`",
		e.Size)
}

// ErrNoSubject means that the archive has no subject.
var ErrNoSubject = errors.New("the archive has no subject")

// Publish publishes an event that was refused before. Errors: ErrNoSubject, *UnpublishableError,
// and the errors of the subject.
func (a *Archiver) Publish(ctx context.Context, m archive.Message) error {
	if a.o.Subject == nil {
		return ErrNoSubject
	}
	refused, err := a.o.Subject.Write(ctx, []archive.Message{m})
	if err == nil && len(refused) > 0 {
		err = &UnpublishableError{Size: len(m.Body)}
	}
	return err
}
