package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// carried is a configured table with all that is known about it.
type carried struct {
	config.Table
	path    string // in the configuration: tables[2]
	mapping *transform.Mapping
	info    source.TableInfo
	found   bool // DynamoDB has described it
	program *transform.Program
	splits  [][]byte // keys at which the target is divided when it is made
}

// compileTarget is what a table is compiled for.
func (c *carried) compileTarget(cfg *config.Config) transform.Table {
	return transform.Table{
		Pipeline: cfg.Pipeline, Source: c.Source, Target: c.Target, Schema: c.info.Schema, View: c.info.View, TTLAttr: c.info.TTLAttr,
		Mapping: c.mapping, OnTTLExpiry: c.OnTTLExpiry, StripGlobal: c.StripGlobal, Getenv: os.Getenv,
	}
}

// declared takes the key that the configuration declares, where DynamoDB is not asked.
func (c *carried) declared() {
	if schema, ok := c.Keys.Schema(); ok {
		c.info.Schema, c.found = schema, true
	}
}

// otherKeys says that the table's key is not the declared one.
func (c *carried) otherKeys() []config.Problem {
	have := config.KeysOf(c.info.Schema)
	if len(c.Keys) == 0 || slices.Equal(c.Keys, have) {
		return nil
	}
	return []config.Problem{{Severity: "error", Code: "keys", Path: c.path + ".keys", Hint: fmt.Sprintf("keys: [%s], or leave it out", strings.Join(have, ", ")),
		What: fmt.Sprintf("the key of %s is not [%s]", c.Source, strings.Join(c.Keys, ", "))}}
}

// parseMappings reads the mappings of the tables. Problems are said of the place in the mapping.
func parseMappings(tables []config.Table) (all []*carried, problems []config.Problem) {
	for i, t := range tables {
		c := &carried{Table: t, path: fmt.Sprintf("tables[%d]", i)}
		if !t.Mapping.IsZero() && t.Mapping.Data != nil {
			m, found := transform.ParseMapping(t.Mapping.File, t.Mapping.Data)
			c.mapping = m
			problems = append(problems, c.said(found)...)
		}
		all = append(all, c)
	}
	return all, problems
}

// said turns what the mapping's compiler says about a table into problems of the configuration.
func (c *carried) said(found []transform.Problem) (problems []config.Problem) {
	for _, p := range found {
		path := c.path + ".mapping"
		if p.Path != "" {
			path += "." + p.Path
		}
		problems = append(problems, config.Problem{
			Severity: p.Severity, Code: p.Code, File: p.File, Path: path, Line: p.Line, What: p.What, Hint: p.Hint,
		})
	}
	return problems
}

// compile makes the programs of all tables whose key is known. Tables that share a target are proved together.
func compile(cfg *config.Config, all []*carried) (problems []config.Problem) {
	var known []*carried
	var targets []transform.Table
	bySource := map[string]*carried{}
	for _, c := range all {
		if c.found {
			known, targets, bySource[c.Source] = append(known, c), append(targets, c.compileTarget(cfg)), c
		}
	}
	programs, found := transform.CompileAll(targets)
	for i, c := range known {
		c.program = programs[i]
		problems = append(problems, c.otherKeys()...)
		// Rule 8: an expired item that a rule archives must not vanish for want of an archive.
		if c.program != nil && c.program.Archives() && cfg.Archive == (config.Archive{}) {
			problems = append(problems, config.Problem{Severity: "error", Code: "missing", Path: c.path + ".mapping",
				What: "a rule says on_ttl_expiry: archive, but archival events have no place", Hint: "archive: {file: ./archive}"})
		}
	}
	for _, p := range found {
		c := bySource[p.Table]
		if c == nil {
			c = known[0]
		}
		problems = append(problems, c.said([]transform.Problem{p})...)
	}
	return problems
}

// describeTables asks DynamoDB about the tables; without a source it takes the keys that are declared. Whoever it does
// not know stays not found, with the reason.
func describeTables(ctx context.Context, src *source.Source, all []*carried) (errs []error) {
	for _, c := range all {
		if src == nil {
			c.declared()
			continue
		}
		info, err := src.Table(ctx, c.Source)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.info, c.found = info, true
	}
	return errs
}

// programs is what schema, explain and dlq retry begin with: all tables described and compiled, or the reason why not.
func (a *app) programs(ctx context.Context, cfg *config.Config, src *source.Source) ([]*carried, error) {
	all, problems := parseMappings(cfg.Tables)
	if config.Refused(problems) {
		return nil, a.refused(problems)
	}
	if errs := describeTables(ctx, src, all); len(errs) > 0 {
		return nil, exit.Source(errors.Join(errs...))
	}
	if problems := compile(cfg, all); config.Refused(problems) {
		return nil, a.refused(problems)
	}
	return all, nil
}

// refused prints the problems and returns the error for them.
func (a *app) refused(problems []config.Problem) error {
	a.problems(a.errs, problems)
	n := 0
	for _, p := range problems {
		if p.Severity == "error" {
			n++
		}
	}
	return exit.Usage("mend them, then `replicator check`", "%s has %s", a.configPath, render.Count(n, "error"))
}

// compiler compiles one table for the pipeline, as DynamoDB describes it at that moment. Tables with the same target
// are described and proved together.
func compiler(cfg *config.Config, t config.Table, src *source.Source) func(context.Context, source.TableInfo) (*transform.Program, error) {
	return func(ctx context.Context, info source.TableInfo) (*transform.Program, error) {
		var group []config.Table
		for _, other := range cfg.Tables {
			if other.Target == t.Target {
				group = append(group, other)
			}
		}
		all, problems := parseMappings(group)
		var own *carried
		var others []*carried
		for _, c := range all {
			if c.Source == t.Source {
				own, c.info, c.found = c, info, true
			} else {
				others = append(others, c)
			}
		}
		if errs := describeTables(ctx, src, others); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		if !config.Refused(problems) {
			problems = append(problems, compile(cfg, all)...)
		}
		if config.Refused(problems) {
			return nil, problemsError(problems)
		}
		return own.program, nil
	}
}

// problemsError joins the errors among the problems into one line.
func problemsError(problems []config.Problem) error {
	var said []string
	for _, p := range problems {
		if p.Severity == "error" {
			said = append(said, p.String())
		}
	}
	return errors.New("compile mapping: " + strings.Join(said, "; "))
}

// wantedTables are the Bigtable tables that the programs write, with everything the sink needs.
func wantedTables(cfg *config.Config, all []*carried) []bigtable.Table {
	var data []bigtable.Table
	for _, c := range all {
		data = append(data, bigtable.Table{Name: c.Target, Families: c.program.Families(), Splits: c.splits})
	}
	return bigtable.Tables(data, bigtableOptions(cfg, nil).Tombstones)
}
