package pipeline

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// claimTarget makes the target the pipeline's, or refuses it because another pipeline has it: two into one target mix
// its rows, and neither would notice. Other tables of this pipeline may share it: the mappings are proved together.
func (t *table) claimTarget(ctx context.Context) error {
	if t.owned {
		return nil
	}
	owner, err := t.p.sink.ClaimTarget(ctx, t.p.o.Name, t.Target)
	if err != nil {
		return err
	}
	if refused := CheckTarget(t.p.sink, t.p.o.Name, t.Target, owner); refused != nil {
		return refused
	}
	t.owned = true
	return nil
}

// CheckTarget says why a pipeline may not write to a target that belongs to owner, see bigtable.TargetOwner; nil when
// it may.
func CheckTarget(sink *bigtable.Client, pipeline, target, owner string) *RefusedError {
	if owner == "" || owner == pipeline {
		return nil
	}
	return &RefusedError{
		What: fmt.Sprintf("Bigtable table %s belongs to pipeline %q: two pipelines in one target would mix its rows", target, owner),
		Hint: fmt.Sprintf("choose another target. Only if %q will never run again: `cbt deleterow %s '%s'`",
			owner, bigtable.StateTable, sink.TargetKey(target)),
	}
}

// keepMapping stores the mapping's text beside its hash, once per process: the program that wrote the rows can be told
// later, also by a pipeline whose mapping has changed.
func (t *table) keepMapping(ctx context.Context) error {
	if t.kept {
		return nil
	}
	text, err := t.Program.Keep()
	if err != nil {
		return err
	}
	if err := t.p.sink.KeepMapping(ctx, t.p.o.Name, t.Source, t.mapping(), text); err != nil {
		return err
	}
	t.kept = true
	return nil
}

// upgradeRow raises the table's row in Bigtable to the newest format, unless the row is not known yet: then confirm does
// it. Rule 11: builds that do not know the format refuse the row from then on.
func (t *table) upgradeRow(ctx context.Context) error {
	if t.row == nil || t.stale || t.row.Format >= bigtable.StateFormat {
		return nil
	}
	return t.setRow(ctx, func(s *bigtable.State) {
		s.Format, s.Identity.Target = bigtable.StateFormat, t.p.sink.TargetName(t.Target)
	})
}
