package dynamo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// saved is the line of a saved file that begins a table. Its items follow, one per line.
type saved struct {
	Format int
	Table  table.Definition
	Items  int
}

// format is the version of saved files.
const format = 1

// Save writes all tables with their items as JSON lines, each table as of one moment. No table may
// be created or deleted meanwhile.
func (s *Server) Save(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	for _, name := range s.Tables() {
		t, bad := s.findAny(name)
		if bad != nil {
			continue
		}
		if err := saveTable(t, out, t.Status(s.o.Clock.Now())); err != nil {
			return fmt.Errorf("save table %s: %w", name, err)
		}
	}
	return out.Flush()
}

// saveTable writes a table and its items.
func saveTable(t *table.Table, out *bufio.Writer, status string) error {
	t.RLock()
	defer t.RUnlock()
	def := t.Def
	def.Status = status
	head, err := json.Marshal(saved{format, def, t.Items.Len()})
	if err != nil {
		return err
	}
	if _, err := out.Write(append(head, '\n')); err != nil {
		return err
	}
	t.Items.Ascend("", func(r *table.Record) bool {
		if _, err = out.Write(r.JSON); err == nil {
			err = out.WriteByte('\n')
		}
		return err == nil
	})
	return err
}

// Restore reads what Save wrote into a server without tables. The items make no stream records. A
// stream that was enabled is enabled again, with a new ARN, unless the stream engine has restored
// it.
func (s *Server) Restore(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("restore tables: %w", err)
		}
		var head saved
		if err := json.Unmarshal(line, &head); err != nil {
			return fmt.Errorf("restore table: %w", err)
		}
		if head.Format != format {
			return fmt.Errorf("restore table %s: format %d, this version reads %d", head.Table.Name, head.Format, format)
		}
		if err := s.restore(head, in); err != nil {
			return fmt.Errorf("restore table %s: %w", head.Table.Name, err)
		}
	}
}

// restore reads the items of a table.
func (s *Server) restore(head saved, in *bufio.Reader) error {
	def := head.Table
	if def.Status == "DELETING" {
		def.Status = "ACTIVE"
	}
	t := table.NewTable(def)
	for range head.Items {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		w, err := readLoaded(line)
		if err != nil {
			return err
		}
		t.Items.Put(nil, table.NewRecord(t.Schema.KeyOf(w.newItem), w.newItem), w.newItem)
	}
	if def.PointInTime {
		t.KeepPast(s.o.Clock.Now()) // the past is not saved
	}
	if !s.add(t) {
		return fmt.Errorf("a table of this name exists")
	}
	s.o.Stream.KeySpace(t.Name, table.AppendKeys(nil, def.Keys), def.Partitions())
	if _, _, _, enabled := s.o.Stream.Describe(t.Name); def.StreamView != "" && !enabled {
		s.o.Stream.Enable(t.Name, def.StreamView)
	}
	return nil
}
