package archiving

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// frozen lets an owner freeze before it creates an object, and returns when it has.
func (w *world) frozen(r *run, records []ledger.Record) (wake func()) {
	w.t.Helper()
	reached, released := make(chan struct{}), make(chan struct{})
	w.files.hook(func(name string) error {
		if strings.Contains(name, "tr_class=") {
			w.files.hook(nil, nil)
			close(reached)
			<-released
		}
		return nil
	}, nil)
	wake = sync.OnceFunc(func() { close(released) })
	w.t.Cleanup(wake)
	r.store(records)
	w.await("it is about to create an object", isOver(reached))
	return wake
}

// TestFrozenOwnerAddsNothing: another owner has created its object; it stores nothing more.
func TestFrozenOwnerAddsNothing(t *testing.T) {
	for name, edit := range map[string]func(*Options){
		"the same configuration": nil,
		"another format":         func(o *Options) { o.Form.Format = object.JSONLines },
		"other columns": func(o *Options) {
			o.Form.Columns = []object.Column{{Name: "v", Path: []string{"v"}, Type: object.String}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			records := w.deleted(0, 6)
			old := w.start()
			wake := w.frozen(old, records)
			w.edit = edit
			r := w.start()
			r.store(w.deleted(1, 6))
			s := r.closed(1)
			objects, _ := w.names()
			wake()
			w.await("the frozen owner stops", func() bool {
				return strings.Contains(old.Status().Trouble, ErrOvertaken.Error())
			})
			old.end()
			after, err := w.state()
			if now, _ := w.names(); err != nil || len(now) != len(objects) || after.Claim.Epoch != 2 {
				t.Errorf("%d objects, then %d; claim %v, %v", len(objects), len(now), after.Claim, err)
			}
			w.proven(s)
		})
	}
}

// TestObjectInTheWayHaltsObjectsAlone: it is another one; the subject goes on, and so do the
// objects when it is moved.
func TestObjectInTheWayHaltsObjectsAlone(t *testing.T) {
	for name, other := range map[string]string{"another object": "", "no object": "garbage"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			taken := ""
			w.files.hook(func(name string) error {
				if !strings.Contains(name, "tr_class=") {
					return nil
				}
				w.files.hook(nil, nil)
				taken = name
				return w.putBeside(name, other)
			}, nil)
			core, logs := observer.New(zap.ErrorLevel)
			w.edit = func(o *Options) { o.Subject, o.Logger = publisher{w}, zap.New(core) }
			r := w.start()
			records := w.deleted(0, 12)
			r.store(records)
			w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == "archive_conflict" })
			if why := r.Status().ObjectsTrouble; !strings.Contains(why, "move it out of the archive") {
				t.Errorf("status says %q", why)
			}
			w.await("all are published", func() bool { return w.published() == 12 })
			w.await("an operator is asked to act", func() bool {
				return logs.FilterField(zap.String("code", "archive_conflict")).Len() > 0
			})
			w.moveAway(taken)
			w.await("the halt is over", func() bool { return w.halted(SinkObjects) == "" })
			w.proven(r.closed(0))
			if logs.Len() != 1 {
				t.Errorf("%d errors in the log of one halt: %v", logs.Len(), logs.All())
			}
		})
	}
}

// TestObjectWithAnotherItemIsInTheWay: it has the same events, of which one has another item.
func TestObjectWithAnotherItemIsInTheWay(t *testing.T) {
	w := newWorld(t)
	record := w.deleted(0, 1)
	other := *record[0].Event
	other.Item = []byte(`{"pk":{"N":"0"}}`)
	w.files.hook(func(name string) error {
		w.files.hook(nil, nil)
		return w.putObject(name, &other)
	}, nil)
	r := w.start()
	r.store(record)
	w.await("the objects are halted", func() bool { return w.halted(SinkObjects) == "archive_conflict" })
}

func (w *world) published() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

// putBeside creates something else under a name: text, or a whole object with one other event.
func (w *world) putBeside(name, text string) error {
	if text == "" {
		return w.putObject(name, w.records[0].Event)
	}
	return w.putFile(name, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}

// putObject creates an object with one event.
func (w *world) putObject(name string, e *transform.Event) error {
	return w.putFile(name, func(f *os.File) error {
		foot := &object.Footer{Part: partOf(e), Coverage: coverageOf(e)}
		return object.Write(f, object.Options{Format: object.Parquet}, foot, func(yield func(*transform.Event, error) bool) {
			yield(e, nil)
		})
	})
}

func (w *world) putFile(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp(w.t.TempDir(), "")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return w.files.Bucket.Create(context.Background(), name, f, size)
}

func (w *world) moveAway(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// TestBucketThatRefusesHoldsNobody: what is stored waits in the stream, which is trimmed when the
// bucket takes it.
func TestBucketThatRefusesHoldsNobody(t *testing.T) {
	for name, refusal := range map[string]error{
		"no permission": os.ErrPermission, "no room": errors.New("no space left on device"), "away": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.files.hook(func(string) error { return refusal }, nil)
			w.edit = func(o *Options) { o.Subject = publisher{w} }
			r := w.start()
			r.store(w.deleted(0, 30))
			w.await("the objects are halted", func() bool { return w.halted(SinkObjects) != "" })
			r.store(w.deleted(1, 30))
			w.await("all are published", func() bool { return w.published() == 60 })
			w.files.hook(nil, nil)
			w.proven(r.closed(1))
			w.await("the halt is over", func() bool { return w.halted(SinkObjects) == "" })
		})
	}
}
