package pipeline

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/transform"
)

// The steps of an accepted mapping; each may be repeated, and after a crash between any two the
// next life goes on:
//
//	control {accept} → control {accept, done} → row {mapping} → copy of the whole table → its last mark
//
// The first step is the operator's. From the second on every change is applied with the new
// mapping. What was applied with the old one has versions up to TopClock, so the copy reads its
// first page when a minute below the reading is above that: it replaces every row, because all rows
// are of class R with the same keys under both mappings. So the log need not be drained before, and
// reading never waits for Bigtable.

// switchMapping does what is left of an accepted mapping. Without the row it does nothing: the life
// begins anew once the row is known.
func (t *table) switchMapping(ctx context.Context, w *queue.Writer) error {
	s := w.State()
	agrees := t.row.Agrees()
	if t.row.AwaitSwitch(s.Accepting != nil && !agrees); !agrees {
		return nil
	}
	if s.Accepting != nil {
		if err := t.appendSwitch(ctx, w, *s.Accepting); err != nil {
			return err
		}
	}
	if in := s.Identity; in != nil && in.Mapping == staterow.MappingID(t.row.Program) {
		if err := t.beatWhile(ctx, w, t.row.NoteMapping); err != nil {
			return err
		}
	}
	return t.beginMappingCopy(ctx, w)
}

// appendSwitch compiles both mappings, and stores that the new one is in force, or that it is not
// accepted.
func (t *table) appendSwitch(ctx context.Context, w *queue.Writer, a checkpoint.Accept) error {
	var next *transform.Program
	var refused string
	delegated := w.State().WorkersMayWrite()
	err := t.beatWhile(ctx, w, func(ctx context.Context) (err error) {
		next, refused, err = t.acceptedProgram(ctx, a, delegated)
		return err
	})
	if err != nil {
		return err
	}
	if refused != "" {
		t.log.Error("the mapping is not accepted", zap.String("reason", refused))
		a.To = a.From
	}
	a.Done = true
	if _, err := w.Append(ctx, &checkpoint.Control{Accept: &a, By: "owner", At: t.now()}, nil); err != nil {
		return fmt.Errorf("append accepted mapping: %w", err)
	}
	if refused != "" {
		if staterow.MappingID(t.row.Program) != a.From {
			return staterow.OtherMapping(t.Source)
		}
		return nil
	}
	t.log.Info("the mapping is switched", zap.String("from", a.From), zap.String("to", a.To))
	t.row.Switch(next)
	t.families.Add(t.Target, t.Source, next.Families())
	return nil
}

// acceptedProgram returns the program of an accepted mapping. refused is why it may not be accepted
// after all.
//
// Rule 6: a mapping is switched only where a copy replaces whatever the old one has written.
func (t *table) acceptedProgram(
	ctx context.Context, a checkpoint.Accept, delegated bool,
) (p *transform.Program, refused string, err error) {
	if t.CompileKept == nil {
		return nil, "this build has no stored mappings", nil
	}
	if delegated {
		return nil, "workers copy the table with the mapping that it has: `replicator copy takeback` ends that", nil
	}
	from, allFrom, err := t.compileStored(ctx, a.From)
	if err != nil {
		return nil, "", err
	}
	to, allTo, err := t.compileStored(ctx, a.To)
	if err != nil {
		return nil, "", err
	}
	for hash, p := range map[string]*transform.Program{a.From: from, a.To: to} {
		if staterow.MappingID(p) != hash {
			return nil, "the mapping " + hash + " cannot be compiled as it was: are its secrets set?", nil
		}
	}
	if diff := transform.DiffMapping(from, to, allFrom, allTo); !diff.Acceptable {
		return nil, diff.Why, nil
	}
	return to, "", nil
}

// compileStored compiles the mapping that is stored under a hash.
func (t *table) compileStored(
	ctx context.Context, hash string,
) (own *transform.Program, all []*transform.Program, err error) {
	text, err := t.bigtable.LoadMapping(ctx, t.o.Name, t.Source, hash)
	if err != nil {
		return nil, nil, err
	}
	return t.CompileKept(t.info, text)
}

// beginMappingCopy stores that the copy begins that an accepted mapping needs.
func (t *table) beginMappingCopy(ctx context.Context, w *queue.Writer) error {
	c := protocol.MappingCopy(w.State(), t.now())
	if c == nil {
		return nil
	}
	c.Parts, c.Items, c.Bytes = resync.Segments(t.info.Bytes), t.info.Items, t.info.Bytes
	if _, err := w.Append(ctx, c, nil); err != nil {
		return fmt.Errorf("append copy: %w", err)
	}
	t.log.Info("the table is copied with its new mapping", zap.String("copy", c.ID), zap.Int("parts", c.Parts))
	return nil
}

// raise raises the log to the format of the pipeline, before anything else is appended.
func (t *table) raise(ctx context.Context, w *queue.Writer) (err error) {
	t.full, err = t.format.RaiseLog(ctx, w, t.log)
	return err
}
