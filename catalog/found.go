package catalog

import (
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
)

// LeftOut is a table that must not keep a command from the other tables: one of a selection that
// cannot be described or compiled, because it may have been created or deleted in the last minute.
// LoadEach leaves out every table of a target if one of them cannot be described.
type LeftOut struct {
	Source   string
	Problems []problem.Problem // none: of a table that the file names
	Err      error             // for a command that names the table
}

// leaveOutGone takes a table out of the catalog that a selection has found and DynamoDB no longer
// has, and reports whether it did.
func (c *Catalog) leaveOutGone(t *Table, err error) bool {
	if !t.Found || source.Classify(err) != failure.Gone {
		return false
	}
	c.leaveOut(LeftOut{Source: t.Source, Err: source.Explain(err), Problems: []problem.Problem{{
		Severity: problem.SeverityWarning, Code: "gone", Path: t.Path + ".source", Table: t.Source,
		What: fmt.Sprintf("%s is left out: %v", t.Source, err),
		Hint: "`replicator table retire --table " + t.Source + "`, or bring the table back",
	}}})
	return true
}

// whole names what is left out with a table that cannot be described: its target. A table that is
// archived only shares none with others.
func (t *Table) whole() string {
	if t.ArchivedOnly() {
		return "table " + t.Source // no target has a space in its name
	}
	return t.Target
}

// leaveOutTargets takes all tables of the given targets out of the catalog, and reports whether
// others are left. A target is compared only as a whole: rows of a table that is left out would be
// foreign there.
func (c *Catalog) leaveOutTargets(missing map[string]error) (left bool) {
	for _, t := range slices.Clone(c.Tables) {
		if err := missing[t.whole()]; err != nil {
			c.leaveOut(LeftOut{Source: t.Source, Err: source.Explain(err)})
		}
	}
	return len(c.Tables) > 0
}

// leaveOutUnfit takes the tables out of the catalog that selections have found and that have errors
// in their mappings. It returns the problems of the others.
func (c *Catalog) leaveOutUnfit(problems []problem.Problem) []problem.Problem {
	of := map[string][]problem.Problem{}
	rest := slices.DeleteFunc(slices.Clone(problems), func(p problem.Problem) bool {
		t := c.Table(p.Table)
		if t == nil || !t.Found || p.Severity != problem.SeverityError {
			return false
		}
		of[p.Table] = append(of[p.Table], p)
		return true
	})
	for _, t := range slices.Clone(c.Tables) {
		if found := of[t.Source]; len(found) > 0 {
			c.leaveOut(LeftOut{Source: t.Source, Problems: found, Err: &ProblemsError{found}})
		}
	}
	return rest
}

func (c *Catalog) leaveOut(l LeftOut) {
	c.LeftOut = append(c.LeftOut, l)
	c.Tables = slices.DeleteFunc(c.Tables, func(t *Table) bool { return t.Source == l.Source })
}
