package archiving

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// settlePlace notes where the objects are, and begins another chain of manifests where that is not
// the place of before.
func (l *life) settlePlace(ctx context.Context) error {
	b := &ledger.Placed{Place: l.a.o.URL}
	before := ""
	l.w.view(func(s *ledger.State) { before = s.Place })
	if b.Place == "" || b.Place == before {
		return l.findHead(ctx)
	}
	if before != "" {
		moved, err := l.hasAll(ctx)
		if err != nil {
			return err
		}
		b.Anew = !moved
		l.a.o.Logger.Warn("the archive's objects go to another place", zap.String("place", b.Place),
			zap.String("before", before), zap.Bool("new_chain", b.Anew))
	}
	return l.w.append(ctx, b)
}

// findHead refuses a bucket that lacks the last manifest of the stream.
//
// Rule 13: a bucket that shows nothing, as a directory does while its volume is not mounted, is not
// taken for one in which nothing was archived.
func (l *life) findHead(ctx context.Context) error {
	var head manifest.Head
	l.w.view(func(s *ledger.State) { head = s.Head })
	if head.N == 0 {
		return nil
	}
	m, _, err := l.readManifest(ctx, head.N)
	if err == nil && m == nil {
		err = inBucket("look for the last manifest", &bucket.Error{
			Class: failure.Missing, Err: fmt.Errorf("%s is not there", layout.Manifest(l.a.o.Table, head.N)),
			Hint: "mount or restore what archive.url names; if its objects are gone for good, give archive.url another " +
				"prefix, where the manifests begin again",
		})
	}
	return err
}

// hasAll reports whether the bucket has the last manifest and objects of the stream: the archive
// was copied there, or is the same one under another URL.
func (l *life) hasAll(ctx context.Context) (bool, error) {
	var head manifest.Head
	var open []manifest.Object // that no manifest names
	l.w.view(func(s *ledger.State) {
		head = s.Head
		for i := range s.Objects {
			open = append(open, s.Objects[i].Object)
		}
	})
	if head.N > 0 {
		m, there, err := l.readManifest(ctx, head.N)
		if err != nil || m == nil || there != head {
			return false, err
		}
	}
	for _, o := range open {
		r, err := l.a.o.Objects.Open(ctx, o.Name)
		if errors.Is(err, bucket.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, inBucket("look for "+o.Name, err)
		}
		size := r.Size()
		if _ = r.Close(); size != o.Bytes {
			return false, nil
		}
	}
	return true, nil
}

// adoptHours is how many hours back reconcile looks, at least, for objects that the stream lacks.
// Records are read again for a day at most, so no event of an older object can come again, unless
// the stream has it.
const adoptHours = layout.AdoptHours

// adoptHealed is the same for what is made of exports: DynamoDB exports windows of the last 35
// days.
const adoptHealed = 37 * 24

// adoptFrom returns the first hour in which reconcile looks for objects. A stream that was put back
// by days still has events that have become objects since, in hours that it has not closed.
func (l *life) adoptFrom() layout.Hour {
	hour := layout.HourOf(l.a.o.Now().Time()) - adoptHours
	l.w.view(func(s *ledger.State) {
		if s.Closed > 0 {
			hour = min(hour, s.Closed)
		}
		for key := range s.Parts {
			hour = min(hour, key.Hour)
		}
		for i := range s.Intents {
			hour = min(hour, s.Intents[i].Hour)
		}
	})
	return hour
}

// reconcile looks for objects and manifests that the stream does not know: it is new, because the
// log was recovered, or it lost its end. Their events are not archived again, and the chain of
// manifests goes on behind the last.
func (l *life) reconcile(ctx context.Context) error {
	since := l.adoptFrom() // before the manifests say that its hour is closed
	err := l.adoptManifests(ctx, since)
	if err == nil {
		err = l.adoptObjects(ctx, since)
	}
	return err
}

// inBucket marks an error of the bucket.
func inBucket(verb string, err error) error {
	return &sinkError{sink: SinkObjects, err: fmt.Errorf("%s: %w", verb, err)}
}

// adoptManifests notes the manifests behind the last one in the stream, and their objects of the
// hours from one on.
func (l *life) adoptManifests(ctx context.Context, since layout.Hour) error {
	var head manifest.Head
	var began layout.Hour
	l.w.view(func(s *ledger.State) { head, began = s.Head, s.Began })
	for {
		m, next, err := l.readManifest(ctx, head.N+1)
		if err != nil {
			return err
		}
		if m == nil {
			return nil
		}
		if m.Prev != head.Hash {
			return inBucket("adopt manifests", &ConflictError{
				Name: layout.Manifest(l.a.o.Table, m.N), What: "it does not continue the manifest before it",
			})
		}
		// One that has ended is gone on with under another name.
		if m.Pipeline != l.a.o.Pipeline && layout.HourOf(m.Through.Time()) > began {
			return inBucket("adopt manifests", &ConflictError{
				Name: layout.Manifest(l.a.o.Table, m.N),
				What: fmt.Sprintf("pipeline %q archives the table below this prefix, too, so events are archived twice: give "+
					"one of them another archive.url", m.Pipeline),
			})
		}
		if err := l.adoptNamed(ctx, m, since); err != nil {
			return err
		}
		if err := l.w.append(ctx, writtenAs(m, next)); err != nil {
			return err
		}
		l.a.o.Logger.Warn("adopt a manifest that the archive's stream does not know", zap.Uint64("manifest", m.N))
		head = next
	}
}

// adoptNamed adopts the objects of a manifest that the stream lacks or has an open intent of, if
// their events may come again.
func (l *life) adoptNamed(ctx context.Context, m *manifest.Manifest, since layout.Hour) error {
	known, open := map[string]bool{}, map[string]*ledger.Intent{}
	l.w.view(func(s *ledger.State) {
		for i := range s.Objects {
			known[s.Objects[i].Name] = true
		}
		for _, i := range s.Intents {
			open[i.Name] = &i
		}
	})
	for _, h := range m.Hours {
		part := layout.Part{Table: l.a.o.Table, Class: h.Class, Hour: h.Hour}
		for _, o := range h.Objects {
			var err error
			switch {
			case open[o.Name] != nil:
				err = l.giveUp(ctx, open[o.Name])
			case !known[o.Name] && (h.Hour >= since || h.Class == transform.ClassHealed):
				err = l.adopt(ctx, bucket.Info{Name: o.Name, Size: o.Bytes}, part)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// writtenAs returns the entry of a manifest.
func writtenAs(m *manifest.Manifest, head manifest.Head) *ledger.ManifestWritten {
	w := &ledger.ManifestWritten{Head: head}
	for _, h := range m.Hours {
		if !h.Supplement {
			w.Closed = max(w.Closed, h.Hour+1)
		}
		for _, o := range h.Objects {
			w.Named = append(w.Named, o.Name)
		}
	}
	return w
}

// readManifest returns a manifest; nil when there is none.
func (l *life) readManifest(ctx context.Context, n uint64) (*manifest.Manifest, manifest.Head, error) {
	name := layout.Manifest(l.a.o.Table, n)
	r, err := l.a.o.Objects.Open(ctx, name)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, manifest.Head{}, nil
	}
	if err != nil {
		return nil, manifest.Head{}, inBucket("read "+name, err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		return nil, manifest.Head{}, inBucket("read "+name, err)
	}
	m, head, err := manifest.Decode(text)
	if err != nil {
		return nil, head, inBucket("read "+name, err)
	}
	return m, head, nil
}

// adoptObjects notes the objects of the hours from one on that are neither in the stream nor in a
// manifest.
func (l *life) adoptObjects(ctx context.Context, since layout.Hour) error {
	now := layout.HourOf(l.a.o.Now().Time())
	known, err := l.knownObjects(ctx, since)
	if err != nil {
		return err
	}
	if l.anyHealed(ctx, now-adoptHealed, known) { // they may be in manifests of longer ago
		known, err = l.knownObjects(ctx, now-adoptHealed)
	}
	if err != nil {
		return err
	}
	for _, class := range classes {
		if class == transform.ClassHealed { // few, if any, and of older hours
			if err := l.adoptBelow(ctx, layout.Class(l.a.o.Table, class), now-adoptHealed, known); err != nil {
				return err
			}
			continue
		}
		for day := since; day <= now+24; day += 24 {
			if err := l.adoptBelow(ctx, layout.Day(l.a.o.Table, class, day), since, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptBelow notes the objects below a prefix, of an hour or later, that are not known.
func (l *life) adoptBelow(ctx context.Context, prefix string, oldest layout.Hour, known map[string]bool) error {
	for x, err := range l.a.o.Objects.List(ctx, prefix) {
		if err != nil {
			return inBucket("list objects", err)
		}
		part, ok := layout.ParseObject(x.Name)
		if !ok || known[x.Name] || part.Hour < oldest {
			continue
		}
		if err := l.adopt(ctx, x, part); err != nil {
			return err
		}
		known[x.Name] = true
	}
	return nil
}

// anyHealed reports whether there is an object of class healed, of an hour or later, that is not
// known. An error counts as one: the next listing returns it.
func (l *life) anyHealed(ctx context.Context, oldest layout.Hour, known map[string]bool) bool {
	for x, err := range l.a.o.Objects.List(ctx, layout.Class(l.a.o.Table, transform.ClassHealed)) {
		part, ok := layout.ParseObject(x.Name)
		if err != nil || ok && part.Hour >= oldest && !known[x.Name] {
			return true
		}
	}
	return false
}

// knownObjects returns the names of the objects that the stream has, and those in manifests of
// hours from since on.
func (l *life) knownObjects(ctx context.Context, since layout.Hour) (map[string]bool, error) {
	known := map[string]bool{}
	var head manifest.Head
	l.w.view(func(s *ledger.State) {
		head = s.Head
		for _, o := range s.Objects {
			known[o.Name] = true
		}
		for _, i := range s.Intents {
			known[i.Name] = true
		}
	})
	for n := head.N; n > 0; n-- {
		m, _, err := l.readManifest(ctx, n)
		if err != nil {
			return nil, err
		}
		if m == nil { // `archive verify` finds it
			l.a.o.Logger.Error("a manifest is missing", zap.String("name", layout.Manifest(l.a.o.Table, n)))
			break
		}
		for _, name := range writtenAs(m, head).Named {
			known[name] = true
		}
		if layout.HourOf(m.Through.Time()) < since {
			break
		}
	}
	return known, nil
}

// adopt stores what an object covers. A file that is no object of ours is left to `archive verify`.
func (l *life) adopt(ctx context.Context, x bucket.Info, part layout.Part) error {
	r, err := l.a.o.Objects.Open(ctx, x.Name)
	if errors.Is(err, bucket.ErrNotFound) { // `archive verify` finds it
		l.a.o.Logger.Error("an object that a manifest names is missing", zap.String("name", x.Name))
		return nil
	}
	if err != nil {
		return inBucket("read object "+x.Name, err)
	}
	defer r.Close()
	foot, err := object.ReadFooter(r, r.Size())
	if err != nil || foot.Part != part {
		l.a.o.Logger.Error("a file among the objects is none of this archive", zap.String("name", x.Name), zap.Error(err))
		return nil
	}
	sum, err := sumOfObject(r)
	if err != nil {
		return inBucket("read object "+x.Name, err)
	}
	l.a.o.Logger.Warn("adopt an object that the archive's stream does not know", zap.String("object", x.Name))
	return l.w.append(ctx, &ledger.Adopted{
		Object: manifest.Object{Name: x.Name, Bytes: x.Size, SHA256: sum, Events: foot.Events, Digest: foot.Digest},
		Class:  part.Class, Hour: part.Hour, Coverage: foot.Coverage,
	})
}

// giveUp supersedes an intent, unless its object is there.
func (l *life) giveUp(ctx context.Context, i *ledger.Intent) error {
	done, err := l.compare(ctx, i)
	if errors.Is(err, bucket.ErrNotFound) {
		return l.w.append(ctx, &ledger.Superseded{Name: i.Name})
	}
	if err != nil {
		return &sinkError{sink: SinkObjects, err: fmt.Errorf("look for object %s: %w", i.Name, err)}
	}
	return l.w.append(ctx, done)
}

// compare returns what is known of the object of an intent that is there: an earlier attempt
// created it, or another owner. *ConflictError when it is another one.
func (l *life) compare(ctx context.Context, i *ledger.Intent) (*ledger.Done, error) {
	r, err := l.a.o.Objects.Open(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	foot, err := object.ReadFooter(r, r.Size())
	if unread := (*bucket.Error)(nil); errors.As(err, &unread) {
		return nil, err // says nothing about the content
	}
	if err != nil {
		return nil, &ConflictError{Name: i.Name, What: err.Error()}
	}
	if foot.Digest != i.Digest || foot.Events != i.Events {
		return nil, &ConflictError{Name: i.Name, What: fmt.Sprintf("%d events with digest %.8s, not %d with %.8s",
			foot.Events, foot.Digest, i.Events, i.Digest)}
	}
	sum, err := sumOfObject(r)
	if err != nil {
		return nil, err
	}
	return &ledger.Done{Name: i.Name, Bytes: r.Size(), SHA256: sum}, nil
}
