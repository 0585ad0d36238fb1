// Package describe writes down what programs need of Bigtable and what they put there: tables, families,
// garbage collection and split keys for people, scripts and JSON readers, and a data dictionary.
package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/transform"
)

// Table is a target table as the programs need it.
type Table struct {
	Name     string   `json:"name"`
	Sources  []string `json:"sources"`
	Families []Family `json:"families"`
	Splits   [][]byte `json:"splits,omitempty"`
}

// Family is a column family with its garbage collection in cbt's words.
type Family struct {
	Name      string `json:"name"`
	GC        string `json:"gc"` // never, maxversions=1, maxage=30d, joined by "and" or "or"
	Aggregate string `json:"aggregate,omitempty"`
	Meta      bool   `json:"meta,omitempty"` // the replicator's own
}

// Schema merges the programs' needs per target table, in the order of the programs. tombstones is how long
// markers of deleted items are kept; splits are row keys by target.
func Schema(programs []*transform.Program, tombstones time.Duration, splits map[string][][]byte) (out []Table) {
	for _, p := range programs {
		t := p.Table()
		i := slices.IndexFunc(out, func(x Table) bool { return x.Name == t.Target })
		if i < 0 {
			out = append(out, Table{Name: t.Target, Splits: splits[t.Target], Families: []Family{
				{Name: transform.LiveFamily, GC: "maxversions=1", Meta: true},
				{Name: transform.DeadFamily, GC: gc(transform.Family{MaxAge: tombstones}), Meta: true},
			}})
			i = len(out) - 1
		}
		out[i].Sources = append(out[i].Sources, t.Source)
		for _, f := range p.Families() {
			if !slices.ContainsFunc(out[i].Families, func(x Family) bool { return x.Name == f.Name }) {
				out[i].Families = append(out[i].Families, Family{Name: f.Name, GC: gc(f), Aggregate: f.Aggregate})
			}
		}
	}
	return out
}

func gc(f transform.Family) string {
	var rules []string
	if f.MaxVersions > 0 {
		rules = append(rules, fmt.Sprintf("maxversions=%d", f.MaxVersions))
	}
	if f.MaxAge > 0 {
		rules = append(rules, "maxage="+age(f.MaxAge))
	}
	switch {
	case len(rules) == 0:
		return "never"
	case f.Intersection:
		return strings.Join(rules, " and ")
	}
	return strings.Join(rules, " or ")
}

// age is a duration in the largest unit that holds it, as cbt reads it.
func age(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.of && d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// CBT is a shell script of cbt commands that create the tables. Split keys that a shell argument cannot
// hold are left out.
func CBT(tables []Table) string {
	var sb strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&sb, "cbt createtable %s%s\n", t.Name, splitArgument(t.Splits))
		for _, f := range t.Families {
			typ := ""
			if f.Aggregate != "" {
				typ = ":int" + f.Aggregate
			}
			fmt.Fprintf(&sb, "cbt createfamily %s %s%s\n", t.Name, f.Name, typ)
			fmt.Fprintf(&sb, "cbt setgcpolicy %s %s %s\n", t.Name, f.Name, f.GC)
		}
	}
	return sb.String()
}

func splitArgument(splits [][]byte) string {
	var plain []string
	for _, s := range splits {
		if transform.Readable(s) == string(s) && !strings.ContainsAny(string(s), ",'\n") {
			plain = append(plain, string(s))
		}
	}
	if len(plain) == 0 {
		return ""
	}
	return " 'splits=" + strings.Join(plain, ",") + "'"
}
