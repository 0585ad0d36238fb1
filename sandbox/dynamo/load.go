package dynamo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// Put stores an item, given as a DynamoDB JSON object, without going through HTTP: it
// is checked, committed and streamed as PutItem does.
func (s *Server) Put(tableName string, item []byte) error { return s.Load(tableName, item) }

// Load is Put for many items. What was loaded before an error stays.
func (s *Server) Load(tableName string, items ...[]byte) error {
	t, bad := s.find(tableName)
	if bad != nil {
		return bad
	}
	for _, json := range items {
		w, err := readLoaded(json)
		if err != nil {
			return err
		}
		w.table = t
		if bad := w.bind(); bad != nil {
			return bad
		}
		t.Lock()
		bad := w.commit(s)
		t.Unlock()
		if bad != nil {
			return bad
		}
	}
	return nil
}

func readLoaded(json []byte) (*write, error) {
	n, err := wire.Parse(string(json))
	if err != nil {
		return nil, fmt.Errorf("read item: %w", err)
	}
	if bad := attr.CheckMapShape(n); bad != nil {
		return nil, bad
	}
	item, bad := attr.DecodeMap(n)
	if bad == nil {
		bad = request.CheckSize(item)
	}
	if bad != nil {
		return nil, bad
	}
	return &write{node: &wire.Node{Kind: wire.Object}, keyMap: item, newItem: item, put: true}, nil
}

// Delete deletes an item by its key, given as a DynamoDB JSON object, without HTTP.
func (s *Server) Delete(tableName string, key []byte) error {
	w, err := readLoaded(key)
	if err != nil {
		return err
	}
	t, bad := s.find(tableName)
	if bad != nil {
		return bad
	}
	w.put, w.delete, w.table = false, true, t
	if bad := w.bind(); bad != nil {
		return bad
	}
	t.Lock()
	defer t.Unlock()
	if bad := w.commit(s); bad != nil {
		return bad
	}
	return nil
}

// Items returns every item of a table as DynamoDB JSON, in the order of a Scan. The slices are shared: do not change
// them.
func (s *Server) Items(tableName string) ([][]byte, error) {
	t, bad := s.find(tableName)
	if bad != nil {
		return nil, bad
	}
	t.RLock()
	defer t.RUnlock()
	items := make([][]byte, 0, t.Items.Len())
	t.Items.Ascend("", func(r *table.Record) bool {
		items = append(items, r.JSON)
		return true
	})
	return items, nil
}

// saved is a line of a saved sandbox that begins a table; its items follow, one a line.
type saved struct {
	Format int
	Table  table.Definition
	Items  int
}

const format = 1

// Save writes all tables with their items as JSON lines. Every table is consistent in
// itself; no table may be created or deleted meanwhile.
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

// Tables are the names of all tables, sorted.
func (s *Server) Tables() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.tables))
	for name := range s.tables {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

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

// Restore reads what Save wrote into a server without tables. The items make no stream
// records. A stream that was on is enabled anew, with a new ARN, unless the stream
// engine has it already.
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
	if !s.add(t) {
		return fmt.Errorf("a table of this name exists")
	}
	s.o.Stream.KeySpace(t.Name, table.AppendKeys(nil, def.Keys), def.Partitions())
	if _, _, _, enabled := s.o.Stream.Describe(t.Name); def.StreamView != "" && !enabled {
		s.o.Stream.Enable(t.Name, def.StreamView)
	}
	return nil
}
