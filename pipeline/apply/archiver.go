package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// archiver is the target archive: it copies deletions into the archive's stream, in the order of
// the log.
type archiver struct {
	o       *Options
	letters *DeadLetters
	queue   chan job
}

// archiveBatch is how many deletions are stored together at most.
const archiveBatch = 2048

func newArchiver(o *Options, letters *DeadLetters) *archiver {
	return &archiver{o: o, letters: letters, queue: make(chan job, archiveBatch)}
}

func (a *archiver) wants(c *change.Change) bool {
	return c.TTL || c.Op == change.Remove && a.o.Table.Classes.others()
}

func (a *archiver) submit(ctx context.Context, c *change.Change, e *protocol.TrackedEntry) error {
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
			j.entry.Ack(1)
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

// write makes the records of a batch durable in the archive's stream, or as dead letters.
func (a *archiver) write(ctx context.Context, dec *change.Decoder, batch []job) error {
	var records []ledger.Record
	var of []int // the job of each record
	for i := range batch {
		r, wanted, err := a.record(ctx, dec, &batch[i])
		if err != nil {
			return err
		}
		if wanted {
			records, of = append(records, r), append(of, i)
		}
	}
	for done := 0; done < len(records); {
		stored, err := a.o.Archive.Store(ctx, records[done:])
		done += stored
		large := (*archiving.TooLargeError)(nil)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &large):
			if err := a.letter(ctx, &batch[of[done]], &records[done], "too_large", err); err != nil {
				return err
			}
		case errors.Is(err, archiving.ErrStalled):
			// The stream has room for the records that mark them as dead letters.
			for n := done; n < len(records); n++ {
				if records[n].Verdict != ledger.Keep {
					continue
				}
				if err := a.letter(ctx, &batch[of[n]], &records[n], "archive_stalled", err); err != nil {
					return err
				}
			}
		default:
			return &outcome.SinkError{Err: err}
		}
	}
	return nil
}

// letter makes a record a dead letter of the archive.
func (a *archiver) letter(ctx context.Context, j *job, r *ledger.Record, code string, err error) error {
	r.Verdict = ledger.Letter
	why := outcome.Outcome{Action: outcome.DeadLetter, Code: code, Reason: err.Error()}
	return a.letters.store(ctx, checkpoint.SinkArchive, &j.c, j.entry.At.Seq, why)
}

// record returns what the archive's stream is to know of a change; false when that is nothing.
func (a *archiver) record(ctx context.Context, dec *change.Decoder, j *job) (r ledger.Record, wanted bool, err error) {
	dec.Reset()
	r.Event, err = a.o.Table.Program.Archive(dec, &j.c)
	if why := outcome.OfChange(err); why.Action == outcome.DeadLetter {
		r.Event, r.Verdict = transform.PlaceOf(&j.c), ledger.Letter
		return r, true, a.letters.store(ctx, checkpoint.SinkArchive, &j.c, j.entry.At.Seq, why)
	}
	if err != nil {
		return r, false, err
	}
	if r.Event != nil {
		r.Class = a.o.Table.Classes.of(r.Class)
	} else {
		r.Event, r.Verdict = transform.PlaceOf(&j.c), ledger.Skip
	}
	if r.Verdict == ledger.Keep && a.letters.has(checkpoint.SinkArchive, &j.c) {
		// It became one before a crash, and would be taken now: what takes it is a retry of the
		// letter, or it would be archived twice.
		r.Verdict = ledger.Letter
	}
	return r, j.c.TTL || r.Verdict != ledger.Skip && r.Class != "", nil
}
