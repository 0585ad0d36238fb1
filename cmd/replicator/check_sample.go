package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// tableReport says what the mapping of a table does, and did to the sample.
type tableReport struct {
	Source   string                `json:"source"`
	Target   string                `json:"target"`
	Rules    []transform.RowReport `json:"rules"`
	Sampled  int                   `json:"sampled"`
	Coverage []attributeUse        `json:"coverage"`
}

// attributeUse says what becomes of an attribute in how many items of the sample.
type attributeUse struct {
	Attr  string `json:"attr"`
	Use   string `json:"use"` // key, mapped, ignored, lost
	By    string `json:"by,omitempty"`
	Items int    `json:"items"`
}

// survey reports the rules of every table, and runs a sample of its items through them.
func (a *app) survey(ctx context.Context, u *checkup, src *source.Source, all []*carried, limit int) {
	for _, c := range all {
		if c.program == nil {
			continue
		}
		r := &tableReport{Source: c.Source, Target: c.Target, Rules: c.program.Report(), Coverage: []attributeUse{}}
		u.tables = append(u.tables, r)
		if limit <= 0 {
			continue
		}
		err := a.sample(ctx, u, src, c, r, limit)
		switch {
		case err == nil:
		case source.Classify(err) == failure.Denied: // a run needs no Scan
			u.around = append(u.around, config.Problem{Severity: "warning", Code: "sample", Path: c.path + ".source", What: err.Error(),
				Hint: "grant dynamodb:Scan to try the mapping on items, or say --sample 0"})
		default:
			u.environment("sample", c.path+".source", err)
		}
	}
}

// sample reads items and says what the mapping would do to them.
func (a *app) sample(ctx context.Context, u *checkup, src *source.Source, c *carried, r *tableReport, limit int) error {
	survey := propose.NewSurvey(c.program)
	sampler := propose.New(propose.Source{Table: c.Source, Schema: c.info.Schema, TTLAttr: c.info.TTLAttr})
	uses := map[attributeUse]int{}
	told := func() {}
	if a.moving() {
		b := newBar(a.errs, "sampling "+c.Source, min(int64(limit), max(1, c.info.Items)))
		defer b.close()
		told = func() { b.set(int64(r.Sampled), render.Count(r.Sampled, "item")) }
	}
	err := sampled(ctx, src, c.Source, limit, func(img change.Image) {
		r.Sampled++
		told()
		survey.Add(img)
		sampler.Add(img)
		for _, x := range c.program.Coverage(img) {
			uses[attributeUse{Attr: x.Attr, Use: x.Use, By: x.By}]++
		}
	})
	if err != nil {
		return err
	}
	for x, n := range uses {
		x.Items = n
		r.Coverage = append(r.Coverage, x)
	}
	slices.SortFunc(r.Coverage, func(a, b attributeUse) int {
		return cmp.Or(strings.Compare(a.Attr, b.Attr), strings.Compare(a.Use, b.Use), strings.Compare(a.By, b.By))
	})
	u.problems = append(u.problems, c.said(survey.Findings())...)
	u.problems = append(u.problems, c.said(slices.DeleteFunc(sampler.Findings(), func(p transform.Problem) bool { return !c.concerns(&p) }))...)
	return nil
}

// concerns says whether what was seen of an attribute matters for the table's mapping. What was seen of keys, the survey
// says of the rows that they become.
func (c *carried) concerns(p *transform.Problem) bool {
	switch p.Code {
	case "mixed_types":
		return c.program.Untyped(p.Path)
	case "not_int64":
		return c.program.Int64Only(p.Path)
	case "unpadded", "escaped":
		return c.mapping == nil
	}
	return false
}

// printTableReports prints who asks whom, and for each table its rules with their class, and its attributes' fate.
func (a *app) printTableReports(u *checkup) {
	for _, server := range slices.Sorted(maps.Keys(u.principals)) {
		a.print("%s: %s, as %s", server, u.endpoints[server], u.principals[server])
	}
	for _, t := range u.tables {
		a.print("%s → %s", t.Source, t.Target)
		for _, r := range t.Rules {
			if r.Row == "" {
				a.print("  %s: %s", r.Name, r.Why)
				continue
			}
			a.print("  %s: row %s, class %s: %s", r.Name, r.Row, r.Class, r.Why)
			if back := turnedBack(&r); back != "" {
				a.print("    %s", back)
			}
		}
		if t.Sampled > 0 {
			a.print("  %s sampled: %s", render.Count(t.Sampled, "item"), fates(t.Coverage))
		}
	}
	if len(u.tables) > 0 {
		a.print("")
	}
}

// turnedBack says whether a rule's rows can be turned back into items, and nothing of index rows.
func turnedBack(r *transform.RowReport) string {
	switch {
	case r.Lossless:
		return "its rows can be turned back into their items"
	case strings.HasPrefix(r.Name, "index "):
		return ""
	}
	return "its rows cannot be turned back into their items: " + r.WhyNot
}

// fates counts attributes by what becomes of them, and names those that are written nowhere.
func fates(uses []attributeUse) string {
	names := map[string][]string{}
	for _, x := range uses {
		if !slices.Contains(names[x.Use], x.Attr) {
			names[x.Use] = append(names[x.Use], x.Attr)
		}
	}
	var said []string
	for _, f := range []struct{ use, words string }{{"key", "in row keys"}, {"mapped", "written"}, {"ignored", "left out on purpose"}, {"lost", "written nowhere"}} {
		n := names[f.use]
		if len(n) == 0 {
			continue
		}
		part := fmt.Sprintf("%s %s", render.Count(len(n), "attribute"), f.words)
		if f.use == "ignored" || f.use == "lost" {
			part += " (" + strings.Join(n, ", ") + ")"
		}
		said = append(said, part)
	}
	return strings.Join(said, ", ")
}
