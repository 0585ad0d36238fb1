package pattern

import (
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// write reads a PutItem, UpdateItem or DeleteItem.
func (c *call) write(n *wire.Node) Reason { return c.writing(n, "") }

// writing reads one write, alone or as an action of a transaction.
func (c *call) writing(n *wire.Node, action string) Reason {
	p, ok := c.pattern(Write, n.Str("TableName"))
	if !ok {
		return BadTable
	}
	p.Action = action
	p.Conditional = n.Has("ConditionExpression") || filters(n, "Expected")
	if n.Has("UpdateExpression") {
		env, ok := environment(n)
		if !ok {
			return BadExpression
		}
		u, err := env.Update(n.Str("UpdateExpression"))
		if err != nil {
			return BadExpression
		}
		p.Adds, p.Computes = u.Adds(), u.Computes()
	}
	if updates := n.Get("AttributeUpdates"); updates != nil {
		for i := range updates.Kids {
			p.Adds = p.Adds || updates.Kids[i].Str("Action") == "ADD"
		}
	}
	c.add(p)
	return ""
}

// actions are the kinds of actions in batches and transactions.
var actions = []struct{ field, name string }{
	{"PutRequest", "put"}, {"DeleteRequest", "delete"},
	{"Put", "put"}, {"Update", "update"}, {"Delete", "delete"}, {"ConditionCheck", "check"},
}

// batchWrite reads a BatchWriteItem: a pattern for the puts and one for the deletes of each table.
func (c *call) batchWrite(n *wire.Node) Reason {
	tables := n.Get("RequestItems")
	if tables == nil || tables.Kind != wire.Object || len(tables.Kids) == 0 {
		return BadTable
	}
	for i := range tables.Kids {
		of := &tables.Kids[i]
		for k := range of.Kids {
			p, ok := c.pattern(Write, of.Name)
			if !ok {
				return BadTable
			}
			for _, a := range actions[:2] {
				if of.Kids[k].Has(a.field) {
					p.Action = a.name
				}
			}
			if p.Action == "" {
				return BadKey
			}
			c.add(p)
		}
	}
	return ""
}

// transactWrite reads a TransactWriteItems: a pattern for each table and form of action.
func (c *call) transactWrite(n *wire.Node) Reason {
	list := n.Get("TransactItems")
	if list == nil || len(list.Kids) == 0 {
		return BadKey
	}
	for i := range list.Kids {
		found := false
		for _, a := range actions[2:] {
			if action := list.Kids[i].Get(a.field); action != nil {
				found = true
				if reason := c.writing(action, a.name); reason != "" {
					return reason
				}
			}
		}
		if !found {
			return BadKey
		}
	}
	return ""
}
