package catalog

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
)

// Select returns the configured tables, or only the one with the given source, its name or its ARN,
// if that is not empty.
func Select(cfg *config.Config, source string) ([]config.Table, error) {
	if source == "" {
		return cfg.Tables, nil
	}
	var names []string
	for _, t := range cfg.Tables {
		if t.Source == source || t.ARN != "" && t.ARN == source {
			return []config.Table{t}, nil
		}
		names = append(names, t.Source)
	}
	return nil, failure.Usagef("the configuration has "+strings.Join(names, ", "), "no table %q in %s", source, cfg.File)
}

// About returns the configuration with only the tables that a command about one of them needs: the
// table with the given source, its name or its ARN, and the others of its target. The mappings of
// one target are proved together. So a table of another target that cannot be described, or has
// an error, does not keep the command from this one. All tables are left if source is empty.
func About(cfg *config.Config, source string) *config.Config {
	selected, err := Select(cfg, source)
	if err != nil || source == "" {
		return cfg
	}
	about := *cfg
	about.Tables = nil
	for i, t := range cfg.Tables {
		if t.Source == selected[0].Source || t.Target == selected[0].Target && !t.ArchivedOnly() {
			t.Path = cmp.Or(t.Path, fmt.Sprintf("tables[%d]", i))
			about.Tables = append(about.Tables, t)
		}
	}
	return &about
}
