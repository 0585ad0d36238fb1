package steps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// RowReport describes what a rule or index writes and how its rows are replaced.
type RowReport struct {
	Name      string   `json:"name"` // for people
	Rule      string   `json:"rule"` // as the mapping names it
	Index     bool     `json:"index,omitempty"`
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
func Report(p *ir.Program) (out []RowReport) {
	for at, r := range p.Rules {
		if r.Drop {
			out = append(out, RowReport{Name: "rule " + r.Name, Rule: r.Name, Line: r.Src.At.Line, Match: matchText(r),
				Why: "dropped on purpose", WhyNot: emit.WhyLost(p, at)})
		}
		for i, pl := range r.Plans {
			x := RowReport{Name: pl.Name, Rule: r.Name, Index: i > 0, Line: pl.Src.Line, Match: matchText(r),
				Row: pl.Row.Source, Class: pl.Class.String(), Why: pl.Why,
				NeedsOld: r.NeedOld || !p.KeyDecidesRule, Heals: r.Heals, OnTTL: r.OnTTL, OnRemove: r.OnRemove,
				Histories: pl.History}
			if x.WhyNot = "an index row: items are turned back from their main row"; i == 0 {
				x.WhyNot = emit.WhyLost(p, at)
			}
			x.Lossless = x.WhyNot == ""
			for _, e := range pl.Emitters {
				x.Columns = append(x.Columns, e.Describe()+" → "+e.Entry.To.S+suffix(e))
				if !slices.Contains(x.Families, e.Family.Name) {
					x.Families = append(x.Families, e.Family.Name)
				}
			}
			out = append(out, x)
		}
	}
	return out
}

// suffix returns the encoding and the cell time of an emitter, if they are not the default.
func suffix(e *ir.Emitter) string {
	var parts []string
	if as := e.Entry.As.S; as != "" {
		parts = append(parts, "as "+as)
	}
	if d, ok := e.Source.(*ir.Document); ok {
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

// matchText returns the conditions of a rule on one line.
func matchText(r *ir.Rule) string {
	var parts []string
	for i := range r.Src.Match {
		c := &r.Src.Match[i]
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
	if r.When != nil {
		parts = append(parts, "when "+r.When.Source)
	}
	return strings.Join(parts, ", ")
}
