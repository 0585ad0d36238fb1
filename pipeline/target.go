package pipeline

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// claimTarget makes the target the pipeline's, or refuses it because it belongs to another pipeline: two into one target mix
// its rows, and neither would notice. Other tables of this pipeline may share it: the mappings are proved together.
func (r *stateRow) claimTarget(ctx context.Context) error {
	if r.targetClaimed {
		return nil
	}
	owner, err := r.bigtable.ClaimTarget(ctx, r.o.Name, r.Target)
	if err != nil {
		return err
	}
	if refused := CheckTarget(r.bigtable, r.o.Name, r.Target, owner); refused != nil {
		return refused
	}
	r.targetClaimed = true
	return nil
}

// CheckTarget returns why a pipeline may not write to a target that belongs to owner, see bigtable.TargetOwner; nil when it
// may.
func CheckTarget(sink *bigtable.Client, pipeline, target, owner string) *RefusedError {
	if owner == "" || owner == pipeline {
		return nil
	}
	return &RefusedError{
		What: fmt.Sprintf("Bigtable table %s belongs to pipeline %q: two pipelines in one target would mix its rows",
			target, owner),
		Hint: fmt.Sprintf("choose another target. Only if %q will never run again: `cbt deleterow %s '%s'`",
			owner, bigtable.StateTable, sink.TargetKey(target)),
	}
}

// keepMapping stores the mapping's text beside its hash, once per process: the program that wrote the rows can be looked up
// later, also by a pipeline whose mapping has changed.
func (r *stateRow) keepMapping(ctx context.Context) error {
	if r.mappingKept {
		return nil
	}
	text, err := r.program.Keep()
	if err != nil {
		return err
	}
	if err := r.bigtable.StoreMapping(ctx, r.o.Name, r.Source, mappingID(r.program), text); err != nil {
		return err
	}
	r.mappingKept = true
	return nil
}

// mappingID identifies a compiled mapping, by which the rows in a target were written.
func mappingID(p *transform.Program) string {
	h := p.Hash()
	return hex.EncodeToString(h[:])
}
