package archiving

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// CodeColumns is the code of the halt of an archive with configured columns that do not fit the
// columns of its objects.
const CodeColumns = "archive_columns"

// settleColumns decides which columns the objects have. Columns are only ever added: one that the
// configuration has no more stays, and one of another type halts the objects. Readers unite the
// columns of all objects by name.
func (l *life) settleColumns(ctx context.Context) error {
	l.form = l.a.o.Form
	if l.form.Format != object.Parquet {
		return nil
	}
	l.form.Columns = slices.Clone(l.form.Columns)
	var known map[string]ledger.Column
	l.w.view(func(s *ledger.State) { known = maps.Clone(s.Columns) })
	added := &ledger.ColumnsAdded{Columns: map[string]ledger.Column{}}
	for _, c := range l.form.Columns {
		was, there := known[c.Name]
		delete(known, c.Name)
		if there && was.Type != string(c.Type) {
			return &sinkError{sink: SinkObjects, err: &outcome.HaltError{Code: CodeColumns, Reason: fmt.Sprintf(
				"column %s of the archive was %s and is %s now, but columns keep their types, so that readers can unite "+
					"all objects: give the new one another name in archive.columns", c.Name, was.Type, c.Type)}}
		}
		if !there || !slices.Equal(was.Path, c.Path) {
			added.Columns[c.Name] = ledger.Column{Path: c.Path, Type: string(c.Type)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) { // those that the configuration has no more
		c := known[name]
		l.form.Columns = append(l.form.Columns, object.Column{Name: name, Path: c.Path, Type: object.Type(c.Type)})
	}
	if len(added.Columns) == 0 {
		return nil
	}
	return l.w.append(ctx, added)
}
