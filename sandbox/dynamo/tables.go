package dynamo

import (
	"sort"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

func (s *Server) createTable(r *request) ([]byte, *wire.Error) {
	def, err := readDefinition(r.Node)
	if err != nil {
		return nil, err
	}
	view, err := checkStream(r.Get("StreamSpecification"))
	if err != nil {
		return nil, err
	}
	def.Created = s.o.Clock.Now()
	def.ID, def.Status, def.StreamView = newUUID(), "CREATING", view
	t := newTable(def)
	t.ready = def.Created.Add(s.o.Transition)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.add(t) {
		return nil, &wire.Error{Code: "ResourceInUseException", Message: "Table already exists: " + def.Name}
	}
	s.o.Stream.KeySchema(t.name, appendKeys(nil, def.Keys))
	if view != "" {
		s.o.Stream.Enable(t.name, view)
	}
	s.o.Log.Info("table created", zap.String("table", t.name), zap.String("stream", view))
	return s.description("TableDescription", t, "CREATING"), nil
}

// add makes a table known, unless there is one of that name that is not yet gone.
func (s *Server) add(t *Table) bool {
	if old, err := s.findAny(t.name); err == nil && old != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[t.name] != nil {
		return false
	}
	s.tables[t.name] = t
	return true
}

func (s *Server) description(field string, t *Table, status string) []byte {
	return append(s.appendTable(wire.AppendField([]byte{'{'}, field), t, status), '}')
}

func (s *Server) describeTable(r *request) ([]byte, *wire.Error) {
	if err := checkTableName(r.Str("TableName")); err != nil {
		return nil, err
	}
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return s.description("Table", t, t.status(s.o.Clock.Now())), nil
}

func (s *Server) listTables(r *request) ([]byte, *wire.Error) {
	limit, ok := r.Int("Limit")
	if !ok {
		limit = 100
	}
	s.mu.RLock()
	all := make([]string, 0, len(s.tables))
	for name := range s.tables {
		if name > r.Str("ExclusiveStartTableName") {
			all = append(all, name)
		}
	}
	s.mu.RUnlock()
	sort.Strings(all)
	more := int64(len(all)) > limit
	if more {
		all = all[:limit]
	}
	b := append(wire.AppendField([]byte{'{'}, "TableNames"), '[')
	for i, name := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, name)
	}
	b = append(b, ']')
	if more {
		b = wire.AppendText(b, "LastEvaluatedTableName", all[len(all)-1])
	}
	return append(b, '}'), nil
}

func (s *Server) deleteTable(r *request) ([]byte, *wire.Error) {
	if err := checkTableName(r.Str("TableName")); err != nil {
		return nil, err
	}
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	now := s.o.Clock.Now()
	inUse := &wire.Error{Code: "ResourceInUseException", Message: "Attempt to change a resource which is still in use: Table is being "}
	switch status := t.status(now); {
	case status != "ACTIVE":
		t.mu.Unlock()
		inUse.Message += strings.ToLower(strings.Replace(status, "CREATING", "created", 1)) + ": " + t.name
		return nil, inUse
	case t.def.Protected:
		t.mu.Unlock()
		return nil, wire.Invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	t.def.Status, t.ready = "DELETING", now.Add(s.o.Transition)
	reply := s.description("TableDescription", t, "DELETING")
	t.mu.Unlock()
	s.o.Stream.Disable(t.name)
	if s.o.Transition == 0 {
		s.drop(t)
	}
	s.o.Log.Info("table deleted", zap.String("table", t.name))
	return reply, nil
}

// drop forgets a table. Its stream stays readable.
func (s *Server) drop(t *Table) {
	s.mu.Lock()
	known := s.tables[t.name] == t
	if known {
		delete(s.tables, t.name)
	}
	s.mu.Unlock()
	if known {
		t.mu.Lock()
		t.gone = true
		t.mu.Unlock()
		s.o.Stream.Drop(t.name)
	}
}

func (s *Server) updateTable(r *request) ([]byte, *wire.Error) {
	if err := checkTableName(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := checkTableUpdate(r); err != nil {
		return nil, err
	}
	view, err := checkStream(r.Get("StreamSpecification"))
	if err != nil {
		return nil, err
	}
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if status := t.status(s.o.Clock.Now()); status != "ACTIVE" {
		return nil, &wire.Error{Code: "ResourceInUseException",
			Message: "Attempt to change a resource which is still in use: Table is being " + strings.ToLower(status) + ": " + t.name}
	}
	def := t.def
	if err := def.change(r, s.o.Clock.Now()); err != nil {
		return nil, err
	}
	if r.Has("StreamSpecification") {
		if err := s.switchStream(t, view); err != nil {
			return nil, err
		}
		def.StreamView = view
	}
	t.def = def
	t.def.Status, t.ready = "UPDATING", s.o.Clock.Now().Add(s.o.Transition)
	return s.description("TableDescription", t, "UPDATING"), nil
}

// switchStream turns a table's stream on or, for view "", off.
func (s *Server) switchStream(t *Table, view string) *wire.Error {
	_, _, _, enabled := s.o.Stream.Describe(t.name)
	switch {
	case enabled && view != "":
		return wire.Invalid("Table already has an enabled stream: TableName: %s", t.name)
	case !enabled && view == "":
		return wire.Invalid("Table already has its stream disabled, there is no enabled stream to disable: TableName: %s", t.name)
	case view != "":
		s.o.Stream.Enable(t.name, view)
	default:
		s.o.Stream.Disable(t.name)
	}
	s.o.Log.Info("stream switched", zap.String("table", t.name), zap.String("view", view))
	return nil
}

// checkStream reads a StreamSpecification: the view type, "" for off.
func checkStream(n *wire.Node) (view string, err *wire.Error) {
	if n == nil {
		return "", nil
	}
	view = strings.Clone(n.Str("StreamViewType"))
	switch on := n.True("StreamEnabled"); {
	case on && view == "":
		return "", wire.BadValue("StreamViewType must be specified when StreamEnabled is true")
	case !on && view != "":
		return "", wire.BadValue("StreamViewType must not be specified when StreamEnabled is false")
	}
	return view, nil
}
