package dynamo

import (
	"sort"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

var errNoTable = &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found"}

// find returns a table for the operations on items. For them a table that is being created or
// deleted does not exist.
func (s *Server) find(name string) (*table.Table, *wire.Error) {
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, errNoTable
	}
	t.RLock()
	status := t.Status(s.o.Clock.Now())
	t.RUnlock()
	if status == "CREATING" || status == "DELETING" {
		return nil, errNoTable
	}
	return t, nil
}

// findAny returns a table in any status, for the operations on tables. It drops a table after its
// deletion period.
func (s *Server) findAny(name string) (*table.Table, *wire.Error) {
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, &wire.Error{Code: "ResourceNotFoundException",
			Message: "Requested resource not found: Table: " + name + " not found"}
	}
	t.RLock()
	over := t.Def.Status == "DELETING" && !s.o.Clock.Now().Before(t.Ready)
	t.RUnlock()
	if over {
		s.drop(t)
		return s.findAny(name)
	}
	return t, nil
}

// all returns all tables, in no order.
func (s *Server) all() []*table.Table {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*table.Table, 0, len(s.tables))
	for _, t := range s.tables {
		all = append(all, t)
	}
	return all
}

// Tables returns the names of all tables, sorted.
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

// drop removes a table; its stream stays readable. It removes the stream engine's state of the
// table under the same lock, so that it cannot remove the state of a new table of the same name.
func (s *Server) drop(t *table.Table) {
	t.Lock()
	t.Gone = true
	t.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[t.Name] == t {
		delete(s.tables, t.Name)
		s.o.Stream.Drop(t.Name)
	}
}

// tableOf returns the table's name in an ARN, which every call accepts in its place, and any other
// text unchanged.
func tableOf(name string) string {
	if !strings.HasPrefix(name, "arn:") {
		return name
	}
	_, rest, ok := strings.Cut(name, ":table/")
	if !ok {
		return name
	}
	rest, _, _ = strings.Cut(rest, "/")
	return rest
}
