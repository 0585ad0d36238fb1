package mappingtest

import (
	"fmt"
	"os"
	"slices"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform"
)

// Result is the result of all tests of a file.
type Result struct {
	File   string     `json:"file"`
	Passed int        `json:"passed"`
	Failed int        `json:"failed"`
	Tests  []Verdict  `json:"tests"`
	Rules  []Coverage `json:"rules"`
}

// Verdict is the result of one test.
type Verdict struct {
	Name    string   `json:"name"`
	Passed  bool     `json:"passed"`
	Rule    string   `json:"rule,omitempty"`
	Missing []string `json:"missing,omitempty"` // expected lines that the mapping does not give
	Surplus []string `json:"surplus,omitempty"` // lines that the mapping gives and the test does not expect
	Got     []string `json:"got,omitempty"`     // all lines that the mapping gives, of a test without `cells`
	Error   string   `json:"error,omitempty"`   // why the test could not be run
}

// Coverage is how many tests a rule took.
type Coverage struct {
	Rule  string `json:"rule"`
	Line  int    `json:"line,omitempty"`
	Tests int    `json:"tests"`
}

// Run runs the tests of a file. The problems are about the test file and the mapping; nothing
// was run if one of them is an error.
func Run(path string) (*Result, []problem.Problem, error) {
	f, problems, err := Read(path)
	if err != nil || problem.AnyError(problems) {
		return nil, problems, err
	}
	p, problems, err := f.compile()
	if err != nil || problem.AnyError(problems) {
		return nil, problems, err
	}
	r := &Result{File: path, Tests: []Verdict{}, Rules: []Coverage{}}
	for _, rule := range p.Rules() {
		r.Rules = append(r.Rules, Coverage{Rule: rule.Name, Line: rule.Line})
	}
	for i := range f.Tests {
		r.add(verdictOf(p, &f.Tests[i]))
	}
	return r, problems, nil
}

// compile compiles the mapping under test, alone: that its rows differ from rows of other tables
// is not tested.
func (f *File) compile() (*transform.Program, []problem.Problem, error) {
	schema, _ := f.Keys.Schema()
	t := transform.Table{
		Pipeline: "test", Source: "Table", Target: "table", Schema: schema, TTLAttr: f.TTL, OnTTLExpiry: f.OnTTLExpiry,
		StripGlobal: f.StripGlobal, Getenv: os.Getenv,
	}
	if f.Mapping != "" {
		text, err := os.ReadFile(f.Mapping)
		if err != nil {
			return nil, nil, fmt.Errorf("read mapping: %w", err)
		}
		m, problems := transform.ParseMapping(f.Mapping, text)
		if problem.AnyError(problems) {
			return nil, problems, nil
		}
		t.Mapping = m
	}
	p, problems := transform.Compile(t)
	return p, problems, nil
}

// verdictOf runs a test.
func verdictOf(p *transform.Program, c *Case) Verdict {
	got, rule, err := outcome(p, c)
	v := Verdict{Name: c.Name, Rule: rule}
	if err != nil {
		v.Error = err.Error()
		return v
	}
	if c.Cells == nil {
		v.Got = got
		return v
	}
	v.Missing, v.Surplus = without(c.Cells, got), without(got, c.Cells)
	v.Passed = len(v.Missing)+len(v.Surplus) == 0
	return v
}

// without returns the lines of a list that another list lacks; a line that is twice in a must be
// twice in b.
func without(a, b []string) (left []string) {
	b = slices.Clone(b)
	for _, line := range a {
		if i := slices.Index(b, line); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			left = append(left, line)
		}
	}
	slices.Sort(left)
	return left
}

// add counts a verdict.
func (r *Result) add(v Verdict) {
	r.Tests = append(r.Tests, v)
	if v.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
	for i := range r.Rules {
		if r.Rules[i].Rule == v.Rule {
			r.Rules[i].Tests++
		}
	}
}

// Untested returns the names of the rules that took no test.
func (r *Result) Untested() (names []string) {
	for _, c := range r.Rules {
		if c.Tests == 0 {
			names = append(names, c.Rule)
		}
	}
	return names
}
