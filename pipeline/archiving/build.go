package archiving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// built is an object in a file of scratch.
type built struct {
	file   *os.File
	intent ledger.Intent
	size   int64
	sha256 string
}

// discard gives the file's room back.
func (b *built) discard() { _ = b.file.Close() }

// temporary returns a file without a name: it is gone with the process, however that ends.
func (p *Place) temporary() (*os.File, error) {
	f, err := os.CreateTemp(p.Scratch, "archive-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// piece says which entries an object is made of.
type piece struct {
	key   ledger.PartKey
	first uint64
	last  uint64 // at most
	cutAt int64  // bytes of blocks after which it ends; 0: at last
}

// build writes the object of a piece to a file. It is a function of the entries and of the configuration: after a
// crash, and in any other process, it gives the same events in the same order.
func (l *life) build(ctx context.Context, form object.Options, p piece) (*built, error) {
	f, err := l.a.o.temporary()
	if err != nil {
		return nil, &sinkError{sink: SinkObjects, err: fmt.Errorf("build object: %w", err)}
	}
	b := &built{file: f, intent: ledger.Intent{
		Class: p.key.Class, Hour: p.key.Hour, First: p.first, Coverage: coverage.Set{}, Config: form.Hash(),
	}}
	if err := l.fill(ctx, b, form, p); err != nil {
		b.discard()
		return nil, err
	}
	return b, nil
}

func (l *life) fill(ctx context.Context, b *built, form object.Options, p piece) error {
	i := &b.intent
	part := layout.Part{Table: l.a.o.Table, Class: i.Class, Hour: i.Hour}
	foot := &object.Footer{Part: part, Coverage: i.Coverage, First: p.first}
	var hash ledger.Hash
	var failed error // of the stream, not of the file
	err := object.Write(b.file, form, foot, l.events(ctx, p, i, &hash, foot, &failed))
	if failed != nil {
		return failed
	}
	if err == nil {
		b.size, b.sha256, err = sumOf(b.file)
	}
	if err != nil {
		return &sinkError{sink: SinkObjects, err: fmt.Errorf("build object: %w", err)}
	}
	i.Events, i.Digest = foot.Events, foot.Digest
	i.Name = part.Object(i.First, i.Last, hash.String(), form.Format.Extension())
	return nil
}

// events yields the events of a piece, and notes in the intent what they cover.
func (l *life) events(
	ctx context.Context, p piece, i *ledger.Intent, hash *ledger.Hash, foot *object.Footer, failed *error,
) iter.Seq2[*transform.Event, error] {
	return func(yield func(*transform.Event, error) bool) {
		r := l.w.journal.Read(p.first)
		defer r.Close(context.WithoutCancel(ctx))
		covered := l.covered(p.key.Class)
		for i.Last < p.last && (p.cutAt == 0 || i.Stored < p.cutAt) {
			if *failed = l.yieldEntry(ctx, r.Next, p.key, covered, i, hash, yield); *failed != nil {
				if !errors.Is(*failed, errStop) {
					yield(nil, *failed)
				}
				return
			}
		}
		foot.Last = i.Last
	}
}

// errStop means that the reader of the events wants no more of them.
var errStop = fmt.Errorf("no more events are wanted: %w", context.Canceled)

// yieldEntry yields the events of the next entry.
func (l *life) yieldEntry(
	ctx context.Context, next func(context.Context) (uint64, []byte, error), key ledger.PartKey, covered coverage.Set,
	i *ledger.Intent, hash *ledger.Hash, yield func(*transform.Event, error) bool,
) error {
	seq, msg, err := next(ctx)
	if err != nil {
		return err
	}
	e, err := ledger.Decode(msg)
	if err != nil {
		return fmt.Errorf("read entry %d of the archive's stream: %w", seq, err)
	}
	i.Last = seq
	b, ok := e.Body.(*ledger.Events)
	if !ok {
		return nil
	}
	for n := range b.Groups {
		g := &b.Groups[n]
		if g.Class == key.Class && g.Hour == key.Hour {
			i.Coverage.Union(g.Coverage)
			i.Coverage.Subtract(covered)
			i.Stored += int64(g.Length)
			*hash = ledger.HashOf(msg)
		}
	}
	return e.Each(key.Class, int64(key.Hour), func(e *transform.Event) error {
		if covered.Contains(coverage.Key(e.Stream, e.Shard), e.Sequence) { // by an object that was adopted
			return nil
		}
		if !yield(e, nil) {
			return errStop
		}
		return nil
	})
}

// covered returns what objects have of a class. It is a copy: records that are stored meanwhile let the state forget
// what is old.
func (l *life) covered(class transform.EventClass) (c coverage.Set) {
	l.w.view(func(s *ledger.State) { c = s.Covered[class].Clone() })
	return c
}

// sumOf returns the size of a file and the SHA-256 of its bytes.
func sumOf(f *os.File) (int64, string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return 0, "", err
	}
	_, err = f.Seek(0, io.SeekStart)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// sumOfObject returns the SHA-256 of an object's bytes.
func sumOfObject(r bucket.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, r.Size())); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
