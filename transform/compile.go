package transform

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Compile compiles one table's mapping. The program is nil when a problem is an error. What a row's class
// is depends on all tables that write the same target: use CompileAll where there are several.
func Compile(t Table) (*Program, []Problem) {
	ps, problems := CompileAll([]Table{t})
	return ps[0], problems
}

// CompileAll compiles all tables of a configuration and proves across them which rows belong to one item
// alone. A table with errors has a nil program.
func CompileAll(tables []Table) ([]*Program, []Problem) {
	compilers := make([]*compiler, len(tables))
	for i := range tables {
		compilers[i] = newCompiler(tables[i])
		compilers[i].compile()
	}
	limitFamilies(compilers)
	prove(compilers)
	out := make([]*Program, len(tables))
	var problems []Problem
	for i, c := range compilers {
		c.finish()
		if !c.ps.Failed() {
			out[i] = c.p
		}
		lang.Sort(c.ps.List)
		problems = append(problems, c.ps.List...)
	}
	return out, problems
}

// compiler turns one table's mapping into its program, noting every problem it meets.
type compiler struct {
	p       *Program
	m       *Mapping
	ps      lang.Problems
	secrets map[string][]byte
	byName  map[string]*family
	pii     map[string]bool
	broken  bool // errors were found before the proofs: what follows from them is not reported
}

func newCompiler(t Table) *compiler {
	c := &compiler{p: &Program{table: t}, byName: map[string]*family{}, secrets: map[string][]byte{}, pii: map[string]bool{}}
	c.m = t.Mapping
	if c.m == nil {
		c.m = &Mapping{Preset: text("default")}
	}
	c.ps = lang.Problems{File: c.m.File, Table: t.Source}
	if c.m.Preset.S == "google" {
		c.checkGoogle(t.Schema)
	}
	if c.m.Preset.S != "" {
		c.m = preset(c.m.Preset.S, c.m, t.Schema)
	}
	return c
}

// checkGoogle refuses keys that Google's utility writes in a way that loses items or cannot be read back.
func (c *compiler) checkGoogle(s change.KeySchema) {
	if s.Partition.Type == 'B' {
		c.ps.Errorf(c.m.Preset, "preset", "preset: default writes them in hex", "the preset google has no binary keys")
	}
	if s.Sort != nil {
		c.ps.Errorf(c.m.Preset, "preset", "preset: default puts the sort key into the row key; rules can put it into the column",
			"the preset google has no sort keys: its row is the partition key alone, so items that differ only in %q would share a row", s.Sort.Name)
	}
}

func (c *compiler) compile() {
	c.compileSecrets()
	for _, name := range c.m.PII {
		c.pii[name.S] = true
	}
	c.compileFamilies()
	if d := c.m.Delimiter; d.Set() && len(d.S) != 1 {
		c.ps.Errorf(d, "delimiter", "one ASCII character such as # : /", "the delimiter %q is not one character", d.S)
	}
	for i := range c.m.Rules {
		c.p.rules = append(c.p.rules, c.rule(&c.m.Rules[i]))
	}
	for i, r := range c.p.rules {
		c.lintReach(i, r)
		c.lintMatch(r)
	}
	c.broken = c.ps.Failed()
}

// hash covers what decides a table's cells: the mapping's content with its secrets, the table's options, and the
// classes, which other tables of the same target may change.
func (c *compiler) hash() {
	var classes []Class
	for _, r := range c.p.rules {
		for _, pl := range r.plans {
			classes = append(classes, pl.class)
		}
	}
	text, err := json.Marshal(struct {
		Mapping     *Mapping
		StripGlobal bool
		OnTTLExpiry string
		Classes     []Class
		Secrets     [][]byte `json:",omitempty"`
	}{c.m, c.p.table.StripGlobal, c.p.onTTL(), classes, c.digests()})
	if err != nil {
		c.ps.Errorf(c.m.At, "syntax", "", "the mapping cannot be written as JSON: %v", err)
	}
	sum := sha256.Sum256(text)
	copy(c.p.hash[:], sum[:])
}

// digests tell one set of secrets from another and nothing more: with a changed secret no row is found again.
func (c *compiler) digests() (all [][]byte) {
	for _, s := range c.m.Secrets {
		mac := hmac.New(sha256.New, c.secrets[s.Name])
		mac.Write([]byte("mapping hash"))
		all = append(all, mac.Sum(nil))
	}
	return all
}

func (c *compiler) compileSecrets() {
	for _, s := range c.m.Secrets {
		value := s.Value.S
		if env, ok := strings.CutPrefix(value, "${"); ok {
			env = strings.TrimSuffix(env, "}")
			value = ""
			if c.p.table.Getenv != nil {
				value = c.p.table.Getenv(env)
			}
			if value == "" {
				c.ps.Errorf(s.Value, "secret", "set it where the replicator runs; without it rows cannot be found again", "environment variable %s of secret %q is not set", env, s.Name)
			}
		} else {
			c.ps.Warnf(s.Value, "secret", "write \"${ENV_NAME}\" and set the variable", "secret %q stands in the file", s.Name)
		}
		c.secrets[s.Name] = []byte(value)
	}
}

func validFamily(name string) bool {
	for i := range len(name) {
		ch := name[i]
		if ch != '-' && ch != '_' && ch != '.' && (ch < '0' || ch > '9') && (ch|32 < 'a' || ch|32 > 'z') {
			return false
		}
	}
	return name != ""
}

func (c *compiler) compileFamilies() {
	for i := range c.m.Families {
		f := &c.m.Families[i]
		if !validFamily(f.At.S) {
			c.ps.Errorf(f.At, "family_name", "letters, digits, - _ and . only", "%q is no name for a column family", f.At.S)
		}
		if strings.HasPrefix(f.At.S, "_tr_") {
			c.ps.Errorf(f.At, "family_name", "choose another name", "families that begin with _tr_ hold the replicator's markers")
		}
		removed := f.Removed.S
		if removed == "" {
			removed = "delete"
		}
		fam := &family{Family: Family{Name: f.At.S, MaxVersions: f.MaxVersions, MaxAge: f.MaxAge, Intersection: f.Combine.S == "intersection", Aggregate: f.Aggregate.S},
			history: f.MaxVersions != 1 && f.Aggregate.S == "" && !f.Expires, expires: f.Expires, removed: removed, at: f.At}
		c.aggregate(f)
		c.byName[fam.Name] = fam
		c.p.families = append(c.p.families, fam)
		c.p.list = append(c.p.list, fam.Family)
	}
}

func (c *compiler) aggregate(f *lang.Family) {
	switch f.Aggregate.S {
	case "", "max", "min", "hll":
	case "sum":
		c.ps.Errorf(f.Aggregate, "aggregate", "write one column per shard and add them up on reading; max works for counters that only grow",
			"sums need the difference of two images, and a difference that is delivered twice counts twice")
	default:
		c.ps.Errorf(f.Aggregate, "aggregate", "max, min or hll", "aggregate %q is not supported", f.Aggregate.S)
	}
}

// target resolves "family:qualifier".
func (c *compiler) target(to lang.Text) (*family, string, bool) {
	name, qualifier, ok := strings.Cut(to.S, ":")
	if !ok {
		c.ps.Errorf(to, "to", "write \"family:qualifier\"", "%q names no column", to.S)
		return nil, "", false
	}
	f := c.family(name, to)
	return f, qualifier, f != nil
}

func (c *compiler) family(name string, at lang.Text) *family {
	if f := c.byName[name]; f != nil {
		return f
	}
	names := make([]string, 0, len(c.byName))
	for n := range c.byName {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := "declare it: families: {" + name + ": {max_versions: 1}}"
	if near := lang.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? Declared: " + strings.Join(names, ", ")
	}
	c.ps.Errorf(at, "family", hint, "column family %q is not declared", name)
	return nil
}

// env is what a rule's templates may refer to.
func (c *compiler) env(r *rule, segments lang.Text) *tmpl.Env {
	mode := segments.S
	if mode == "" {
		mode = c.m.Segments.S
	}
	if mode == "" {
		mode = tmpl.SegStrict
	}
	return &tmpl.Env{Captures: r.captures, Keys: c.keyTypes(), Attrs: true, Segments: mode, Delim: c.delimiter(), Secrets: c.secrets}
}

func (c *compiler) delimiter() string {
	if len(c.m.Delimiter.S) == 1 {
		return c.m.Delimiter.S
	}
	return "#"
}

func (c *compiler) keyTypes() map[string]byte {
	s := c.p.table.Schema
	out := map[string]byte{s.Partition.Name: s.Partition.Type}
	if s.Sort != nil {
		out[s.Sort.Name] = s.Sort.Type
	}
	return out
}

// Families returns the families that the target table needs, without the replicator's own two.
func (p *Program) Families() []Family { return slices.Clone(p.list) }

// Hash identifies the mapping by its content, not by its layout or comments: two programs with one hash
// give the same cells.
func (p *Program) Hash() [16]byte { return p.hash }

// Table returns what the program was compiled for.
func (p *Program) Table() Table { return p.table }
