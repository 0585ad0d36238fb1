package table

import (
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// CheckUpdate refuses UpdateTable requests that change nothing.
func CheckUpdate(r *wire.Node) *wire.Error {
	for _, f := range []string{"ProvisionedThroughput", "BillingMode", "StreamSpecification",
		"GlobalSecondaryIndexUpdates",
		"SSESpecification", "DeletionProtectionEnabled", "TableClass", "OnDemandThroughput", "ReplicaUpdates"} {
		switch {
		case !r.Has(f):
		case f == "ReplicaUpdates":
			return wire.Invalid("ReplicaUpdates is not supported by the sandbox")
		case f == "GlobalSecondaryIndexUpdates" && len(r.Get(f).Kids) == 0: // as if it were absent
		default:
			return nil
		}
	}
	return wire.Invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
		"GlobalSecondaryIndexUpdates " +
		"or SSESpecification or ReplicaUpdates is required")
}

// Change applies an UpdateTable request at a time. The caller passes a copy, because a refused
// request may leave it partly changed.
func (d *Definition) Change(r *wire.Node, now time.Time) *wire.Error {
	through := r.Get("ProvisionedThroughput")
	switch mode := r.Str("BillingMode"); {
	case mode == "PAY_PER_REQUEST" && through != nil, mode == "" && d.OnDemand && through != nil:
		return wire.BadValue("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is " +
			"PAY_PER_REQUEST")
	case mode == "PROVISIONED" && through == nil && d.OnDemand:
		return wire.BadValue("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case mode == "PAY_PER_REQUEST":
		if !d.OnDemand {
			d.OnDemandSince = now
		}
		d.OnDemand, d.Read, d.Write = true, 0, 0
	case mode == "PROVISIONED":
		if d.OnDemand && d.OnDemandSince.IsZero() {
			d.OnDemandSince = d.Created
		}
		d.OnDemand = false
	}
	if through != nil {
		if err := d.changeThroughput(through, now); err != nil {
			return err
		}
	}
	if r.Has("DeletionProtectionEnabled") {
		d.Protected = r.True("DeletionProtectionEnabled")
	}
	if class := r.Str("TableClass"); class != "" {
		d.Class = strings.Clone(class)
	}
	return d.changeIndexes(r)
}

// changeThroughput sets the table's capacity, and records the time of the change.
func (d *Definition) changeThroughput(n *wire.Node, now time.Time) *wire.Error {
	read, write := d.Read, d.Write
	if err := readThroughput(n, &d.Read, &d.Write); err != nil {
		return err
	}
	if read == d.Read && write == d.Write {
		return wire.Invalid("The provisioned throughput for the table will not change. The requested value equals the "+
			"current value. "+
			"Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. "+
			"Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. "+
			"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher "+
			"limits.", read, d.Read, write, d.Write)
	}
	if d.Read < read || d.Write < write {
		d.reduced, d.decreases = now, d.decreases+1
	}
	if d.Read > read || d.Write > write {
		d.increased = now
	}
	return nil
}

// changeIndexes creates, changes and deletes global indexes.
func (d *Definition) changeIndexes(r *wire.Node) *wire.Error {
	updates := r.Get("GlobalSecondaryIndexUpdates")
	if updates == nil {
		return nil
	}
	if err := checkIndexUpdates(updates); err != nil {
		return err
	}
	if err := d.addAttributes(r.Get("AttributeDefinitions"), createdKeys(updates)); err != nil {
		return err
	}
	d.Global = slices.Clone(d.Global)
	for i := range updates.Kids {
		if err := d.changeIndex(&updates.Kids[i]); err != nil {
			return err
		}
	}
	d.dropUnusedAttributes()
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
}

// checkIndexUpdates refuses two changes of one index in a call, and two indexes that are created or
// deleted.
func checkIndexUpdates(updates *wire.Node) *wire.Error {
	seen, online := map[string]bool{}, 0
	for i := range updates.Kids {
		for _, action := range []string{"Create", "Update", "Delete"} {
			n := updates.Kids[i].Get(action)
			if n == nil {
				continue
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

// changeIndex applies one GlobalSecondaryIndexUpdate.
func (d *Definition) changeIndex(u *wire.Node) *wire.Error {
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
		return &wire.Error{Code: "ResourceNotFoundException", Message: "Requested resource not found: No such index: " +
			n.Str("IndexName")}
	}
	switch {
	case u.Has("Create"):
		n := u.Get("Create")
		if at(n) >= 0 || local(n) {
			return wire.Invalid("Attempting to create an index which already exists")
		}
		ix, err := d.readIndex("Global", n)
		if err != nil {
			return err
		}
		d.Global = append(d.Global, ix)
	case u.Has("Delete"):
		n := u.Get("Delete")
		if at(n) < 0 {
			return missing("delete", n)
		}
		d.Global = slices.Delete(d.Global, at(n), at(n)+1)
	case u.Has("Update"):
		n := u.Get("Update")
		if at(n) < 0 {
			return missing("update", n)
		}
		return d.Global[at(n)].changeThroughput(n.Get("ProvisionedThroughput"))
	default:
		return wire.BadValue("One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
			"GlobalSecondaryIndexUpdate.Delete must not be null")
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

// Updating returns the definition that UpdateTable shows while a table changes from before to d:
// the old capacity, and the status of indexes that are created, changed or deleted.
func (d *Definition) Updating(before *Definition) *Definition {
	shown := *d
	if d.OnDemand == before.OnDemand {
		shown.Read, shown.Write = before.Read, before.Write
	}
	shown.Global = nil
	for _, ix := range before.Global {
		at := slices.IndexFunc(d.Global, func(now Index) bool { return now.Name == ix.Name })
		switch {
		case at < 0:
			ix.status = "DELETING"
		case d.Global[at].Read != ix.Read || d.Global[at].Write != ix.Write:
			ix.status = "UPDATING"
		}
		shown.Global = append(shown.Global, ix)
	}
	for _, ix := range d.Global {
		if !slices.ContainsFunc(before.Global, func(old Index) bool { return old.Name == ix.Name }) {
			ix.status = "CREATING"
			shown.Global = append(shown.Global, ix)
		}
	}
	return &shown
}
