package pipeline

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/transform"
)

// Names of the sinks: in marks, metrics, dead letters.
const (
	sinkBigtable = "bigtable"
	sinkArchive  = "archive"
)

// sinks makes the passes over the log. They are independent: each has its own mark.
func (t *table) sinks(s *checkpoint.State, in *ingest) []*applier {
	lanes := func() target { return newLanes(t, sinkBigtable, t.p.o.Lanes) }
	all := []*applier{newApplier(t, in, sinkBigtable, lanes, s)}
	if t.Archive && t.p.arch != nil {
		all = append(all, newApplier(t, in, sinkArchive, func() target { return newArchiver(t) }, s))
	}
	return all
}

// markOf returns where a sink goes on: at its mark, or, when it is new, at the end of the log as it is now.
func markOf(s *checkpoint.State, sink string) checkpoint.Mark {
	if m, ok := s.Marks[sink]; ok {
		return m
	}
	return checkpoint.Mark{Seq: s.Seq, Hash: s.Hash}
}

// archiver passes TTL deletes to the archive, in the order of the log.
type archiver struct {
	t     *table
	queue chan job
}

// archiveBatch is how many events share one write of the archive.
const archiveBatch = 256

func newArchiver(t *table) *archiver { return &archiver{t: t, queue: make(chan job, archiveBatch)} }

func (a *archiver) wants(c *change.Change) bool { return c.TTL }

func (a *archiver) take(ctx context.Context, c *change.Change, e *pending) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a.queue <- job{c: *c, e: e}:
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
			j.e.done(1)
		}
	}
}

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

// write makes the events of a batch durable. A change that makes no event is refused or not archived; either
// way the mark may pass it.
func (a *archiver) write(ctx context.Context, dec *change.Decoder, batch []job) error {
	dec.Reset()
	var events []*transform.Event
	for i := range batch {
		c := &batch[i].c
		ev, err := a.t.Program.Archive(dec, c)
		if why := outcome.OfChange(err); why.Action == outcome.DeadLetter {
			if err := a.t.letters.refuse(ctx, sinkArchive, c, batch[i].e.at.Seq, why); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if ev != nil {
			events = append(events, ev)
		}
	}
	if len(events) == 0 {
		return nil
	}
	if err := a.t.p.arch.Write(ctx, events); err != nil {
		return &outcome.SinkError{Err: err}
	}
	return nil
}
