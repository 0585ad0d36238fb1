package config

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
)

// tableWord stands for the name of the source in the target of a selection.
const tableWord = "{table}"

// dynamoPattern is the form of a pattern of DynamoDB names.
var dynamoPattern = regexp.MustCompile(`^[A-Za-z0-9_.*?-]{1,255}$`)

// Gone is the reason for which a selection no longer chooses a table that has a log; empty for a
// table that is chosen.
type Gone string

// The reasons.
const (
	GoneVanished Gone = "vanished"
	GoneTags     Gone = "tags"   // other tags
	GoneOthers   Gone = "others" // other selections choose it
)

// text is what people read.
func (g Gone) text() string {
	return map[Gone]string{
		GoneVanished: "vanished: DynamoDB has no table of this name",
		GoneTags:     "no longer chosen: its tags match no selection; it is replicated until except names it",
		GoneOthers: "chosen by other selections now than when it began: it is replicated as it was until the next start; " +
			"give it an entry of its own, or narrow the selections",
	}[g]
}

// Listed is a table that a listing of DynamoDB shows, or a log of the pipeline.
type Listed struct {
	Name    string
	Tags    map[string]string // nil: not known
	Logged  bool              // the pipeline has its log
	Missing bool              // the listing does not show it: it has a log, and that is all
	By      string            // Path of the selection that a running daemon replicates it by; "": none that is known
	Unread  string            // why its tags, which a selection requires, are not known; "": they are, or none does
}

// Unfit is a table that a selection chooses and that cannot be replicated.
type Unfit struct{ Source, Why string }

func (u Unfit) String() string { return u.Source + ": " + u.Why }

// selects reports whether an entry is a selection.
func (t *Table) selects() bool { return t.Tag != nil || strings.ContainsAny(t.Source, "*?") }

// Selecting reports whether the file chooses tables by a pattern or by tags, so that they must be
// looked for.
func (c *Config) Selecting() bool { return len(c.Selections) > 0 }

// SelectsTags reports whether a selection that may choose a table requires its tags.
func (c *Config) SelectsTags(name string) bool {
	return !c.explicit(name) && slices.ContainsFunc(c.Selections, func(s Table) bool {
		return len(s.Tag) > 0 && s.matchesName(name)
	})
}

// selection checks an entry that chooses several tables.
func (r *report) selection(at string, t *Table, c *Config) {
	source, target := at+".source", at+".target"
	if t.Source != "" && !r.reported(source) && !dynamoPattern.MatchString(t.Source) {
		r.fault("bad_value", source, "letters, digits, _ . - and the signs * for any characters and ? for one: orders-*",
			"%q is no pattern of names of tables", t.Source)
	}
	for i, name := range t.Except {
		if !dynamoPattern.MatchString(name) {
			r.fault("bad_value", fmt.Sprintf("%s.except[%d]", at, i), "the name of a table, or a pattern such as *-test",
				"%q is no pattern of names of tables", name)
		}
	}
	if t.Tag != nil && len(t.Tag) == 0 && !r.reported(at+".tag") {
		r.fault("bad_value", at+".tag", "tag: {replicate: bigtable}", "no tag is named")
	}
	if !t.ArchivedOnly() && !r.reported(target) {
		switch {
		case !strings.Contains(t.Target, tableWord):
			r.fault("bad_value", target, "for example {table}, or shop-{table}",
				"the target of a selection must contain {table}: else all its tables would be written to %s", t.Target)
		case !bigtableName.MatchString(targetOf(t.Target, "x")):
			r.fault("bad_value", target, "the name of a Bigtable table: up to 50 letters, digits, _ . -, with {table} in it",
				"%q is not a possible value", t.Target)
		}
	}
	if t.Backfill.URL != "" {
		r.fault("conflict", at+".backfill.url", "give the table an entry of its own; or bucket, for exports that are made",
			"an export is that of one table, and %s chooses several", at)
	}
	if c.Source.Start.Latest && !r.reported("source.start") {
		r.fault("conflict", "source.start", "remove it, or write a time",
			"a table that is found while running would be read from later than its first changes")
	}
}

// partSelections notes the place of each entry, and moves the selections out of Tables.
func (c *Config) partSelections() {
	all := c.Tables
	c.Tables, c.Selections = nil, nil
	for i, t := range all {
		t.Path = tablePath(i)
		if t.selects() {
			c.Selections = append(c.Selections, t)
		} else {
			c.Tables = append(c.Tables, t)
		}
	}
}

// Expand returns the configuration with the tables that its selections choose among the listed
// ones, in order of their names behind the tables of the file. An entry of a table wins over
// selections. Each problem is about one table, which is left out. If the pipeline has a table's
// log, the table stays chosen by its name when it has vanished or has lost its tags. A running one
// stays as it is when more selections choose it: an edit of a tag must not end it silently.
func (c *Config) Expand(listed []Listed) (*Config, []problem.Problem) {
	all, problems := *c, []problem.Problem{}
	all.Unfit = nil
	all.Tables = slices.DeleteFunc(slices.Clone(c.Tables), func(t Table) bool { return t.Found })
	explicit := len(all.Tables)
	users := map[string]string{}
	for _, t := range all.Tables {
		users[t.Target] = t.Source
	}
	// If two tables would get the same target, the one that is replicated already keeps it. That it
	// has a log counts first, because all replicas see the same logs.
	listed = slices.SortedFunc(slices.Values(listed), func(a, b Listed) int {
		return cmp.Or(trueFirst(a.Logged, b.Logged), trueFirst(a.By != "", b.By != ""), cmp.Compare(a.Name, b.Name))
	})
	for _, l := range listed {
		t, p := c.choose(&l)
		if p == nil && t != nil && !t.ArchivedOnly() {
			if p = checkTarget(t, users[t.Target]); p == nil {
				users[t.Target] = t.Source
			}
		}
		switch {
		case p != nil:
			problems = append(problems, *p)
			all.Unfit = append(all.Unfit, Unfit{l.Name, fmt.Sprintf("%s: %s; %s", p.Path, p.What, p.Hint)})
		case t != nil:
			all.Tables = append(all.Tables, *t)
		}
	}
	slices.SortFunc(all.Tables[explicit:], func(a, b Table) int { return cmp.Compare(a.Source, b.Source) })
	return &all, problems
}

// trueFirst compares two booleans: true comes before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// choose returns the table that a selection makes of a listed one; nil if none chooses it.
func (c *Config) choose(l *Listed) (*Table, *problem.Problem) {
	if c.explicit(l.Name) {
		return nil, nil
	}
	var named, chosen []*Table
	for i := range c.Selections {
		s := &c.Selections[i]
		if !s.matchesName(l.Name) {
			continue
		}
		named = append(named, s)
		if s.matchesTags(l.Tags) {
			chosen = append(chosen, s)
		}
	}
	gone := Gone("")
	if l.Missing {
		gone = GoneVanished
	} else if len(chosen) == 0 && l.Tags != nil {
		gone = GoneTags
	}
	// Another selection may mean another target, so a table keeps the selection that it began with.
	if i := slices.IndexFunc(named, func(s *Table) bool { return s.Path == l.By }); i >= 0 {
		if len(chosen) > 0 && (len(chosen) > 1 || chosen[0] != named[i]) {
			gone = GoneOthers
		}
		chosen = named[i : i+1]
	} else if len(chosen) == 0 && l.Logged {
		chosen = named
	}
	switch {
	case l.Unread != "" && l.By == "" && !l.Logged: // it is left out, and the others go on
		at := named[slices.IndexFunc(named, func(s *Table) bool { return s.Tag != nil })].Path
		return nil, foundProblem("unread", at, "allow dynamodb:ListTagsOfResource on it, or name it under except",
			"the tags of table %s cannot be read, so it is not known whether it is chosen: %s", l.Name, l.Unread)
	case len(chosen) == 0:
		return nil, nil
	case len(chosen) > 1:
		return nil, foundProblem("ambiguous", chosen[1].Path, "give it an entry of its own, or narrow one of them",
			"table %s is chosen by %s and by %s", l.Name, chosen[0].Path, chosen[1].Path)
	}
	t := *chosen[0]
	t.Source, t.Tag, t.Except, t.Found, t.Gone = l.Name, nil, nil, true, gone
	t.Target = targetOf(t.Target, l.Name)
	if what := t.directoryTooLong(&c.Archive); what != "" {
		return nil, foundProblem("bad_value", t.Path+".source", directoryHint, "%s", what)
	}
	return &t, nil
}

// GoneReason returns in words why a table that its selection no longer chooses is not ready; empty
// if it is still chosen.
func (t *Table) GoneReason() string {
	if t.Gone == GoneVanished || t.Gone == GoneTags {
		return t.Gone.text() + "; its state is kept until `replicator table retire --table " + t.Source + "`"
	}
	return t.Gone.text()
}

// explicit reports whether a table has an entry of its own.
func (c *Config) explicit(name string) bool {
	return slices.ContainsFunc(c.Tables, func(t Table) bool { return t.Source == name && !t.Found })
}

func (t *Table) matchesName(name string) bool {
	matches := func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // neither brackets nor backslashes are in a pattern
		return ok
	}
	return (t.Source == "" || matches(t.Source)) && !slices.ContainsFunc(t.Except, matches)
}

func (t *Table) matchesTags(tags map[string]string) bool {
	for key, value := range t.Tag {
		if is, ok := tags[key]; !ok || is != value {
			return false
		}
	}
	return true
}

// targetOf returns the target of a table from the target of its selection.
func targetOf(template, source string) string { return strings.ReplaceAll(template, tableWord, source) }

// checkTarget returns what is wrong with the target of a found table; user is the source that has
// this target already.
func checkTarget(t *Table, user string) *problem.Problem {
	const hint = "give the table an entry of its own, with another target, or name it under except"
	at := t.Path + ".target"
	switch {
	case t.Target == stateTable:
		return foundProblem("reserved", at, hint, "%s, the target of %s, holds the state of the pipelines", t.Target,
			t.Source)
	case !bigtableName.MatchString(t.Target):
		return foundProblem("bad_value", at, hint,
			"%s, the target of %s, has %d characters or one that Bigtable does not allow: "+
				"up to 50 letters, digits, _ . -", t.Target, t.Source, len(t.Target))
	case user != "":
		return foundProblem("duplicate", at, hint, "%s, the target of %s, is that of %s already", t.Target, t.Source, user)
	}
	return nil
}

func foundProblem(code, at, hint, what string, args ...any) *problem.Problem {
	return &problem.Problem{
		Severity: problem.SeverityError, Code: code, Path: at, Hint: hint, What: fmt.Sprintf(what, args...),
	}
}
