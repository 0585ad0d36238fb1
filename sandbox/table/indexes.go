package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// changeIndexes creates, changes and deletes global indexes.
func (d *Definition) changeIndexes(r *wire.Node) *wire.Error {
	updates, defs := r.Get("GlobalSecondaryIndexUpdates"), r.Get("AttributeDefinitions")
	if updates == nil {
		return nil
	}
	if err := checkIndexUpdates(updates); err != nil {
		return err
	}
	if err := d.addAttributes(defs, createdKeys(updates)); err != nil {
		return err
	}
	d.Global = slices.Clone(d.Global)
	for i := range updates.Kids {
		if err := d.changeIndex(&updates.Kids[i], defs != nil); err != nil {
			return err
		}
	}
	d.dropUnusedAttributes()
	return nil
}

// checkCapacities refuses to give a table that was on demand a capacity, but not its indexes.
// Source: architect/dynalite, test/updateTable.js, and ack-api-quirks, services/dynamodb,
// DDB-TABLE-152.
func (d *Definition) checkCapacities() *wire.Error {
	var without []string
	for i := range d.Global {
		if d.Global[i].Read == 0 {
			without = append(without, d.Global[i].Name)
		}
	}
	if len(without) > 0 {
		return wire.BadValue("ProvisionedThroughput must be specified for index: %s", strings.Join(without, ","))
	}
	return nil
}

// createdKeys returns the key attributes of the indexes that updates create.
func createdKeys(updates *wire.Node) []KeyElement {
	var keys []KeyElement
	for i := range updates.Kids {
		if n := updates.Kids[i].Get("Create"); n != nil {
			keys = append(keys, readKeys(n.Get("KeySchema"))...)
		}
	}
	return keys
}

// addAttributes adds an update's attribute definitions. An update may repeat the table's
// definitions. It may change none that an index which it creates uses; the service ignores other
// definitions.
func (d *Definition) addAttributes(defs *wire.Node, created []KeyElement) *wire.Error {
	if defs == nil {
		return nil
	}
	d.Attributes = slices.Clone(d.Attributes)
	added := readAttributes(defs)
	for i, a := range added {
		if slices.ContainsFunc(added[:i], func(o AttributeDefinition) bool { return o.AttributeName == a.AttributeName }) {
			return errDuplicateAttribute(a.AttributeName)
		}
		at := slices.IndexFunc(d.Attributes,
			func(old AttributeDefinition) bool { return old.AttributeName == a.AttributeName })
		switch {
		case at < 0:
			d.Attributes = append(d.Attributes, a)
		case d.Attributes[at].AttributeType != a.AttributeType && hasKey(created, a.AttributeName):
			return d.errRedefined(a)
		}
	}
	return nil
}

// errRedefined returns the error for a definition that gives a key attribute another type.
func (d *Definition) errRedefined(a AttributeDefinition) *wire.Error {
	keys := d.Keys // the schema that has the attribute: the table's, or an index's
	for _, all := range [2][]Index{d.Local, d.Global} {
		for i := range all {
			if !hasKey(keys, a.AttributeName) {
				keys = all[i].Keys
			}
		}
	}
	return wire.BadValue("Attributes cannot be redefined. Please check that your attribute has the same type as "+
		"previously defined. Existing schema: %s New schema: %s", schemaText(keys, d.Attributes),
		schemaText(keys, append([]AttributeDefinition{a}, d.Attributes...)))
}

// hasKey reports whether a key schema has an attribute.
func hasKey(keys []KeyElement, name string) bool {
	return slices.ContainsFunc(keys, func(k KeyElement) bool { return k.AttributeName == name })
}

// schemaText returns a key schema as messages show it, with the type of the first definition of
// each attribute.
func schemaText(keys []KeyElement, defs []AttributeDefinition) string {
	var out []string
	for _, k := range keys {
		at := slices.IndexFunc(defs, func(a AttributeDefinition) bool { return a.AttributeName == k.AttributeName })
		out = append(out, "SchemaElement: key{"+k.AttributeName+":"+defs[at].AttributeType+":"+k.KeyType+"}")
	}
	return "Schema:[" + strings.Join(out, ", ") + "]"
}

// dropUnusedAttributes removes the definitions of attributes that are no longer keys, such as those
// of a deleted index.
func (d *Definition) dropUnusedAttributes() {
	used := d.usedAttributes()
	d.Attributes = slices.DeleteFunc(slices.Clone(d.Attributes),
		func(a AttributeDefinition) bool { return !used[a.AttributeName] })
	d.sortAttributes()
}

// checkIndexUpdates refuses two changes of one index in a call, and two indexes that are created or
// deleted.
func checkIndexUpdates(updates *wire.Node) *wire.Error {
	seen, online := map[string]bool{}, 0
	for i := range updates.Kids {
		actions := 0
		for _, action := range []string{"Create", "Update", "Delete"} {
			n := updates.Kids[i].Get(action)
			if n == nil {
				continue
			}
			if actions++; actions > 1 {
				return wire.BadValue("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
			}
			name := n.Str("IndexName")
			if seen[name] {
				return wire.BadValue("Only one global secondary index update per index is allowed simultaneously. Index: %s", name)
			}
			if seen[name] = true; action != "Update" {
				online++
			}
		}
	}
	if online > 1 {
		return &wire.Error{Code: "LimitExceededException",
			Message: "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"}
	}
	return nil
}

// changeIndex applies one GlobalSecondaryIndexUpdate of a request that has AttributeDefinitions or
// not.
func (d *Definition) changeIndex(u *wire.Node, defined bool) *wire.Error {
	at := func(n *wire.Node) int {
		return slices.IndexFunc(d.Global, func(ix Index) bool { return ix.Name == n.Str("IndexName") })
	}
	local := func(n *wire.Node) bool {
		return slices.ContainsFunc(d.Local, func(ix Index) bool { return ix.Name == n.Str("IndexName") })
	}
	missing := func(verb string, n *wire.Node) *wire.Error {
		if local(n) {
			return wire.Invalid("Cannot %s an index that is not a GlobalSecondaryIndex: %s", verb, n.Str("IndexName"))
		}
		return &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found: Index " +
			n.Str("IndexName") + " for table " + d.Name}
	}
	switch {
	case u.Has("Create"):
		n := u.Get("Create")
		if at(n) >= 0 || local(n) {
			return wire.Invalid("Attempting to create an index which already exists")
		}
		return d.createIndex(n, defined)
	case u.Has("Delete"):
		n := u.Get("Delete")
		if at(n) < 0 {
			return missing("delete", n)
		}
		d.Global = slices.Delete(d.Global, at(n), at(n)+1)
	case u.Has("Update"):
		n := u.Get("Update")
		switch {
		case at(n) < 0:
			return missing("update", n)
		case n.Has("ProvisionedThroughput") && !d.OnDemand:
			return d.Global[at(n)].changeThroughput(n.Get("ProvisionedThroughput"))
		case n.Has("ProvisionedThroughput") || !n.Has("OnDemandThroughput") && !n.Has("WarmThroughput"):
			return d.errIndexUpdate(n.Str("IndexName"))
		}
	default:
		return wire.BadValue("One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
			"GlobalSecondaryIndexUpdate.Delete must not be null")
	}
	return nil
}

// errIndexUpdate returns the error of an update of an index that does not change what an index of
// this table has. Source: ack-api-quirks, services/dynamodb, DDB-TABLE-152 and DDB-TABLE-442.
func (d *Definition) errIndexUpdate(name string) *wire.Error {
	if d.OnDemand {
		return wire.BadValue("The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST can be to "+
			"OnDemandThroughput, WarmThroughput", name)
	}
	return wire.BadValue("Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %s", name)
}

// createIndex adds an index that no other one has the name of. Source of what it refuses:
// ack-api-quirks, services/dynamodb, DDB-TABLE-152, DDB-TABLE-162, DDB-TABLE-169 and DDB-TABLE-442.
func (d *Definition) createIndex(n *wire.Node, defined bool) *wire.Error {
	name := n.Str("IndexName")
	switch {
	case !defined:
		return wire.BadValue("AttributeDefinitions is not specified for index: %s", name)
	case d.OnDemand && n.Has("ProvisionedThroughput"):
		return wire.BadValue("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s when "+
			"BillingMode is PAY_PER_REQUEST", name)
	case !d.OnDemand && !n.Has("ProvisionedThroughput"):
		return d.errIndexUpdate(name)
	}
	ix, err := d.readIndex("Global", n)
	if err != nil {
		return err
	}
	if d.Global = append(d.Global, ix); len(d.Global) > maxGlobal {
		return &wire.Error{Code: "LimitExceededException", Message: fmt.Sprintf("Subscriber limit exceeded: Number of "+
			"global secondary indexes exceeds per-table limit of %d", maxGlobal)}
	}
	return nil
}

// changeThroughput sets an index's capacity.
func (ix *Index) changeThroughput(n *wire.Node) *wire.Error {
	read, write := ix.Read, ix.Write
	if err := readThroughput(n, &ix.Read, &ix.Write); err != nil {
		return err
	}
	if read == ix.Read && write == ix.Write {
		return wire.Invalid("The provisioned throughput for the index %s will not change. The requested value equals the "+
			"current value. "+
			"Current ReadCapacityUnits provisioned for the index: %d. Requested ReadCapacityUnits: %d. "+
			"Current WriteCapacityUnits provisioned for the index: %d. Requested WriteCapacityUnits: %d. "+
			"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher "+
			"limits.", ix.Name, read, ix.Read, write, ix.Write)
	}
	return nil
}
