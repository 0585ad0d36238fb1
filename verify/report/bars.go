package report

import (
	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/verify"
)

// bar is one bar: its width is in percent of the widest.
type bar struct {
	Name  string
	Class string // of the style sheet
	Count string
	Width float64
}

// itemBars returns the bar of all items of a table, in parts.
func itemBars(t *Table) (parts []bar) {
	all := []struct {
		name, class string
		n           int64
	}{
		{"equal", "equal", t.Equal}, {"equal by the log", "bylog", t.ByLog}, {"different", "different", t.Different},
		{"refused", "different", t.Refused}, {"unproven", "unproven", t.Unproven},
	}
	sum := int64(0)
	for _, x := range all {
		sum += x.n
	}
	for _, x := range all {
		if x.n > 0 {
			parts = append(parts, bar{x.name, x.class, humanize.Comma(x.n), 100 * float64(x.n) / float64(sum)})
		}
	}
	return parts
}

// kindBars returns a bar for each kind of difference of a table.
func kindBars(t *Table) (bars []bar) {
	sum, widest := map[verify.Kind]int64{}, int64(1)
	for i := range t.ByRule {
		for k, n := range t.ByRule[i].Kinds {
			sum[k] += n
			widest = max(widest, sum[k])
		}
	}
	for _, k := range KindsIn(t.ByRule) {
		bars = append(bars, bar{KindName(k), "different", humanize.Comma(sum[k]),
			max(1, 100*float64(sum[k])/float64(widest))})
	}
	return bars
}

// groupTable is a table of groups: a line for each, a column for each kind.
type groupTable struct {
	Head  []string
	Lines []groupLine
}

type groupLine struct {
	Name, Rows string
	Counts     []string
}

func tableOf(list []Group) *groupTable {
	if len(list) == 0 {
		return nil
	}
	out := &groupTable{Head: []string{"items"}}
	kinds := KindsIn(list)
	for _, k := range kinds {
		out.Head = append(out.Head, KindName(k))
	}
	for i := range list {
		g := &list[i]
		line := groupLine{Name: g.Prefix, Rows: g.Rows, Counts: []string{humanize.Comma(g.Items)}}
		if line.Name == "" {
			line.Name = g.Rule
		}
		if line.Name == "" {
			line.Name = "no rule"
		}
		for _, k := range kinds {
			line.Counts = append(line.Counts, humanize.Comma(g.Kinds[k]))
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}
