// Package pipe has the pipelines of Apache Beam. In the copy of an export an element is a file:
//
//	Impulse → the numbers of files → Reshuffle → copyFile → Reshuffle → ended
//
// Items never pass the engine, which hands out files, repeats bundles and adds processes, and
// decides nothing. A batch of items as an element costs as much again in Java, and a write that is
// kept until a bundle ends is kept on Flink until the end of the job. compare.go has the
// comparison, in which short records of the rows pass the engine.
package pipe

import (
	"context"
	"errors"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/failure"
)

func init() {
	register.DoFn3x0[context.Context, []byte, func(int)](&numbers{})
	register.DoFn3x1[context.Context, int, func(int), error](&copyFile{})
	register.DoFn1x0[int](&ended{})
	register.Emitter1[int]()
}

// Copy adds the copy of an order's files to a pipeline.
func Copy(s beam.Scope, p worker.Place, files int) {
	s = s.Scope("copy")
	all := beam.ParDo(s, &numbers{Files: files}, beam.Impulse(s))
	over := beam.ParDo(s, &copyFile{Place: p}, beam.Reshuffle(s, all))
	// Prism 2.77 keeps a core busy with nothing while a bundle runs in a stage without an output.
	beam.ParDo0(s, &ended{}, beam.Reshuffle(s, over))
}

// numbers makes an element of each file.
type numbers struct{ Files int }

// ProcessElement emits the number of each file.
func (f *numbers) ProcessElement(_ context.Context, _ []byte, emit func(int)) {
	for n := range f.Files {
		emit(n)
	}
}

// copyFile copies a file. Engines send its exported fields to their workers, and log them.
type copyFile struct {
	Place worker.Place

	worker                   *worker.Worker
	closed                   bool
	files, items, handedBack beam.Counter
}

// Setup opens what the process shares. It is called for each instance of the function, and there
// may be one for each bundle.
func (f *copyFile) Setup() error {
	f.files = beam.NewCounter("replicator", "files")
	f.items = beam.NewCounter("replicator", "items")
	f.handedBack = beam.NewCounter("replicator", "items_handed_back")
	var err error
	if f.worker, err = worker.Shared(f.Place); errors.Is(err, worker.ErrClosed) {
		f.closed = true
		return nil
	}
	return hinted(err)
}

// ProcessElement copies a file, and emits its number once it is copied. Where the order is closed
// it does nothing and succeeds: an engine would repeat a failure, and nothing is left to do. The
// counters are for the engine's pages alone.
func (f *copyFile) ProcessElement(ctx context.Context, n int, emit func(int)) error {
	if f.closed {
		return nil
	}
	done, err := f.worker.File(ctx, n)
	switch {
	case errors.Is(err, worker.ErrClosed):
		log.Infof(ctx, "file %d: the order is closed", n)
		return nil
	case err != nil:
		return hinted(err)
	}
	emit(n)
	if done.Before {
		return nil
	}
	f.files.Inc(ctx, 1)
	f.items.Inc(ctx, done.Mark.Items)
	f.handedBack.Inc(ctx, int64(len(done.Mark.HandedBack)))
	return nil
}

// ended ends the pipeline. It proves nothing of a file: the mark does.
type ended struct{}

// ProcessElement does nothing.
func (*ended) ProcessElement(int) {}

// hinted returns an error with what to do in its text: an engine transports nothing else.
func hinted(err error) error {
	if _, hint := failure.Of(err); err != nil && hint != "" {
		return errors.New(err.Error() + " (" + hint + ")")
	}
	return err
}
