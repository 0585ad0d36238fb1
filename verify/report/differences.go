package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
)

// Difference is a line of a file of differences: an item that is not proven equal, or a cell of the
// target without a known owner. It holds keys, rows and maybe values, so the file has mode 0600.
// Rows and qualifiers are in base64.
type Difference struct {
	Schema int    `json:"schema"`
	Table  string `json:"table,omitempty"` // source table of the item
	Target string `json:"target"`
	Status string `json:"status"` // of the item, or the kind of the cell: foreign, sealed, unowned
	Why    string `json:"why,omitempty"`

	// Of an item.
	Key    json.RawMessage         `json:"key,omitempty"` // canonical
	Kinds  []verify.Kind           `json:"kinds,omitempty"`
	Rows   [][]byte                `json:"rows,omitempty"`
	Future change.Version          `json:"future,omitempty"` // a guard that no change can have written
	Cells  []verify.CellDifference `json:"cells,omitempty"`

	// Of a cell without an item.
	Row       []byte `json:"row,omitempty"`
	Family    string `json:"family,omitempty"`
	Qualifier []byte `json:"qualifier,omitempty"`
	Rule      string `json:"rule,omitempty"`     // of an unowned cell: those that may have written it, separated by " | "
	Pipeline  string `json:"pipeline,omitempty"` // another one, to which the row belongs
}

const schema = 1

// OfItem returns the line of an item.
func OfItem(table, target string, v *verify.Verdict) *Difference {
	return &Difference{
		Schema: schema, Table: table, Target: target, Status: string(v.Status), Why: v.Why,
		Key: json.RawMessage(v.Key), Kinds: v.Kinds, Rows: v.Rows, Future: v.Future, Cells: v.Cells,
	}
}

// OfCell returns the line of a cell without a known owner.
func OfCell(target string, o *verify.Open) *Difference {
	return &Difference{
		Schema: schema, Target: target, Status: string(o.Kind), Why: o.Why,
		Row: o.Row, Family: o.Family, Qualifier: o.Qualifier, Rule: o.Rule, Pipeline: o.Pipeline,
	}
}

// Write appends the line of a difference to a file.
func (d *Difference) Write(w io.Writer) error {
	line, err := json.Marshal(d)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write difference: %w", err)
	}
	return nil
}

// maxLine is the longest line of a file: a key has 3 KB, and a row 4 KB, of which some may be
// listed.
const maxLine = 64 << 20

// Differences yields the lines of a file. After an error, which names the line and not its content,
// it yields nothing more.
func Differences(in io.Reader) iter.Seq2[*Difference, error] {
	return func(yield func(*Difference, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		for n := 1; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			d, err := parse(line)
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("read differences: %w", err))
		}
	}
}

func parse(line []byte) (*Difference, error) {
	d := new(Difference)
	if err := json.Unmarshal(line, d); err != nil {
		return nil, errors.New("it is not a difference as `replicator verify --differences` writes it")
	}
	switch {
	case d.Schema != schema: // Rule 11
		return nil, fmt.Errorf("it has schema %d, and this build reads %d", d.Schema, schema)
	case d.Target == "", (d.Table == "" || d.Key == nil) && (d.Row == nil || d.Family == ""):
		return nil, errors.New("it names neither an item nor a cell")
	}
	return d, nil
}
