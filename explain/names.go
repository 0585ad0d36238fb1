package explain

import (
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// names gives rows and columns names that show no data unless that is asked for. What is made of
// the key and of names of attributes alone is no data: the user gave the key.
type names struct {
	data    bool
	byKey   bool              // the rows of an item are functions of its key
	rows    map[string]string // rows of the projection
	columns map[string]string // columns of the projection, by row, family and column
}

// newNames returns the names of a program. full are the steps of the item, and shown the same
// without data; both nil where there is none.
func newNames(p *transform.Program, data bool, full, shown *transform.Steps) *names {
	n := &names{data: data, byKey: p.KeysShowRows(), rows: map[string]string{}, columns: map[string]string{}}
	if full == nil {
		return n
	}
	for i := range full.Rows {
		row := &full.Rows[i]
		n.rows[row.Row] = shown.Rows[i].Row
		for j := range row.Cells {
			c := &row.Cells[j]
			n.columns[columnOf(row.Row, c.Family, c.Qualifier)] = shown.Rows[i].Cells[j].Qualifier
		}
	}
	return n
}

func columnOf(row, family, qualifier string) string {
	return row + "\x00" + family + "\x00" + qualifier
}

// row returns the name of a row, and whether it is the whole key of it.
func (n *names) row(key []byte) (name string, whole bool) {
	shown, known := n.rows[string(key)]
	switch {
	case n.data, known && shown == string(key), !known && n.byKey:
		return transform.Readable(key), true
	case known:
		return shown, false
	}
	return hidden(len(key)), false
}

// column returns the name of a column. entry is the entry of the mapping that writes it.
func (n *names) column(row []byte, family string, qualifier []byte, entry transform.Entry) string {
	text := transform.Readable(qualifier)
	if n.data || entry.ByAttributes {
		return text
	}
	if shown, known := n.columns[columnOf(string(row), family, text)]; known {
		return shown
	}
	return hidden(len(qualifier))
}

// value returns a value with its size, or the size alone.
func (n *names) value(b []byte) string {
	if !n.data {
		return ""
	}
	const most = 1024
	if len(b) > most {
		return transform.Readable(b[:most]) + "…"
	}
	return transform.Readable(b)
}

// hidden returns the text that replaces n bytes of data.
func hidden(n int) string { return "(" + english.Plural(n, "byte", "") + "; --show-data prints them)" }

// attributesOf returns the names, types and sizes of an item's attributes.
func attributesOf(img change.Image) []Attribute {
	out := make([]Attribute, 0, len(img))
	for i := range img {
		out = append(out, Attribute{Name: img[i].Name, Type: img[i].Value.Kind.String(), Bytes: img[i].Value.Size()})
	}
	return out
}

// timeOf returns the time of a version; nil for 0.
func timeOf(v change.Version) *time.Time {
	if v == 0 {
		return nil
	}
	t := change.Millis(v).Time().UTC()
	return &t
}
