package status

import (
	"slices"
	"strconv"
	"strings"
)

// Whole is the status of the whole pipeline.
type Whole struct {
	Schema   int      `json:"schema"`
	Pipeline string   `json:"pipeline"`
	Ready    bool     `json:"ready"`
	Failing  []string `json:"failing"` // services that the daemon cannot use, since when, and why
	Reasons  []string `json:"reasons"`
	Tables   []Table  `json:"tables"`

	Verdict  Verdict   `json:"verdict"`
	Services []Service `json:"services,omitempty"` // that fail, as in Failing

	Rehearsals []Rehearsed `json:"rehearsals,omitempty"` // of cutovers, the newest of each target

	notes []string // by Explain
}

// Judge sets the verdict.
func (s *Whole) Judge() {
	s.Verdict = Judge(Outlook{Failing: s.Services, Tables: s.Tables, Reasons: len(s.Reasons), Notes: s.notes})
}

// Summarize joins the tables' statuses.
func Summarize(pipeline string, tables []Table) Whole {
	s := Whole{Schema: 1, Pipeline: pipeline, Failing: []string{}, Reasons: []string{}, Tables: tables}
	for i := range tables {
		t := &tables[i]
		if t.Halts == nil {
			t.Halts = map[string]string{} // an object in JSON, whatever is in it
		}
	}
	s.Reasons = append(s.Reasons, reasonsOf(tables)...)
	s.Ready = len(s.Reasons) == 0 && len(tables) > 0
	s.Judge()
	return s
}

// aFew is how many tables with the same reason are still listed each by itself.
const aFew = 2

// reasonsOf returns the reasons of all tables with their names, in lines that are grouped.
func reasonsOf(tables []Table) []string {
	var all []About
	for i := range tables {
		for _, r := range tables[i].Reasons {
			all = append(all, About{Source: tables[i].Source, Target: tables[i].Target, Text: r})
		}
	}
	return Grouped(all)
}

// About is a text about a table.
type About struct{ Source, Target, Text string }

// common returns the text with {table} and {target} in place of the names.
func (a *About) common() string {
	return withoutName(withoutName(a.Text, a.Source, "{table}"), a.Target, "{target}")
}

// withoutName replaces a name where it stands as a word of its own.
func withoutName(text, name, by string) string {
	if name == "" {
		return text
	}
	inName := func(c byte) bool {
		return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	var out strings.Builder
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return out.String() + text
		}
		end := i + len(name)
		if i > 0 && inName(text[i-1]) || end < len(text) && inName(text[end]) {
			out.WriteString(text[:end])
		} else {
			out.WriteString(text[:i] + by)
		}
		text = text[end:]
	}
}

// Grouped returns texts with the names of their tables. What more than a few tables have in common,
// such as a missing state table, is one line, at the place of the first of them.
func Grouped(all []About) (lines []string) {
	sources := map[string][]string{} // by text
	for i := range all {
		sources[all[i].common()] = append(sources[all[i].common()], all[i].Source)
	}
	for i := range all {
		text := all[i].common()
		switch with := sources[text]; {
		case len(with) <= aFew:
			lines = append(lines, all[i].Source+": "+all[i].Text)
		case with[0] == all[i].Source:
			lines = append(lines, strconv.Itoa(len(with))+" tables ("+someOf(with)+"): "+text)
		}
	}
	return lines
}

// someOf names the first of many tables.
func someOf(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most-1], ", ") + " and " + strconv.Itoa(len(names)-most+1) + " others"
}

// Explain adds reasons why the pipeline is not ready that concern no single table.
func (s *Whole) Explain(reasons []string) {
	s.Reasons, s.notes = append(s.Reasons, reasons...), append(s.notes, reasons...)
	s.Ready = s.Ready && len(reasons) == 0
	s.Judge()
}

// Fail adds failing services, as sentences and as values: then nothing is ready. Sentences behind
// those are about none.
func (s *Whole) Fail(failing []string, services []Service) {
	if len(failing) == 0 {
		return // the lists stay empty: in JSON [], not null
	}
	s.Failing = append(s.Failing, failing...)
	s.Reasons = append(slices.Clone(failing), s.Reasons...)
	s.Ready = false
	s.Services = append(s.Services, services...)
	s.notes = append(s.notes, failing[min(len(services), len(failing)):]...)
	s.Judge()
}
