package compile

import (
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lint"
	"github.com/tailrace-cdc/replicator/transform/prove"
)

// All compiles all tables of a configuration and proves across them which rows belong to one item
// alone. A table with errors has a nil program.
func All(tables []ir.Table) ([]*ir.Program, []problem.Problem) {
	compilers := make([]*compiler, len(tables))
	drafts := make([]*ir.Draft, len(tables))
	for i := range tables {
		compilers[i] = newCompiler(tables[i])
		compilers[i].compile()
		drafts[i] = compilers[i].Draft
	}
	lint.FamilyLimit(drafts)
	prove.All(drafts)
	out := make([]*ir.Program, len(tables))
	var problems []problem.Problem
	for i, c := range compilers {
		c.finish()
		if !c.Problems.Failed() {
			out[i] = c.Program
		}
		problem.Sort(c.Problems.List)
		problems = append(problems, c.Problems.List...)
	}
	return out, problems
}

// compiler turns one table's mapping into its program, and adds every problem to the draft.
type compiler struct{ *ir.Draft }

// newCompiler returns the compiler of a table, with its preset spelled out.
func newCompiler(t ir.Table) *compiler {
	c := &compiler{ir.NewDraft(t)}
	c.Mapping = t.Mapping
	if c.Mapping == nil {
		c.Mapping = &ir.Mapping{Preset: text("default")}
	}
	c.Problems = problem.Collector{File: c.Mapping.File, Table: t.Source}
	if c.Mapping.Preset.S == "google" {
		c.checkGoogle(t.Schema)
	}
	if c.Mapping.Preset.S != "" {
		c.Mapping = preset(c.Mapping.Preset.S, c.Mapping, t.Schema)
	}
	return c
}

// checkGoogle refuses keys that Google's utility writes in a way that loses items or cannot be read
// back.
func (c *compiler) checkGoogle(s change.KeySchema) {
	if s.Partition.Type == 'B' {
		c.Problems.Errorf(c.Mapping.Preset, "preset", "preset: default writes them in hex",
			"the preset google has no binary keys")
	}
	if s.Sort != nil {
		c.Problems.Errorf(c.Mapping.Preset, "preset", "preset: default puts the sort key into the row key; rules can put "+
			"it into the column",
			"the preset google has no sort keys: its row is the partition key alone, so items that differ only in %q would "+
				"share a row", s.Sort.Name)
	}
}

// compile reads the mapping into the draft. Steps that need the other tables of the target come
// later.
func (c *compiler) compile() {
	c.compileSecrets()
	for _, name := range c.Mapping.PII {
		c.Personal[name.S] = true
	}
	c.compileFamilies()
	if d := c.Mapping.Delimiter; d.Set() && len(d.S) != 1 {
		c.Problems.Errorf(d, "delimiter", "one ASCII character such as # : /", "the delimiter %q is not one character", d.S)
	}
	for i := range c.Mapping.Rules {
		c.Program.Rules = append(c.Program.Rules, c.rule(&c.Mapping.Rules[i]))
	}
	lint.Conditions(c.Draft)
	c.Broken = c.Problems.Failed()
}

// compileSecrets reads secrets from the environment. An unset variable is an error: rows with keys
// hashed with the secret could not be found again.
func (c *compiler) compileSecrets() {
	for _, s := range c.Mapping.Secrets {
		value := s.Value.S
		if env, ok := strings.CutPrefix(value, "${"); ok {
			env = strings.TrimSuffix(env, "}")
			value = ""
			if c.Program.Table.Getenv != nil {
				value = c.Program.Table.Getenv(env)
			}
			if value == "" {
				c.Problems.Errorf(s.Value, "secret", "set it where the replicator runs; without it rows cannot be found again",
					"environment variable %s of secret %q is not set", env, s.Name)
			}
		} else {
			c.Problems.Warnf(s.Value, "secret", "write \"${ENV_NAME}\" and set the variable", "secret %q stands in the file",
				s.Name)
		}
		c.Secrets[s.Name] = []byte(value)
	}
}
