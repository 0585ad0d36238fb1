package pattern

import (
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// call collects the patterns of one request.
type call struct {
	reader    *Reader
	operation string
	uses      []Use
	asked     []Asked
}

// pattern returns a pattern of the call for a table; ok is false where its name is not one.
func (c *call) pattern(kind Kind, table string) (p Pattern, ok bool) {
	name, ok := tableName(table)
	return Pattern{Kind: kind, Operation: c.operation, Table: name}, ok
}

// ask adds a read by key.
func (c *call) ask(p Pattern, tests []access.Test) {
	c.asked = append(c.asked, Asked{Of: p, Pattern: p, Tests: tests})
}

// add adds a pattern with one key to the call, or the key to the same pattern of an earlier one.
func (c *call) add(p Pattern) {
	id := p.ID()
	for i := range c.uses {
		if c.uses[i].Pattern.ID() == id {
			c.uses[i].Keys++
			return
		}
	}
	c.uses = append(c.uses, Use{Pattern: p, Keys: 1})
}

// statement counts PartiQL.
func (c *call) statement(*wire.Node) Reason {
	c.add(Pattern{Kind: Statement, Operation: "PartiQL"})
	return ""
}
