package bigtable

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

const noteQualifier = "log"

// noteFormat is the highest format of a note that this build can read. Rule 11: a newer one is
// refused.
const noteFormat = 1

// LogNote is what the pipeline remembers beside a table's state row of the table's log: an entry
// that was acknowledged. A log that does not hold it is an older copy. It has a column of its own,
// so that a note never stands between a command and its change of the row; builds that do not know
// the column leave it alone.
type LogNote struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"` // of the log
	Seq     uint64    `json:"seq"`
	Hash    []byte    `json:"hash"`
	At      time.Time `json:"at"` // when the entry was sent, by its owner's clock
}

// NoteLog stores a note beside a table's state row, and reports whether that row is there: without
// it nothing is stored. A note of a lower sequence never hides a later one, however late it
// arrives: the sequence is the cell's time. Sequences of a log begin at the microseconds of its
// creation, so a later log has higher ones.
func (c *Client) NoteLog(ctx context.Context, pipeline, table string, n LogNote) (there bool, err error) {
	n.Format = noteFormat
	value, err := json.Marshal(n)
	if err != nil {
		return false, fmt.Errorf("note log: %w", err)
	}
	column, seq := []byte(noteQualifier), int64(n.Seq)
	r := &request{key: stateKey(pipeline, table), skip: []op{
		deleteColumn(tableschema.StateFamily, column, 0, seq),
		{kind: opSet, family: tableschema.StateFamily, qualifier: column, value: value, from: seq},
	}}
	if r.filter, err = proto.Marshal(columnFilter(stateQualifier)); err != nil {
		return false, fmt.Errorf("note log: encode predicate: %w", err)
	}
	if err := c.table(tableschema.StateTable).deliver(ctx, r, 0); err != nil {
		return false, fmt.Errorf("note log: %w", err)
	}
	return r.matched, nil
}

// LoadLogNote returns the newest note beside a table's state row; nil if there is none.
func (c *Client) LoadLogNote(ctx context.Context, pipeline, table string) (*LogNote, error) {
	value, err := c.readCell(ctx, stateKey(pipeline, table), noteQualifier)
	if value == nil || err != nil {
		return nil, wrap("load note of the log", err)
	}
	n := &LogNote{}
	if err := json.Unmarshal(value, n); err != nil {
		return nil, fmt.Errorf("decode note of the log: %w", err)
	}
	if n.Format > noteFormat {
		return nil, fmt.Errorf("decode note of the log: %w", &NewerFormatError{Have: n.Format, Know: noteFormat})
	}
	return n, nil
}
