package archiving

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// ConflictError means that something has the name of an object, or of a manifest, and other
// content.
type ConflictError struct {
	Name string
	What string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s is in the bucket already, with other content (%s): find out who wrote it and move it out of "+
		"the archive, then it is created again", e.Name, e.What)
}

// runObjects makes objects and manifests until something fails or ctx ends. One object is written
// at a time.
func (l *life) runObjects(ctx context.Context) error {
	if err := l.a.o.Once.probe(ctx, l.a.o.Objects); err != nil {
		return inBucket("probe the bucket", err)
	}
	if err := l.settlePlace(ctx); err != nil {
		return err
	}
	if err := l.settleColumns(ctx); err != nil {
		return err
	}
	if err := l.reconcile(ctx); err != nil {
		return err
	}
	if err := l.finishIntents(ctx); err != nil {
		return err
	}
	since := partTimes{}
	for {
		nudged := l.a.nudged()
		more, wait, err := l.cutDue(ctx, since)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if err := l.closeHours(ctx); err != nil {
			return err
		}
		l.a.clear(ctx, SinkObjects)
		changed := l.w.view(func(*ledger.State) {})
		t := time.NewTimer(min(wait, time.Second))
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		case <-changed:
			t.Stop()
		case <-nudged:
			t.Stop()
		}
	}
}

// partTimes is when this life first found each part.
type partTimes map[ledger.PartKey]time.Time

// cutDue makes objects of parts that are due, and reports whether there may be more. Otherwise it
// returns how long none is due.
func (l *life) cutDue(ctx context.Context, since partTimes) (more bool, wait time.Duration, err error) {
	pieces, wait := l.due(since, time.Now())
	if len(pieces) == 0 {
		return false, wait, nil
	}
	all, err := l.gather(ctx, together(pieces))
	if err != nil {
		return false, 0, err
	}
	defer discard(all)
	for _, g := range all {
		if err := l.cut(ctx, g); err != nil {
			return false, 0, err
		}
		delete(since, g.key)
	}
	return true, 0, nil
}

// cut makes one object.
func (l *life) cut(ctx context.Context, g *gathered) error {
	b, err := l.build(l.form, g)
	if err != nil {
		return err
	}
	defer b.discard()
	// The intent is stored before the object: after a crash the next owner finds the name, and
	// creates this object and no other.
	if err := l.w.append(ctx, &b.intent); err != nil {
		return err
	}
	if b.intent.Events == 0 { // objects that were adopted have all events of the piece
		return nil
	}
	return l.create(ctx, b)
}

// due returns the pieces that are to be objects next: those that have reached their size, have
// waited for long enough, or keep an hour from being closed.
func (l *life) due(since partTimes, now time.Time) (pieces []piece, wait time.Duration) {
	wait = l.a.o.Roll
	closable := l.closable()
	l.w.view(func(s *ledger.State) {
		// A stream with a low limit holds no object of the usual size, let alone one for each
		// class.
		cutAt := share(l.w.info, l.a.o.CutAt, 8)
		for key := range since {
			if _, open := s.Parts[key]; !open {
				delete(since, key)
			}
		}
		for _, key := range s.OpenParts() {
			part := s.Parts[key]
			seen, known := since[key]
			if !known {
				seen = now
				since[key] = now
			}
			old := now.Sub(seen) >= l.a.o.Roll
			closing := key.Hour < closable && l.a.o.Roll <= time.Hour &&
				(key.Class != transform.ClassHealed || !l.a.healing.Load())
			if part.Bytes >= cutAt || old || closing {
				pieces = append(pieces, piece{
					key: key, first: part.First, last: s.EndOf(key), cutAt: cutAt, bytes: min(part.Bytes, cutAt),
				})
				continue
			}
			wait = min(wait, l.a.o.Roll-now.Sub(seen))
		}
	})
	return pieces, wait
}

// create puts an object into the bucket and stores that it is there.
//
// An attempt with an unknown outcome is made again: names are created once only, so the object is
// the same or it is there.
func (l *life) create(ctx context.Context, b *built) error {
	name, began := b.intent.Name, time.Now()
	err := l.a.o.Objects.Create(ctx, name, b.file, b.size)
	done := &ledger.Done{Name: name, Bytes: b.size, SHA256: b.sha256}
	if errors.Is(err, bucket.ErrExists) {
		done, err = l.compare(ctx, &b.intent)
	}
	if err != nil {
		return &sinkError{sink: SinkObjects, err: err}
	}
	// Rule 1: an event counts as archived only when its object is there.
	if err := l.w.append(ctx, done); err != nil {
		return err
	}
	m := l.a.o.Metrics
	m.objects.WithLabelValues(l.a.o.Table).Inc()
	m.bytes.WithLabelValues(l.a.o.Table).Add(float64(done.Bytes))
	m.countEvents(l.a.o.Table, "objects", b.intent.Class, b.intent.Events)
	m.upload.WithLabelValues(l.a.o.Table).Observe(time.Since(began).Seconds())
	l.a.o.Logger.Debug("object archived", zap.String("object", name), zap.Int64("events", b.intent.Events))
	return nil
}

// finishIntents creates the objects that an earlier life had begun.
func (l *life) finishIntents(ctx context.Context) error {
	var intents []ledger.Intent
	l.w.view(func(s *ledger.State) { intents = append(intents, s.Intents...) })
	for n := range intents {
		if err := l.finishIntent(ctx, &intents[n]); err != nil {
			return err
		}
	}
	return nil
}

// finishIntent creates the object of an intent, under its name and so in its format: an owner that
// is frozen before it creates the object may wake at any time, and must find the name taken.
func (l *life) finishIntent(ctx context.Context, i *ledger.Intent) error {
	form := l.form
	form.Format = object.FormatOf(i.Name)
	key := ledger.PartKey{Class: i.Class, Hour: i.Hour}
	all, err := l.gather(ctx, []piece{{key: key, first: i.First, last: i.Last}})
	if err != nil {
		return err
	}
	defer discard(all)
	b, err := l.build(form, all[0])
	if err != nil {
		return err
	}
	defer b.discard()
	if b.intent.Name != i.Name || b.intent.Digest != i.Digest { // some of its events are in an object that was adopted
		return l.giveUp(ctx, i)
	}
	return l.create(ctx, b)
}
