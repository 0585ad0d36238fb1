package dynamo

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// createTable makes a table that is CREATING for Options.Transition.
func (s *Server) createTable(r *call) ([]byte, *wire.Error) {
	def, err := table.ReadDefinition(r.Node)
	if err != nil {
		return nil, err
	}
	view, err := checkStream(r.Get("StreamSpecification"), streamOfCreate)
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

// add adds a table, unless one of that name exists.
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

// description returns a reply with a table's description. The caller holds the table's lock.
func (s *Server) description(field string, t *table.Table, status string) []byte {
	return append(t.AppendDescription(wire.AppendField([]byte{'{'}, field), s.shown(t, status)), '}')
}

// shown returns what a description has beside the definition.
func (s *Server) shown(t *table.Table, status string) table.Shown {
	shown := table.Shown{ARN: s.arn(t.Name), Status: status}
	shown.StreamARN, shown.StreamLabel, shown.StreamView, shown.StreamOn = s.o.Stream.Describe(t.Name)
	return shown
}

// inUse returns the error for a change of a table while its last change is still under way.
func inUse(t *table.Table, status string) *wire.Error {
	doing := map[string]string{"CREATING": "created", "UPDATING": "updated", "DELETING": "deleted"}[status]
	return &wire.Error{Code: "ResourceInUseException",
		Message: "Attempt to change a resource which is still in use: Table is being " + doing + ": " + t.Name}
}

// arn returns a table's ARN.
func (s *Server) arn(name string) string {
	return "arn:aws:dynamodb:" + s.o.Region + ":" + s.o.Account + ":table/" + name
}

// describeTable returns the description of a table in any status.
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

// listTables returns a page of table names.
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

// deleteTable makes a table DELETING for Options.Transition and disables its stream.
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
	case status == "DELETING": // not an error: see the API reference
		defer t.Unlock()
		return deleted(), nil
	case status != "ACTIVE":
		t.Unlock()
		return nil, inUse(t, status)
	case t.Def.Protected:
		t.Unlock()
		return nil, wire.Invalid("Resource cannot be deleted as it is currently protected against deletion. Disable " +
			"deletion protection first.")
	}
	t.Def.Status, t.Ready = "DELETING", now.Add(s.o.Transition)
	reply := deleted()
	s.o.Stream.Disable(t.Name) // while no other table of that name can exist
	t.Unlock()
	if s.o.Transition == 0 {
		s.drop(t)
	}
	s.o.Log.Info("table deleted", zap.String("table", t.Name))
	return reply, nil
}

// updateTable changes a table, which is UPDATING for Options.Transition.
func (s *Server) updateTable(r *call) ([]byte, *wire.Error) {
	if err := table.CheckName(r.Str("TableName")); err != nil {
		return nil, err
	}
	if err := table.CheckUpdate(r.Node); err != nil {
		return nil, err
	}
	view, err := checkStream(r.Get("StreamSpecification"), streamOfUpdate)
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

// switchStream enables a table's stream or, for view "", disables it.
func (s *Server) switchStream(t *table.Table, view string) *wire.Error {
	_, _, _, enabled := s.o.Stream.Describe(t.Name)
	switch {
	case enabled && view != "":
		return wire.Invalid("Table already has an enabled stream: TableName: %s", t.Name)
	case !enabled && view == "":
		return wire.Invalid("Table has no stream to disable: TableName: %s", t.Name)
	case view != "":
		s.o.Stream.Enable(t.Name, view)
	default:
		s.o.Stream.Disable(t.Name)
	}
	s.o.Log.Info("stream switched", zap.String("table", t.Name), zap.String("view", view))
	return nil
}

// SwitchStream enables a table's stream or, for view "", disables it, as UpdateTable does, at once.
func (s *Server) SwitchStream(name, view string) error {
	t, bad := s.findAny(name)
	if bad != nil {
		return bad
	}
	t.Lock()
	defer t.Unlock()
	if bad := s.switchStream(t, view); bad != nil {
		return bad
	}
	t.Def.StreamView = view
	return nil
}

// streamWords are the messages for a view type that is missing or superfluous. Source:
// ack-api-quirks, services/dynamodb, DDB-TABLE-442.
type streamWords struct{ missing, superfluous string }

var (
	streamOfCreate = streamWords{"Table is being created with a stream enabled, UpdateViewType is required",
		"Table is being created with a stream disabled, UpdateViewType should not be specified"}
	streamOfUpdate = streamWords{"If stream is being enabled then UpdateViewType is required",
		"If stream is being disabled, then UpdateViewType must not be specified"}
)

// checkStream returns the view type of a StreamSpecification, "" for a disabled stream.
func checkStream(n *wire.Node, words streamWords) (view string, err *wire.Error) {
	if n == nil {
		return "", nil
	}
	view = strings.Clone(n.Str("StreamViewType"))
	switch on := n.True("StreamEnabled"); {
	case on && view == "":
		return "", wire.BadValue(words.missing)
	case !on && view != "":
		return "", wire.BadValue(words.superfluous)
	}
	return view, nil
}

// newUUID returns a random UUID, as table ids are.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
