package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// lookAgain looks again at the foreign and sealed cells of a full comparison, and calls still with
// those that have no known owner this time either. Items that own one of the others by now become
// candidates.
func (s *Settler) lookAgain(ctx context.Context, found *Findings, still func(*Open) error) error {
	items, errItems := secondPart(found.items)
	rows, errRows := secondPart(found.rows)
	if err := errors.Join(errItems, errRows); err != nil {
		return err
	}
	look := s.secondLook(still)
	look.Owned = func(kind Kind, of item, row []byte) {
		items.Add(extsort.Record{Row: itemRow(nil, of), Name: row, Value: []byte(kind)})
	}
	look.Untold = func(o *Open) { rows.Add(extsort.Record{Row: o.Row, Name: columnName(o.Family, o.Qualifier)}) }
	more, err := look.at(ctx, found.read+proofMargin, found.cells.Each)
	if err != nil {
		return fmt.Errorf("look again at cells without an owner: %w", err)
	}
	found.Counts.Foreign = found.seen.Foreign + more[Foreign]
	found.Counts.Unproven = found.seen.Unproven + more[Sealed]
	return errors.Join(items.Save("", nil, true), rows.Save("", nil, true))
}

// secondPart returns a writer for what a second look adds to the findings, in place of what an
// earlier one has added.
func secondPart(s *extsort.Store) (*extsort.Writer, error) {
	if err := s.Drop(1); err != nil {
		return nil, err
	}
	return s.Writer(1, 0)
}

func (s *Settler) secondLook(still func(*Open) error) recheck {
	return recheck{Tables: s.Tables, Target: s.Target, Prove: s.Prove, Now: s.Now,
		Lead: func() change.Millis { return s.Lead }, Still: still}
}
