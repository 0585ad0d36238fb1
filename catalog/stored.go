package catalog

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Identity returns what the table's row in Bigtable must hold, without the creation time of the
// log. The table must be compiled. sink is not used for a table without a target.
func (t *Table) Identity(pipeline string, sink *bigtable.Client) bigtable.Identity {
	if t.ArchivedOnly() {
		return bigtable.Identity{Pipeline: pipeline, Table: t.Source, TableID: t.Info.ID, StreamARN: t.Info.StreamARN}
	}
	return bigtable.Identity{
		Pipeline: pipeline, Table: t.Source, TableID: t.Info.ID, StreamARN: t.Info.StreamARN,
		MappingHash: hashOf(t.Program), Target: sink.TargetName(t.Target),
	}
}

func hashOf(p *transform.Program) string {
	h := p.Hash()
	return hex.EncodeToString(h[:])
}

// MappingEdit is the difference between the mapping that wrote a table's rows and the configured
// mapping.
type MappingEdit struct {
	Source, Target string
	// From and To are hashes; equal: the mapping is the one that wrote the rows; empty: the table
	// was never started, so that there are no rows.
	From, To string
	transform.MappingChange

	programs [2]*transform.Program // of From and To
}

// Store stores the texts of both mappings under their hashes: the owner of the table compiles them.
func (e *MappingEdit) Store(ctx context.Context, sink *bigtable.Client, pipeline string) error {
	for i, hash := range []string{e.From, e.To} {
		text, err := e.programs[i].Keep()
		if err == nil {
			err = sink.StoreMapping(ctx, pipeline, e.Source, hash, text)
		}
		if err != nil {
			return bigtable.Explain(err)
		}
	}
	return nil
}

// EditsOf is MappingEdits of one table, or of all if table is empty. old is the file of the mapping
// that wrote the rows.
func (c *Catalog) EditsOf(ctx context.Context, sink *bigtable.Client, table, old string) ([]MappingEdit, error) {
	files, err := c.OldMapping(table, old)
	if err != nil {
		return nil, err
	}
	all, err := c.MappingEdits(ctx, sink, files)
	for _, t := range c.Tables {
		if err == nil && !slices.ContainsFunc(all, func(e MappingEdit) bool { return e.Source == t.Source }) {
			all = append(all, MappingEdit{Source: t.Source, Target: t.Target})
		}
	}
	return slices.DeleteFunc(all, func(e MappingEdit) bool { return table != "" && e.Source != table }), err
}

// MappingEdits compares the mapping of every table that was started with the one that wrote its
// rows. old holds the texts of mapping files, by source, for tables with rows older than stored
// mappings. All tables must be compiled.
func (c *Catalog) MappingEdits(
	ctx context.Context, sink *bigtable.Client, old map[string][]byte,
) (edits []MappingEdit, err error) {
	var inputs []transform.Table
	hashes := map[string]string{}
	for _, t := range c.Tables {
		in := t.input(c.cfg)
		row, err := sink.LoadState(ctx, c.cfg.Pipeline, t.Source)
		switch {
		case errors.Is(err, bigtable.ErrNoState): // its rows will be written with the mapping of the configuration
		case err != nil:
			return nil, bigtable.Explain(fmt.Errorf("load state of %s: %w", t.Source, err))
		default:
			hashes[t.Source] = row.Identity.MappingHash
			if err := c.useStored(ctx, sink, &in, row.Identity.MappingHash, old[t.Source]); err != nil {
				return nil, err
			}
		}
		inputs = append(inputs, in)
	}
	before, found := transform.CompileAll(inputs)
	for i, t := range c.Tables {
		from := hashes[t.Source]
		switch {
		case from == "":
			continue
		case before[i] == nil || hashOf(before[i]) != from:
			return nil, failure.With(failure.Unready,
				"set the secrets that it used, or name its file with --old",
				fmt.Errorf("the mapping that wrote the rows of %s cannot be compiled as it was%s",
					t.Source, reasonOf(found)))
		}
		was, is := c.sharing(t, before)
		edits = append(edits, MappingEdit{
			Source: t.Source, Target: t.Target, From: from, To: hashOf(t.Program),
			MappingChange: transform.DiffMapping(before[i], t.Program, was, is),
			programs:      [2]*transform.Program{before[i], t.Program},
		})
	}
	return edits, nil
}

// useStored puts the mapping with a hash into the input of the compiler, if it is not the
// configured one: the stored mapping, or the mapping of a file.
func (c *Catalog) useStored(
	ctx context.Context, sink *bigtable.Client, in *transform.Table, hash string, file []byte,
) error {
	if hash == hashOf(c.Table(in.Source).Program) {
		return nil
	}
	if file != nil {
		m, problems := transform.ParseMapping("--old", file)
		if problem.AnyError(problems) {
			return &ProblemsError{problems}
		}
		in.Mapping = m
		return nil
	}
	text, err := sink.LoadMapping(ctx, c.cfg.Pipeline, in.Source, hash)
	if errors.Is(err, bigtable.ErrNoMapping) {
		return failure.With(failure.Unready, "name its file with --old FILE",
			fmt.Errorf("the mapping that wrote the rows of %s is not stored", in.Source))
	}
	if err != nil {
		return bigtable.Explain(err)
	}
	return applyKept(text, in)
}

// applyKept puts a stored mapping, the JSON of a transform.Kept, into the input of the compiler.
func applyKept(text []byte, in *transform.Table) error {
	var kept transform.Kept
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("read stored mapping of %s: %w", in.Source, err)
	}
	return kept.Apply(in)
}

// useKept gives the table a stored mapping in place of the configured one.
func (t *Table) useKept(text []byte) error {
	in := transform.Table{Source: t.Source}
	if err := applyKept(text, &in); err != nil {
		return err
	}
	t.Mapping, t.OnTTLExpiry, t.StripGlobal = in.Mapping, in.OnTTLExpiry, in.StripGlobal
	return nil
}

// sharing returns the programs of all tables with the target of t, before and now.
func (c *Catalog) sharing(t *Table, before []*transform.Program) (was, is []*transform.Program) {
	for i, other := range c.Tables {
		if other.Target == t.Target && before[i] != nil {
			was, is = append(was, before[i]), append(is, other.Program)
		}
	}
	return was, is
}

// reasonOf returns the first error as a clause.
func reasonOf(found []transform.Problem) string {
	for _, p := range found {
		if p.Severity == problem.SeverityError {
			return ": " + p.What
		}
	}
	return ""
}

// OldMapping reads the file of the mapping that wrote the rows of a table, of the only one if table
// is empty; nil without a file.
func (c *Catalog) OldMapping(table, file string) (map[string][]byte, error) {
	if file == "" {
		return nil, nil
	}
	if table == "" && len(c.Tables) > 1 {
		return nil, failure.Usagef("--table NAME", "--old is the mapping of one table: of which?")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, failure.Usagef("the file of the mapping that wrote the rows", "read --old: %w", err)
	}
	return map[string][]byte{cmp.Or(table, c.Tables[0].Source): text}, nil
}

// Verdict returns a sentence on how far a changed mapping moves the rows of a table, and what to
// do.
func (e *MappingEdit) Verdict() (what, hint string) {
	switch {
	case e.From == "":
		return fmt.Sprintf("%s: it was never started, so no rows are written with another mapping.", e.Source), ""
	case e.From == e.To:
		return fmt.Sprintf("%s: its rows were written with this mapping.", e.Source), ""
	case e.Acceptable:
		return fmt.Sprintf("%s: the mapping has changed (%s).", e.Source, e.Kind),
			"`replicator schema --apply` where it has new families, then `replicator mapping accept --table " + e.Source +
				"`, both with the file of this mapping: the table is copied again"
	}
	return fmt.Sprintf("%s: the mapping has changed (%s) and cannot be accepted: %s.", e.Source, e.Kind, e.Why),
		"put the mapping back, or write a new target: see `replicator mapping diff` and docs/backfill.md"
}
