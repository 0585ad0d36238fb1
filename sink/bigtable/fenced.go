package bigtable

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// FencedTable returns the row of a table, of any pipeline, that writes to a target and is fenced:
// the rows of the target may belong to the application. nil: there is none.
func (c *Client) FencedTable(ctx context.Context, target string) (found *State, err error) {
	err = c.StatesOf(ctx, target, func(s *State) error {
		if s.Fenced != nil {
			found = s
		}
		return nil
	})
	return found, err
}

// StatesOf calls f with the rows of all tables, of any pipeline, that write to a target. Rows of
// other targets do not matter, also where a newer build has written them. An error of f ends it and
// is returned.
func (c *Client) StatesOf(ctx context.Context, target string, f func(*State) error) error {
	name := c.TargetName(target)
	return c.storedStates(ctx, func(stored []byte) error {
		if !namesTarget(stored, name) {
			return nil
		}
		s, err := decodeState(stored)
		if err != nil {
			return err
		}
		return f(s)
	})
}

// namesTarget reports whether a row of any format may be one of a table with that target.
func namesTarget(stored []byte, name string) bool {
	var s struct{ Identity struct{ Target string } }
	return json.Unmarshal(stored, &s) != nil || s.Identity.Target == name
}

// States calls f with the rows of all tables of all pipelines. An error of f ends it and is
// returned.
func (c *Client) States(ctx context.Context, f func(*State) error) error {
	return c.storedStates(ctx, func(stored []byte) error {
		s, err := decodeState(stored)
		if err != nil {
			return err
		}
		return f(s)
	})
}

// behindOthers is the first key behind all rows that are not of a table. The names of pipelines
// begin with a letter or a digit.
const behindOthers = "$"

// storedStates calls f with the content of all state rows.
func (c *Client) storedStates(ctx context.Context, f func(stored []byte) error) error {
	view := []View{{Family: tableschema.StateFamily, Versions: 1}}
	err := c.Rows(ctx, tableschema.StateTable, behindOthers, "", view, func(r *Row) error {
		for i := range r.Cells {
			if string(r.Cells[i].Qualifier) != stateQualifier {
				continue
			}
			if err := f(bytes.Clone(r.Cells[i].Value)); err != nil {
				return fmt.Errorf("row %s: %w", r.Key, err)
			}
		}
		return nil
	})
	return wrap("read state rows", err)
}
