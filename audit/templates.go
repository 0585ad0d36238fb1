package audit

import (
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// Templates returns the templates of row keys, by rule. They are the user's own words, and hold no
// data.
func Templates(p *transform.Program) map[string]string {
	all := map[string]string{}
	for _, r := range p.Report() {
		all[r.Name] = r.Row
	}
	return all
}

// Settler returns what settles items of the pair and lists the cells that differ, with or without
// values.
func Settler(s *pair.Pair, values bool) verify.Settler {
	settler := s.Settler()
	settler.Cells = maxCells
	if values {
		settler.Values = maxValue
	}
	return settler
}
