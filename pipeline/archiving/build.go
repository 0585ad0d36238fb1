package archiving

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
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

// build writes an object to a file. It is a function of the entries and of the configuration: after
// a crash, and in any other process, it gives the same events in the same order.
func (l *life) build(form object.Options, g *gathered) (*built, error) {
	f, err := l.a.o.temporary()
	if err != nil {
		return nil, &sinkError{sink: SinkObjects, err: fmt.Errorf("build object: %w", err)}
	}
	b := &built{file: f, intent: g.intent}
	err = l.fill(b, form, g)
	if err == nil {
		return b, nil
	}
	b.discard()
	if errors.Is(err, ledger.ErrBlock) { // the stream's trouble, not the bucket's
		return nil, err
	}
	return nil, &sinkError{sink: SinkObjects, err: fmt.Errorf("build object: %w", err)}
}

func (l *life) fill(b *built, form object.Options, g *gathered) (err error) {
	i := &b.intent
	part := layout.Part{Table: l.a.o.Table, Class: i.Class, Hour: i.Hour}
	foot := &object.Footer{Part: part, Coverage: i.Coverage, First: i.First, Last: i.Last}
	if err := object.Write(b.file, form, foot, eventsOf(g)); err != nil {
		return err
	}
	i.Events, i.Digest, i.Config = foot.Events, foot.Digest, form.Hash()
	i.Name = part.Object(i.First, i.Last, g.hash.String(), form.Format.Extension())
	b.size, b.sha256, err = sumOf(b.file)
	return err
}

// errStop ends the reading of events when the consumer breaks its loop.
var errStop = errors.New("no more events are wanted")

// eventsOf yields the events of an object.
func eventsOf(g *gathered) iter.Seq2[*transform.Event, error] {
	return func(yield func(*transform.Event, error) bool) {
		err := g.each(func(e *transform.Event) error {
			if !yield(e, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
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
