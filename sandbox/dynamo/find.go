package dynamo

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/tailrace-cdc/replicator/sandbox/table"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

var errNoTable = &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found"}

// find returns a table for the item operations, which do not see one that is not yet,
// or no longer, there.
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

// findAny returns a table for the operations on tables.
func (s *Server) findAny(name string) (*table.Table, *wire.Error) {
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found: Table: " + name + " not found"}
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
