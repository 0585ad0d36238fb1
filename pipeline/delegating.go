package pipeline

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/transform"
)

// unfit returns why workers cannot copy the table; "" where they can, or no copy is delegated. The
// mappings of other tables of the target may not be known yet: planOrder needs them.
func (t *table) unfit(s *checkpoint.State) transform.Unfit {
	if !s.WorkersMayWrite() {
		return ""
	}
	sharing, _ := t.sharing()
	return UnfitForWorkers(t.row.Program, sharing, s.Floor() == 0)
}

// UnfitForWorkers returns why workers cannot copy a table that shares its target with others; "" where
// they can. first is set where no earlier life wrote rows of the table.
func UnfitForWorkers(own *transform.Program, sharing []*transform.Program, first bool) transform.Unfit {
	if why := own.Unfit(first); why != "" {
		return why
	}
	if slices.ContainsFunc(sharing, (*transform.Program).HasSecrets) {
		return transform.UnfitSecrets
	}
	return ""
}

// planOrder returns what an order for workers holds of the table and its target.
func (t *table) planOrder() (*delegation.Order, error) {
	sharing, err := t.sharing()
	if err != nil {
		return nil, fmt.Errorf("compile the other tables of the target: %w", err)
	}
	o := &delegation.Order{
		TableID: t.info.ID, Target: t.Target, Profile: t.bigtable.CopyProfileName(), Tombstones: t.bigtable.Tombstones(),
		Heartbeats: delegation.Heartbeats{Prefix: t.Heartbeat.Keys.Prefix, List: t.Heartbeat.Keys.List},
	}
	for _, p := range append([]*transform.Program{t.row.Program}, sharing...) {
		kept, err := p.Keep()
		if err != nil {
			return nil, err
		}
		hash, of := p.Hash(), p.Table()
		o.Mappings = append(o.Mappings, delegation.Mapping{
			Table: of.Source, Schema: of.Schema, View: of.View, TTLAttr: of.TTLAttr, Hash: hex.EncodeToString(hash[:]), Kept: kept,
		})
	}
	slices.SortFunc(o.Mappings, func(a, b delegation.Mapping) int { return cmp.Compare(a.Table, b.Table) })
	return o, nil
}
