package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
)

// diff is a difference as it is shown.
type diff struct {
	Line   int64
	Table  string
	Status string
	Why    string
	Kinds  string
	Key    string // "" where data is hidden
	Rows   []pageRow
	More   bool // more cells may differ than are listed
}

// pageRow is one row of an item, with the cells in which it differs.
type pageRow struct {
	Name  string // its key, or a number where data is hidden
	Rule  string
	Cells []cellDiff
}

// cellDiff is one cell: its content in Bigtable, and its content according to the item.
type cellDiff struct {
	Kind       string
	Column     string
	Have, Want content
	None       string // what is shown for a side without a cell
}

// content is one side of a cell.
type content struct {
	Text string // the value; its size where data is hidden
	Here bool   // there is such a cell
}

// listedCells is how many cells of an item `replicator verify` lists.
const listedCells = 100

// diffOf returns a difference of an item.
func (o *PageOptions) diffOf(d *numbered) diff {
	out := diff{Line: d.line, Table: d.Table, Status: d.Status, Kinds: kindsOf(d.Kinds), More: len(d.Cells) >= listedCells}
	if o.ShowData {
		out.Key = plainKey(d.Key)
	}
	if o.ShowData || d.Status != string(verify.Refused) { // a refusal names values
		out.Why = d.Why
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		if n := len(out.Rows); n == 0 || i > 0 && string(d.Cells[i-1].Row) != string(c.Row) {
			name := fmt.Sprintf("row %d", n+1)
			if o.ShowData {
				name = readable(c.Row)
			}
			out.Rows = append(out.Rows, pageRow{Name: name, Rule: c.Rule})
		}
		last := &out.Rows[len(out.Rows)-1]
		last.Cells = append(last.Cells, o.cellOf(c))
	}
	return out
}

// cellOf returns a cell that differs. Column names may hold parts of a key; their entry in the
// mapping does not.
func (o *PageOptions) cellOf(c *verify.CellDifference) cellDiff {
	out := cellDiff{Kind: strings.TrimSuffix(KindName(c.Kind), "s"), None: "no such cell",
		Have: o.contentOf(c.Have), Want: o.contentOf(c.Want)}
	switch {
	case c.Guard != 0:
		out.Column = "the item's guard"
		out.Have = content{Text: timeText(c.Guard), Here: true}
		out.None = "the item is not in this row"
		if c.Kind == verify.FutureGuard {
			out.None = "no change has this version"
		}
	case c.Kind == verify.NoGuard:
		out.Column, out.None = "the item's guard", "no guard"
	case o.ShowData:
		out.Column = c.Family + ":" + readable(c.Qualifier)
	default:
		out.Column = cmp.Or(c.Columns, c.Family+":…")
	}
	return out
}

func timeText(v change.Version) string {
	return change.Millis(v).Time().UTC().Format("2006-01-02 15:04:05.000 MST")
}

func (o *PageOptions) contentOf(c *verify.Content) content {
	if c == nil {
		return content{}
	}
	size := humanize.Comma(int64(c.Bytes)) + " bytes"
	if !o.ShowData {
		return content{Text: size, Here: true}
	}
	shown := readable(c.Value)
	if c.Bytes > len(c.Value) {
		shown += "… (" + size + ")"
	}
	return content{Text: shown, Here: true}
}

// foreign returns cells without an item as one difference each.
func (o *PageOptions) foreign(d *numbered) diff {
	out := diff{Line: d.line, Status: d.Status, Kinds: KindName(verify.Kind(d.Status))}
	if d.Pipeline != "" {
		out.Why = "the row belongs to pipeline " + d.Pipeline
	}
	c := cellDiff{Kind: strings.TrimSuffix(out.Kinds, "s"), Column: d.Family + ":…", None: "no item owns it",
		Have: content{Text: "a cell", Here: true}}
	r := pageRow{Name: "row 1"}
	if o.ShowData {
		r.Name, c.Column = readable(d.Row), d.Family+":"+readable(d.Qualifier)
	}
	r.Cells = []cellDiff{c}
	out.Rows = []pageRow{r}
	return out
}

func kindsOf(kinds []verify.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, KindName(k))
	}
	return strings.Join(names, ", ")
}

// readable returns bytes as people read them: text where they are text, else in hexadecimal.
func readable(b []byte) string {
	printable := utf8.Valid(b) && strings.IndexFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if printable {
		return string(b)
	}
	return fmt.Sprintf("0x%x", b)
}

// plainKey returns a key in typed notation as a plain one: hats, fedora. Types are left out.
func plainKey(key json.RawMessage) string {
	var typed map[string]map[string]string
	if json.Unmarshal(key, &typed) != nil {
		return string(key)
	}
	var parts []string
	dec := json.NewDecoder(strings.NewReader(string(key))) // in the order of the key
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return strings.Join(parts, "  ")
		}
		switch x := token.(type) {
		case json.Delim:
			if x == '{' {
				depth++
			} else {
				depth--
			}
		case string:
			if v, ok := typed[x]; ok && depth == 1 {
				for _, value := range v {
					parts = append(parts, x+"="+value)
				}
			}
		}
	}
}
