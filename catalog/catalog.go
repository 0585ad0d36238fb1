package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
	"github.com/tailrace-cdc/replicator/transform"
)

// Catalog is the configured tables, in the order of the configuration.
type Catalog struct {
	Tables  []*Table
	LeftOut []LeftOut // by Load

	cfg *config.Config
}

// Table is a configured table with its parsed mapping, its description and its compiled program.
type Table struct {
	config.Table
	Path      string             // in the configuration: tables[2]
	Mapping   *transform.Mapping // nil: the table has none, or it could not be parsed
	Info      source.TableInfo   // as DynamoDB describes it
	Described bool               // Info is known, at least the key
	Program   *transform.Program // nil: not compiled
	Splits    [][]byte           // row keys at which the target is split when it is made
}

// ProblemsError is returned for tables with errors in their mappings or read budgets.
type ProblemsError struct{ Problems []problem.Problem }

func (e *ProblemsError) Error() string { return "compile table: " + problem.Join(e.Problems) }

// Parse reads the mappings of all tables. The problems name their place in the mapping.
func Parse(cfg *config.Config) (*Catalog, []problem.Problem) {
	c := &Catalog{cfg: cfg}
	var problems []problem.Problem
	told := map[string]bool{} // the tables of a selection have one mapping
	for i, t := range cfg.Tables {
		table := &Table{Table: t, Path: cmp.Or(t.Path, fmt.Sprintf("tables[%d]", i))}
		if !t.Mapping.IsZero() && t.Mapping.Data != nil {
			mapping, found := transform.ParseMapping(t.Mapping.File, t.Mapping.Data)
			table.Mapping = mapping
			if !told[table.Path] {
				problems = append(problems, table.Problems(found)...)
			}
			told[table.Path] = true
		}
		c.Tables = append(c.Tables, table)
	}
	return c, problems
}

// Mappings returns the problems of the mappings of all entries of the file, including selections.
func Mappings(cfg *config.Config) []problem.Problem {
	all := *cfg
	all.Tables = append(slices.Clone(cfg.Tables), cfg.Selections...)
	_, problems := Parse(&all)
	return problems
}

// Load parses, describes and compiles all tables. Mappings with errors are a *ProblemsError. A
// table of a selection that has errors of its own is left out, as long as others are left.
func Load(ctx context.Context, cfg *config.Config, src *source.Source) (*Catalog, error) {
	return load(ctx, cfg, src, false)
}

// LoadEach is Load for a command that works on one target after the other: a table that cannot be
// described is left out, and the others of its target with it, as long as others are left.
func LoadEach(ctx context.Context, cfg *config.Config, src *source.Source) (*Catalog, error) {
	return load(ctx, cfg, src, true)
}

func load(ctx context.Context, cfg *config.Config, src *source.Source, each bool) (*Catalog, error) {
	c, problems := Parse(cfg)
	if problem.AnyError(problems) {
		return nil, &ProblemsError{problems}
	}
	var errs []error
	missing := map[string]error{} // by Table.whole
	for _, t := range slices.Clone(c.Tables) {
		if src == nil {
			t.TakeDeclaredKey()
		} else if err := t.Describe(ctx, src); err != nil && !c.leaveOutGone(t, err) {
			errs = append(errs, err)
			missing[t.whole()] = errors.Join(missing[t.whole()], err)
		}
	}
	if len(errs) > 0 && (!each || !c.leaveOutTargets(missing)) {
		return nil, source.Explain(errors.Join(errs...))
	}
	if problems := c.leaveOutUnfit(c.Compile()); problem.AnyError(problems) {
		return nil, &ProblemsError{problems}
	}
	if len(c.Tables) == 0 && len(c.LeftOut) > 0 {
		return nil, c.LeftOut[0].Err
	}
	return c, nil
}

// KeysDeclared reports whether the configuration declares the key of every table, so that the
// mappings can be compiled without DynamoDB.
func KeysDeclared(cfg *config.Config) bool {
	return !slices.ContainsFunc(cfg.Tables, func(t config.Table) bool {
		_, declared := t.Keys.Schema()
		return !declared
	})
}

// Describe describes every table from DynamoDB. It returns the error of each table that cannot be
// described; those tables keep Described false.
func (c *Catalog) Describe(ctx context.Context, src *source.Source) (errs []error) {
	for _, t := range c.Tables {
		if err := t.Describe(ctx, src); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Describe reads the table's description from DynamoDB.
func (t *Table) Describe(ctx context.Context, src *source.Source) error {
	info, err := src.Table(ctx, t.Source)
	if err != nil {
		return err
	}
	t.Info, t.Described = info, true
	return nil
}

// TakeDeclaredKey describes the table from the key that the configuration declares, if it declares
// one.
func (t *Table) TakeDeclaredKey() {
	if schema, declared := t.Keys.Schema(); declared {
		t.Info.Schema, t.Described = schema, true
	}
}

// Compile makes the programs of all described tables. Tables with the same target are proved
// together.
func (c *Catalog) Compile() []problem.Problem {
	var described []*Table
	var inputs []transform.Table
	bySource := map[string]*Table{}
	for _, t := range c.Tables {
		if t.Described {
			described, inputs, bySource[t.Source] = append(described, t), append(inputs, t.input(c.cfg)), t
		}
	}
	var problems []problem.Problem
	programs, found := transform.CompileAll(inputs)
	for i, t := range described {
		t.Program = programs[i]
		before := len(problems)
		problems = append(problems, t.keyProblems()...)
		if t.Program != nil && t.Program.SealsKeys() && len(c.cfg.PIISecrets) == 0 {
			problems = append(problems, problem.Problem{
				Severity: problem.SeverityError, Code: "missing", Path: t.Path + ".mapping",
				Hint: `pii_secrets: ["${TAILRACE_PII_1}"], with a secret from: openssl rand -base64 32`,
				What: "a key attribute is listed under pii, but no secret seals the keys in the guards of its rows",
			})
		}
		// Rule 8: an expired item that a rule archives must not vanish because there is no archive.
		if t.Program != nil && t.Program.Archives() && !c.cfg.Archive.Enabled() {
			problems = append(problems, problem.Problem{
				Severity: problem.SeverityError, Code: "missing", Path: t.Path + ".mapping", Hint: "archive: {file: ./archive}",
				What: "a rule says on_ttl_expiry: archive, but the configuration has no archive",
			})
		}
		t.name(problems[before:])
	}
	for _, p := range found {
		t := bySource[p.Table]
		if t == nil {
			t = described[0]
		}
		if t.ArchivedOnly() && p.Severity == problem.SeverityWarning {
			continue // about rows, and the table has none
		}
		problems = append(problems, t.Problems([]problem.Problem{p})...)
	}
	return problems
}

// Settings returns the problems of settings that do not fit the described tables: a read budget
// that is a share of a capacity that a table does not have, and heartbeats with keys of another
// type than its partition key.
func (c *Catalog) Settings() (problems []problem.Problem) {
	for _, t := range c.Tables {
		problems = append(problems, t.settings()...)
	}
	return problems
}

func (t *Table) settings() []problem.Problem { return append(t.readBudget(), t.heartbeat()...) }

func (t *Table) heartbeat() []problem.Problem {
	keys := heartbeat.Keys{Prefix: t.Heartbeat.Prefix, List: t.Heartbeat.Keys}
	if keys.None() || t.Info.Schema.Partition.Name == "" {
		return nil
	}
	_, err := keys.Fit(t.Info.Schema.Partition)
	if err == nil {
		return nil
	}
	return []problem.Problem{{
		Severity: problem.SeverityError, Code: "bad_value", Path: t.Path + ".heartbeat",
		Hint: "heartbeat: {prefix: \"_tailrace#\"} for strings, {keys: [\"-1\", \"-2\"]} for numbers, base64 for binary",
		What: fmt.Sprintf("%s: %v", t.Source, err),
	}}
}

func (t *Table) readBudget() []problem.Problem {
	u := t.Backfill.ReadUnits
	if _, err := t.Info.ReadUnitsFor(u.Absolute, u.Percent); err == nil || t.Info.BillingMode == "" {
		return nil
	}
	return []problem.Problem{{
		Severity: problem.SeverityError, Code: "bad_value", Path: t.Path + ".backfill.read_units",
		Hint: fmt.Sprintf("read_units: %d, in read capacity units per second", source.DefaultReadUnits),
		What: fmt.Sprintf("%s is on demand: there is no provisioned capacity of which %s could be a share", t.Source, u),
	}}
}

// input returns the table as the compiler of mappings takes it.
func (t *Table) input(cfg *config.Config) transform.Table {
	target := t.Target
	if t.ArchivedOnly() {
		target = "#" + t.Source // of no table in Bigtable: it is proved by itself
	}
	return transform.Table{
		Pipeline: cfg.Pipeline, Source: t.Source, Target: target, Mapping: t.Mapping,
		Schema: t.Info.Schema, View: t.Info.View, TTLAttr: t.Info.TTLAttr,
		OnTTLExpiry: t.OnTTLExpiry, StripGlobal: t.StripGlobal, Getenv: os.Getenv,
	}
}

// keyProblems reports a declared key that differs from the table's.
func (t *Table) keyProblems() []problem.Problem {
	keys := config.KeysOf(t.Info.Schema)
	if len(t.Keys) == 0 || slices.Equal(t.Keys, keys) {
		return nil
	}
	return []problem.Problem{{
		Severity: problem.SeverityError, Code: "keys", Path: t.Path + ".keys",
		What: fmt.Sprintf("the key of %s is not [%s]", t.Source, strings.Join(t.Keys, ", ")),
		Hint: fmt.Sprintf("keys: [%s], or leave it out", strings.Join(keys, ", ")),
	}}
}

// Problems returns problems of the table's mapping with their place in the configuration.
func (t *Table) Problems(found []problem.Problem) []problem.Problem {
	var placed []problem.Problem
	for _, p := range found {
		path := t.Path + ".mapping"
		if p.Path != "" {
			path += "." + p.Path
		}
		placed = append(placed, problem.Problem{
			Severity: p.Severity, Code: p.Code, File: p.File, Path: path, Line: p.Line, What: p.What, Hint: p.Hint,
		})
	}
	t.name(placed)
	return placed
}

// name puts the name of a table into its problems if a selection has found it: several tables then
// share the place in the configuration.
func (t *Table) name(problems []problem.Problem) {
	if !t.Found {
		return
	}
	for i := range problems {
		problems[i].Table = t.Source
		problems[i].What = t.Source + ": " + problems[i].What
	}
}

// Table returns the table with a source, its name or its ARN, or nil.
func (c *Catalog) Table(source string) *Table {
	for _, t := range c.Tables {
		if t.Source == source || t.ARN != "" && t.ARN == source {
			return t
		}
	}
	return nil
}

// BigtableTables returns the Bigtable tables that the programs write, and the ones that the sink
// itself needs. A target of which a table is not compiled is left out: what it needs is not known.
func (c *Catalog) BigtableTables() []tableschema.Table {
	unknown := map[string]bool{}
	for _, t := range c.Tables {
		unknown[t.Target] = unknown[t.Target] || t.Program == nil
	}
	var targets []tableschema.Table
	for _, t := range c.Tables {
		if t.ArchivedOnly() || unknown[t.Target] {
			continue
		}
		targets = append(targets, tableschema.Table{Name: t.Target, Families: t.Program.Families(), Splits: t.Splits})
	}
	return tableschema.Tables(targets, time.Duration(c.cfg.Bigtable.Tombstones))
}

// CompileTable compiles the mapping of one table for a running pipeline, which has just described
// it as info. The other tables with the same target are described here, and proved together with
// it. A table that could not be described when the pipeline started is refused here for what would
// have been refused then, such as its read budget.
func CompileTable(
	ctx context.Context, cfg *config.Config, src *source.Source, table config.Table, info source.TableInfo,
) (*transform.Program, error) {
	at := slices.IndexFunc(cfg.Tables, func(t config.Table) bool { return t.Source == table.Source })
	described := Table{Table: table, Path: cmp.Or(table.Path, fmt.Sprintf("tables[%d]", at)), Info: info}
	if problems := described.settings(); len(problems) > 0 {
		return nil, &ProblemsError{problems}
	}
	own, _, err := CompileTarget(ctx, cfg, src, table, info, nil)
	return own, err
}

// CompileTarget is CompileTable that also returns the programs of all tables of the target. With
// kept, the JSON of a transform.Kept, the table has that mapping instead of the configured one.
func CompileTarget(
	ctx context.Context, cfg *config.Config, src *source.Source, table config.Table, info source.TableInfo, kept []byte,
) (own *transform.Program, all []*transform.Program, err error) {
	c, problems := Parse(About(cfg, table.Source))
	var errs []error
	for _, t := range c.Tables {
		if t.Source == table.Source {
			t.Info, t.Described = info, true
		} else if err := t.Describe(ctx, src); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	if kept != nil {
		if err := c.Table(table.Source).useKept(kept); err != nil {
			return nil, nil, err
		}
	}
	if !problem.AnyError(problems) {
		problems = append(problems, c.Compile()...)
	}
	if problem.AnyError(problems) {
		return nil, nil, &ProblemsError{problems}
	}
	for _, t := range c.Tables {
		all = append(all, t.Program)
	}
	return c.Table(table.Source).Program, all, nil
}
