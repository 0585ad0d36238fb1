package apply

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// archiver is the target archive: it passes TTL deletes to it, in the order of the log.
type archiver struct {
	o       *Options
	shared  *Shared
	letters *DeadLetters
	queue   chan job
}

// archiveBatch is how many events share one write of the archive.
const archiveBatch = 256

func newArchiver(shared *Shared, o *Options, letters *DeadLetters) *archiver {
	return &archiver{o: o, shared: shared, letters: letters, queue: make(chan job, archiveBatch)}
}

func (a *archiver) wants(c *change.Change) bool { return c.TTL }

func (a *archiver) submit(ctx context.Context, c *change.Change, e *openEntry) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a.queue <- job{c: *c, entry: e}:
		return nil
	}
}

func (a *archiver) run(ctx context.Context) error {
	dec := new(change.Decoder)
	for {
		var batch []job
		select {
		case <-ctx.Done():
			return nil
		case j := <-a.queue:
			batch = a.collect(j)
		}
		if err := a.write(ctx, dec, batch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("write archive: %w", err)
		}
		for _, j := range batch {
			j.entry.ack(1)
		}
	}
}

// collect adds what waits to the first job, up to a batch.
func (a *archiver) collect(first job) []job {
	batch := []job{first}
	for len(batch) < archiveBatch {
		select {
		case j := <-a.queue:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// write makes the events of a batch durable. A change that makes no event is refused or not archived; either way the
// mark may pass it.
func (a *archiver) write(ctx context.Context, dec *change.Decoder, batch []job) error {
	dec.Reset()
	var events []*transform.Event
	for i := range batch {
		c := &batch[i].c
		event, err := a.o.Table.Program.Archive(dec, c)
		if why := outcome.OfChange(err); why.Action == outcome.DeadLetter {
			if err := a.letters.store(ctx, SinkArchive, c, batch[i].entry.at.Seq, why); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if event != nil {
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		return nil
	}
	if err := a.shared.archive.Write(ctx, events); err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}
