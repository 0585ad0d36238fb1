package dynamo

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

func (s *Server) createTable(r *call) ([]byte, *wire.Error) {
	def, err := table.ReadDefinition(r.Node)
	if err != nil {
		return nil, err
	}
	view, err := checkStream(r.Get("StreamSpecification"))
	if err != nil {
		return nil, err
	}
	def.Created = s.o.Clock.Now()
	def.ID, def.Status, def.StreamView = newUUID(), "CREATING", view
	t := table.NewTable(def)
	t.Ready = def.Created.Add(s.o.Transition)
	t.Lock()
	defer t.Unlock()
	if !s.add(t) {
		return nil, &wire.Error{Code: "ResourceInUseException", Message: "Table already exists: " + def.Name}
	}
	s.o.Stream.KeySpace(t.Name, table.AppendKeys(nil, def.Keys), def.Partitions())
	if view != "" {
		s.o.Stream.Enable(t.Name, view)
	}
	s.o.Log.Info("table created", zap.String("table", t.Name), zap.String("stream", view))
	return s.description("TableDescription", t, "CREATING"), nil
}

// add makes a table known, unless there is one of that name that is not yet gone.
func (s *Server) add(t *table.Table) bool {
	if old, err := s.findAny(t.Name); err == nil && old != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[t.Name] != nil {
		return false
	}
	s.tables[t.Name] = t
	return true
}

func (s *Server) description(field string, t *table.Table, status string) []byte {
	return append(t.AppendDescription(wire.AppendField([]byte{'{'}, field), s.shown(t, status)), '}')
}

func (s *Server) shown(t *table.Table, status string) table.Shown {
	shown := table.Shown{ARN: s.arn(t.Name), Status: status}
	shown.StreamARN, shown.StreamLabel, shown.StreamView, shown.StreamOn = s.o.Stream.Describe(t.Name)
	return shown
}

// inUse is the answer to a change of a table whose last change is under way.
func inUse(t *table.Table, status string) *wire.Error {
	doing := map[string]string{"CREATING": "created", "UPDATING": "updated", "DELETING": "deleted"}[status]
	return &wire.Error{Code: "ResourceInUseException",
		Message: "Attempt to change a resource which is still in use: Table is being " + doing + ": " + t.Name}
}

func (s *Server) arn(name string) string {
	return "arn:aws:dynamodb:" + s.o.Region + ":" + s.o.Account + ":table/" + name
}

func (s *Server) describeTable(r *call) ([]byte, *wire.Error) {
	if err := table.CheckName(r.Str("TableName")); err != nil {
		return nil, err
	}
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.RLock()
	defer t.RUnlock()
	return s.description("Table", t, t.Status(s.o.Clock.Now())), nil
}

func (s *Server) listTables(r *call) ([]byte, *wire.Error) {
	limit, ok := r.Int("Limit")
	if !ok {
		limit = 100
	}
	var all []string
	for _, name := range s.Tables() {
		if _, err := s.findAny(name); err == nil && name > r.Str("ExclusiveStartTableName") {
			all = append(all, name)
		}
	}
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

func (s *Server) deleteTable(r *call) ([]byte, *wire.Error) {
	if err := table.CheckName(r.Str("TableName")); err != nil {
		return nil, err
	}
	t, err := s.findAny(r.Str("TableName"))
	if err != nil {
		return nil, err
	}
	t.Lock()
	now := s.o.Clock.Now()
	deleted := func() []byte {
		return append(t.AppendDeleted(wire.AppendField([]byte{'{'}, "TableDescription"), s.shown(t, "DELETING")), '}')
	}
	switch status := t.Status(now); {
	case status == "DELETING": // no error, says the API reference
		defer t.Unlock()
		return deleted(), nil
	case status != "ACTIVE":
		t.Unlock()
		return nil, inUse(t, status)
	case t.Def.Protected:
		t.Unlock()
		return nil, wire.Invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	t.Def.Status, t.Ready = "DELETING", now.Add(s.o.Transition)
	reply := deleted()
	s.o.Stream.Disable(t.Name) // before anybody can create a table of that name
	t.Unlock()
	if s.o.Transition == 0 {
		s.drop(t)
	}
	s.o.Log.Info("table deleted", zap.String("table", t.Name))
	return reply, nil
}

func (s *Server) updateTable(r *call) ([]byte, *wire.Error) {
	if err := table.CheckName(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := table.CheckUpdate(r.Node); err != nil {
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
	t.Lock()
	defer t.Unlock()
	if status := t.Status(s.o.Clock.Now()); status != "ACTIVE" {
		return nil, inUse(t, status)
	}
	before, def := t.Def, t.Def
	if err := def.Change(r.Node, s.o.Clock.Now()); err != nil {
		return nil, err
	}
	if r.Has("StreamSpecification") {
		if err := s.switchStream(t, view); err != nil {
			return nil, err
		}
		def.StreamView = view
	}
	t.Def = def
	t.Def.Status, t.Ready = "UPDATING", s.o.Clock.Now().Add(s.o.Transition)
	shown := s.shown(t, "UPDATING")
	shown.Def = t.Def.Updating(&before)
	return append(t.AppendDescription(wire.AppendField([]byte{'{'}, "TableDescription"), shown), '}'), nil
}

// switchStream turns a table's stream on or, for view "", off.
func (s *Server) switchStream(t *table.Table, view string) *wire.Error {
	_, _, _, enabled := s.o.Stream.Describe(t.Name)
	switch {
	case enabled && view != "":
		return wire.Invalid("Table already has an enabled stream: TableName: %s", t.Name)
	case !enabled && view == "":
		return wire.Invalid("Table already has its stream disabled, there is no enabled stream to disable: TableName: %s", t.Name)
	case view != "":
		s.o.Stream.Enable(t.Name, view)
	default:
		s.o.Stream.Disable(t.Name)
	}
	s.o.Log.Info("stream switched", zap.String("table", t.Name), zap.String("view", view))
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

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
