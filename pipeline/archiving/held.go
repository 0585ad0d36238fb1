package archiving

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// Held yields the events that the archive holds of deletions from one hour to another and including
// it: those in its stream first, for they move into objects meanwhile. The slices of an event are
// valid during the call.
func (a *Archiver) Held(ctx context.Context, from, to layout.Hour, yield func(*transform.Event)) error {
	l, err := a.awaitLife(ctx)
	if err == nil {
		err = l.streamed(ctx, yield)
	}
	if err != nil {
		return err
	}
	for _, class := range classes {
		for day := from - from%24; day <= to; day += 24 {
			for x, err := range a.o.Objects.List(ctx, layout.Day(a.o.Table, class, day)) {
				if err != nil {
					return fmt.Errorf("list objects: %w", err)
				}
				part, ok := layout.ParseObject(x.Name)
				if !ok || part.Hour < from || part.Hour > to {
					continue
				}
				if err := a.eventsOf(ctx, x.Name, yield); err != nil {
					return fmt.Errorf("read object %s: %w", x.Name, err)
				}
			}
		}
	}
	return nil
}

// classes are the classes of objects.
var classes = []transform.EventClass{
	transform.ClassTTL, transform.ClassUser, transform.ClassInferred, transform.ClassHealed,
}

// streamed yields the events of the archive's stream that are in no object, and some that are.
func (l *life) streamed(ctx context.Context, yield func(*transform.Event)) error {
	var first, last uint64
	l.w.view(func(s *ledger.State) {
		last = s.Seq
		first = last + 1
		for _, p := range s.Parts {
			first = min(first, p.First)
		}
		for i := range s.Intents {
			first = min(first, s.Intents[i].First)
		}
	})
	if first > last {
		return nil
	}
	r := l.w.journal.Read(first)
	defer r.Close(context.WithoutCancel(ctx))
	for {
		seq, msg, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("read the archive's stream: %w", err)
		}
		e, err := decode(seq, msg)
		if err == nil {
			err = e.Each("", 0, func(e *transform.Event) error {
				yield(e)
				return nil
			})
		}
		if err != nil {
			return err
		}
		if seq >= last {
			return nil
		}
	}
}

// eventsOf yields the events of an object.
func (a *Archiver) eventsOf(ctx context.Context, name string, yield func(*transform.Event)) error {
	r, err := a.o.Objects.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	for e, err := range object.Read(r, r.Size()) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		yield(e)
	}
	return nil
}

// DeferCuts delays objects of hours that are over while a healing stores their events one by one.
func (a *Archiver) DeferCuts(on bool) {
	a.healing.Store(on)
	a.wake()
}

// CountHealed counts an event that was made of an export.
func (a *Archiver) CountHealed() {
	a.o.Metrics.countEvents(a.o.Table, "healed", transform.ClassHealed, 1)
}

// HasObjects reports whether the archive has objects.
func (a *Archiver) HasObjects() bool { return a.o.Objects != nil }

// NoteHealing shows in the status what is being healed; "" for nothing.
func (a *Archiver) NoteHealing(what string) { a.note(func(s *Status) { s.Healing = what }) }
