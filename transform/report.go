package transform

import (
	"fmt"
	"slices"
	"strings"
)

// RowReport says what a rule or index writes and how its rows are replaced.
type RowReport struct {
	Name      string   `json:"name"`
	Line      int      `json:"line,omitempty"`
	Match     string   `json:"match"`
	Row       string   `json:"row"`
	Class     string   `json:"class"`
	Why       string   `json:"why"`
	NeedsOld  bool     `json:"needs_old_image"`
	Heals     bool     `json:"heals"` // the next change repairs what a dead letter left behind
	Columns   []string `json:"columns"`
	Families  []string `json:"families"`
	OnTTL     string   `json:"on_ttl_expiry"`
	OnRemove  string   `json:"on_remove"`
	Histories []string `json:"histories,omitempty"`
	Lossless  bool     `json:"lossless"`          // its rows can be turned back into their items
	WhyNot    string   `json:"why_not,omitempty"` // why they cannot
}

// Report lists what the program writes, in the order of its rules.
func (p *Program) Report() (out []RowReport) {
	for at, r := range p.rules {
		if r.drop {
			out = append(out, RowReport{Name: "rule " + r.name, Line: r.src.At.Line, Match: r.matchText(), Why: "dropped on purpose", WhyNot: p.loses(at)})
		}
		for i, pl := range r.plans {
			x := RowReport{Name: pl.name, Line: pl.src.Line, Match: r.matchText(), Row: pl.row.Source, Class: pl.class.String(), Why: pl.why,
				NeedsOld: r.needOld || !p.byKey, Heals: r.heals, OnTTL: r.onTTL, OnRemove: r.onRemove, Histories: pl.history}
			if x.WhyNot = "an index row: items are turned back from their main row"; i == 0 {
				x.WhyNot = p.loses(at)
			}
			x.Lossless = x.WhyNot == ""
			for _, e := range pl.emitters {
				x.Columns = append(x.Columns, e.Describe()+" → "+e.Entry.To.S+e.suffix())
				if !slices.Contains(x.Families, e.Family.Name) {
					x.Families = append(x.Families, e.Family.Name)
				}
			}
			out = append(out, x)
		}
	}
	return out
}

// suffix tells encoding and time of an emitter where they are not the default.
func (e *Emitter) suffix() string {
	var parts []string
	if as := e.Entry.As.S; as != "" {
		parts = append(parts, "as "+as)
	}
	if d, ok := e.Source.(*Document); ok {
		parts = append(parts, "as "+d.Format)
	}
	if e.Time.Template != nil {
		parts = append(parts, "at "+e.Time.Template.Source)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (r *rule) matchText() string {
	var parts []string
	for i := range r.src.Match {
		c := &r.src.Match[i]
		switch {
		case c.Pattern.Set():
			parts = append(parts, fmt.Sprintf("%s: %q", c.At.S, c.Pattern.S))
		case c.Equals.Set():
			parts = append(parts, fmt.Sprintf("%s = %q", c.At.S, c.Equals.S))
		case c.Exists != nil:
			parts = append(parts, fmt.Sprintf("%s exists: %v", c.At.S, *c.Exists))
		case c.Type.Set():
			parts = append(parts, c.At.S+" is of type "+c.Type.S)
		}
	}
	if r.when != nil {
		parts = append(parts, "when "+r.when.src)
	}
	return strings.Join(parts, ", ")
}
