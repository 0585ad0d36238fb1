package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/dustin/go-humanize"
)

// PageOptions of a page.
type PageOptions struct {
	Pipeline string
	Version  string // of the replicator
	File     string // of the differences; "": none was written
	ShowData bool
	Made     time.Time
}

//go:embed page.html
var source string

var parsed = template.Must(template.New("page").Parse(source))

// WritePage writes the page of a result. found are the differences on their way to their file.
func WritePage(w io.Writer, o PageOptions, tables []Table, found *Collector) error {
	p := whole{PageOptions: o, Verdict: string(Worst(tables)), At: o.Made.UTC().Format("2006-01-02 15:04 MST"),
		Total: humanize.Comma(found.lines), All: found.lines == int64(len(found.items)+len(found.cells))}
	for i := range tables {
		t := &tables[i]
		p.Tables = append(p.Tables, pageTable{Table: t, Sentence: t.Sentence(), Items: itemBars(t), Kinds: kindBars(t),
			ByRule: tableOf(t.ByRule), ByPrefix: tableOf(t.ByPrefix), Counts: counts(t)})
	}
	for i := range found.items {
		p.Diffs = append(p.Diffs, o.diffOf(&found.items[i]))
	}
	for i := range found.cells {
		p.Diffs = append(p.Diffs, o.foreign(&found.cells[i]))
	}
	if err := parsed.Execute(w, &p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// whole is what the template shows.
type whole struct {
	PageOptions
	Verdict string
	At      string
	Tables  []pageTable
	Diffs   []diff
	Total   string // differences that were found
	All     bool   // all of them are shown
}

type pageTable struct {
	*Table
	Sentence         string
	Items            []bar
	Kinds            []bar
	ByRule, ByPrefix *groupTable
	Counts           []count
}

// count is one number with its name.
type count struct{ Name, N string }

func counts(t *Table) (list []count) {
	for _, x := range []struct {
		name   string
		n      int64
		always bool
	}{
		{"items", t.Items, true}, {"rows", t.Rows, t.Sample == 0}, {"cells", t.Cells, t.Sample == 0},
		{"different items", t.Different, true}, {"unproven", t.Unproven, true}, {"foreign cells", t.Foreign, t.Sample == 0},
		{"refused items", t.Refused, false}, {"kept cells", t.Kept, false},
	} {
		if x.n > 0 || x.always {
			list = append(list, count{x.name, humanize.Comma(x.n)})
		}
	}
	return append(list, count{"proof", string(t.Proof)}, count{"took", t.Ended.Sub(t.Began).Round(time.Second).String()})
}
