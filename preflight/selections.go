package preflight

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// Selection is which tables an entry of the configuration chooses.
type Selection struct {
	Path   string            `json:"path"`
	Source string            `json:"source,omitempty"`
	Tag    map[string]string `json:"tag,omitempty"`
	Tables []string          `json:"tables"` // in order
}

// find returns the configuration with the tables that its selections choose, and reports them.
// Offline there are none.
func (r *Report) find(ctx context.Context, cfg *config.Config, o Options) *config.Config {
	if !cfg.Selecting() || o.Offline {
		return cfg
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := catalog.ForCommand(ctx, cfg, o.Logger)
	if err == nil && found.Unlisted != nil {
		err = source.Explain(found.Unlisted)
	}
	if err != nil {
		c := &check{Report: r}
		c.failed("tables", "tables", fmt.Errorf("the tables of selections cannot be listed: %w", err))
	}
	if found == nil {
		return cfg
	}
	r.Environment = append(r.Environment, found.Problems...)
	for i := range cfg.Selections {
		r.chosen(&cfg.Selections[i], found.Tables)
	}
	return found.Config
}

// chosen reports which tables an entry chooses.
func (r *Report) chosen(s *config.Table, tables []config.Table) {
	chosen := Selection{Path: s.Path, Source: s.Source, Tag: s.Tag, Tables: []string{}}
	for _, t := range tables {
		if !t.Found || t.Path != s.Path {
			continue
		}
		chosen.Tables = append(chosen.Tables, t.Source)
		if reason := t.GoneReason(); reason != "" {
			r.Environment = append(r.Environment, warnf("gone", t.Path+".source", "retire it, or bring the table back",
				"%s: %s", t.Source, reason))
		}
	}
	if len(chosen.Tables) == 0 {
		r.Environment = append(r.Environment, warnf("chooses_nothing", s.Path,
			"is the region right, or a tag missing? tables that come later begin by themselves", "it chooses no table yet"))
	}
	r.Selections = append(r.Selections, chosen)
}
