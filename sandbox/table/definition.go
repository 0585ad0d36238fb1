package table

import (
	"math"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// CheckName checks a table name as the operations on tables do.
func CheckName(name string) *wire.Error {
	if len(name) < 3 || len(name) > 255 {
		return wire.Invalid("TableName must be at least 3 characters long and at most 255 characters long")
	}
	return nil
}

// ReadDefinition returns the definition of a CreateTable request, checked in the service's order.
func ReadDefinition(r *wire.Node) (d Definition, err *wire.Error) {
	d.Name = strings.Clone(r.Str("TableName"))
	if err := d.readBilling(r); err != nil {
		return d, err
	}
	d.Attributes = readAttributes(r.Get("AttributeDefinitions"))
	d.Keys = readKeys(r.Get("KeySchema"))
	if err := d.checkKeys(d.Keys); err != nil {
		return d, err
	}
	if err := checkPair(d.Keys); err != nil {
		return d, err
	}
	local, global := r.Get("LocalSecondaryIndexes"), r.Get("GlobalSecondaryIndexes")
	if err := d.checkAllUsed(local, global); err != nil {
		return d, err
	}
	if d.Local, err = d.readIndexes("Local", local); err != nil {
		return d, err
	}
	if d.Global, err = d.readIndexes("Global", global); err != nil {
		return d, err
	}
	d.sortAttributes()
	d.Class = strings.Clone(r.Str("TableClass"))
	d.Protected = r.True("DeletionProtectionEnabled")
	if tags := r.Get("Tags"); tags != nil {
		d.Tags, err = ReadTags(tags)
	}
	return d, err
}

// readBilling reads billing mode and capacity.
func (d *Definition) readBilling(r *wire.Node) *wire.Error {
	d.OnDemand = r.Str("BillingMode") == "PAY_PER_REQUEST"
	through := r.Get("ProvisionedThroughput")
	switch {
	case d.OnDemand && through != nil:
		return wire.BadValue("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is " +
			"PAY_PER_REQUEST")
	case d.OnDemand:
		return nil
	case through == nil:
		return wire.BadValue("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is " +
			"PROVISIONED")
	}
	return readThroughput(through, &d.Read, &d.Write)
}

// onDemandPartitions is how many partitions a new on-demand table has.
const onDemandPartitions = 4

// The capacity of one partition, and the most partitions of a table with a capacity above the
// service's quotas.
const (
	partitionReads  = 3000
	partitionWrites = 1000
	maxPartitions   = 1000
)

// Partitions returns how many partitions a new table with this capacity has. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.Partitions.html
func (d *Definition) Partitions() int {
	if d.OnDemand {
		return onDemandPartitions
	}
	units := float64(d.Read)/partitionReads + float64(d.Write)/partitionWrites
	return int(min(max(1, math.Ceil(units)), maxPartitions))
}

// maxUnits is the largest capacity that the service accepts as a number.
const maxUnits = 1000000000000

// readThroughput reads a capacity.
func readThroughput(n *wire.Node, read, write *int64) *wire.Error {
	*read, _ = n.Int("ReadCapacityUnits")
	*write, _ = n.Int("WriteCapacityUnits")
	switch {
	case *read > maxUnits:
		return wire.Invalid("Given value %d for ReadCapacityUnits is out of bounds", *read)
	case *write > maxUnits:
		return wire.Invalid("Given value %d for WriteCapacityUnits is out of bounds", *write)
	}
	return nil
}

// readAttributes reads AttributeDefinitions.
func readAttributes(n *wire.Node) []AttributeDefinition {
	var out []AttributeDefinition
	for i := range n.Kids {
		out = append(out, AttributeDefinition{strings.Clone(n.Kids[i].Str("AttributeName")),
			strings.Clone(n.Kids[i].Str("AttributeType"))})
	}
	return out
}

// readKeys reads a KeySchema.
func readKeys(n *wire.Node) []KeyElement {
	var out []KeyElement
	for i := range n.Kids {
		out = append(out, KeyElement{strings.Clone(n.Kids[i].Str("AttributeName")), strings.Clone(n.Kids[i].Str("KeyType"))})
	}
	return out
}

// defined reports whether an attribute has a definition.
func (d *Definition) defined(name string) bool {
	return slices.ContainsFunc(d.Attributes, func(a AttributeDefinition) bool { return a.AttributeName == name })
}

// errDuplicateAttribute returns the error for an attribute with two definitions.
func errDuplicateAttribute(name string) *wire.Error {
	return wire.Invalid("Attribute Name is duplicated: %s", name)
}

// checkKeys checks one key schema against the attribute definitions.
func (d *Definition) checkKeys(keys []KeyElement) *wire.Error {
	var names, defs []string
	for _, k := range keys {
		names = append(names, k.AttributeName)
	}
	for _, a := range d.Attributes {
		if slices.Contains(defs, a.AttributeName) {
			return errDuplicateAttribute(a.AttributeName)
		}
		defs = append(defs, a.AttributeName)
	}
	if len(keys) > len(defs) {
		return wire.Invalid("Invalid KeySchema: Some index key attribute have no definition")
	}
	for _, n := range names {
		if !d.defined(n) {
			return wire.BadValue("Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], "+
				"AttributeDefinitions: [%s]",
				strings.Join(names, ", "), strings.Join(defs, ", "))
		}
	}
	switch {
	case len(names) == 2 && names[0] == names[1] && keys[1].KeyType == "RANGE":
		return errSameName
	case keys[0].KeyType != "HASH":
		return wire.Invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	return nil
}

var errSameName = wire.Invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")

// checkPair checks the key schema of a table or a local index, which has at most two elements.
func checkPair(keys []KeyElement) *wire.Error {
	switch {
	case len(keys) != 2 || keys[1].KeyType == "RANGE":
		return nil
	case keys[0].AttributeName == keys[1].AttributeName:
		return errSameName
	}
	return wire.Invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
}

// maxKeyParts is how many attributes the partition key and the sort key of a global index may have.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
const maxKeyParts = 4

// maxGlobal is how many global indexes a table may have. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const maxGlobal = 20

// checkGlobal checks the key schema of a global index.
func checkGlobal(keys []KeyElement) *wire.Error {
	count, last := map[string]int{}, "HASH"
	seen := map[string]bool{}
	for _, k := range keys {
		switch {
		case seen[k.AttributeName]:
			return wire.Invalid("The KeySchema contains multiple key attributes with the same name")
		case k.KeyType == "HASH" && last == "RANGE":
			return wire.BadValue("All HASH key attributes must precede RANGE key attributes in the KeySchema")
		}
		seen[k.AttributeName], last = true, k.KeyType
		count[k.KeyType]++
	}
	for _, kind := range []string{"HASH", "RANGE"} {
		if count[kind] > maxKeyParts {
			return wire.BadValue("The KeySchema exceeds the maximum allowed number of %s key attributes", kind)
		}
	}
	return nil
}

// usedAttributes returns the key attributes of the table and its indexes.
func (d *Definition) usedAttributes() map[string]bool {
	used := map[string]bool{}
	count := func(keys []KeyElement) {
		for _, k := range keys {
			used[k.AttributeName] = true
		}
	}
	count(d.Keys)
	for _, all := range [2][]Index{d.Local, d.Global} {
		for _, ix := range all {
			count(ix.Keys)
		}
	}
	return used
}

// checkAllUsed refuses attribute definitions that no key of the table or of the indexes in a
// request uses. Source of its place before the checks of indexes: ack-api-quirks,
// services/dynamodb, DDB-TABLE-127.
func (d *Definition) checkAllUsed(lists ...*wire.Node) *wire.Error {
	used, indexes := d.usedAttributes(), 0
	for _, list := range lists {
		if list == nil {
			continue
		}
		indexes += len(list.Kids)
		for i := range list.Kids {
			for _, k := range readKeys(list.Kids[i].Get("KeySchema")) {
				used[k.AttributeName] = true
			}
		}
	}
	unused := func(a AttributeDefinition) bool { return !used[a.AttributeName] }
	switch {
	case !slices.ContainsFunc(d.Attributes, unused):
		return nil
	case indexes == 0:
		return wire.BadValue("Number of attributes in KeySchema does not exactly match number of attributes defined in " +
			"AttributeDefinitions")
	}
	return wire.BadValue("Some AttributeDefinitions are not used. AttributeDefinitions: [%s], keys used: [%s]",
		d.attributeNames(func(string) bool { return true }), d.attributeNames(func(n string) bool { return used[n] }))
}

// sortAttributes brings the definitions of attributes into the order in which the service shows
// them. Source: ack-api-quirks, services/dynamodb, DDB-TABLE-125.
func (d *Definition) sortAttributes() {
	slices.SortFunc(d.Attributes, func(a, b AttributeDefinition) int {
		return strings.Compare(a.AttributeName, b.AttributeName)
	})
}

// attributeNames returns the defined attributes that a function selects, as messages list them.
func (d *Definition) attributeNames(selects func(string) bool) string {
	var out []string
	for _, a := range d.Attributes {
		if selects(a.AttributeName) {
			out = append(out, a.AttributeName)
		}
	}
	return strings.Join(out, ", ")
}

// readIndexes reads the indexes of a kind, "Local" or "Global".
func (d *Definition) readIndexes(kind string, n *wire.Node) ([]Index, *wire.Error) {
	if n == nil {
		return nil, nil
	}
	if len(n.Kids) == 0 {
		return nil, wire.BadValue("List of %sSecondaryIndexes is empty", kind)
	}
	if kind == "Local" && len(d.Keys) != 2 {
		return nil, wire.BadValue("Table KeySchema does not have a range key, which is required when specifying a " +
			"LocalSecondaryIndex")
	}
	var out []Index
	for i := range n.Kids {
		ix, err := d.readIndex(kind, &n.Kids[i])
		if err != nil {
			return nil, err
		}
		for _, other := range append(slices.Clone(d.Local), out...) {
			if other.Name == ix.Name {
				return nil, wire.BadValue("Duplicate index name: %s", ix.Name)
			}
		}
		out = append(out, ix)
	}
	switch {
	case kind == "Local" && len(out) > 5:
		return nil, wire.BadValue("Number of LocalSecondaryIndexes exceeds per-table limit of 5")
	case len(out) > maxGlobal:
		return nil, wire.BadValue("GlobalSecondaryIndex count exceeds the per-table limit of %d", maxGlobal)
	}
	return out, nil
}

// readIndex reads one index and checks it against the table's keys.
func (d *Definition) readIndex(kind string, n *wire.Node) (ix Index, err *wire.Error) {
	ix.Name = strings.Clone(n.Str("IndexName"))
	ix.Keys = readKeys(n.Get("KeySchema"))
	if err := d.checkKeys(ix.Keys); err != nil {
		return ix, err
	}
	check := checkGlobal
	if kind == "Local" {
		check = checkPair
	}
	if err := check(ix.Keys); err != nil {
		return ix, err
	}
	if kind == "Local" {
		switch {
		case len(ix.Keys) != 2:
			return ix, wire.BadValue("Index KeySchema does not have a range key for index: %s", ix.Name)
		case ix.Keys[0].AttributeName != d.Keys[0].AttributeName:
			return ix, wire.BadValue("Index KeySchema does not have the same leading hash key as table KeySchema for index: "+
				"%s. "+
				"index hash key: %s, table hash key: %s", ix.Name, ix.Keys[0].AttributeName, d.Keys[0].AttributeName)
		}
	}
	p := n.Get("Projection")
	ix.Projection = strings.Clone(p.Str("ProjectionType"))
	for _, name := range p.Strings("NonKeyAttributes") {
		ix.NonKey = append(ix.NonKey, strings.Clone(name))
	}
	switch {
	case ix.Projection == "":
		return ix, wire.BadValue("Unknown ProjectionType: null")
	case ix.Projection != "INCLUDE" && p.Has("NonKeyAttributes"):
		return ix, wire.BadValue("ProjectionType is %s, but NonKeyAttributes is specified", ix.Projection)
	case ix.Projection == "INCLUDE" && !p.Has("NonKeyAttributes"):
		return ix, wire.BadValue("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	}
	for i, name := range ix.NonKey {
		if slices.Contains(ix.NonKey[:i], name) {
			return ix, wire.BadValue("Duplicate element in NonKeyAttributes: %s", name)
		}
	}
	slices.Sort(ix.NonKey) // as the service shows them
	return ix, d.readIndexThroughput(&ix, kind, n.Get("ProvisionedThroughput"))
}

// readIndexThroughput reads the capacity of an index, which a global one has as its table has one.
// Source: ack-api-quirks, services/dynamodb, DDB-TABLE-128.
func (d *Definition) readIndexThroughput(ix *Index, kind string, through *wire.Node) *wire.Error {
	switch {
	case kind == "Local":
		return nil
	case through != nil && d.OnDemand:
		return wire.BadValue("ProvisionedThroughput should not be specified for index: %s when BillingMode is "+
			"PAY_PER_REQUEST", ix.Name)
	case through == nil && !d.OnDemand:
		return wire.BadValue("ProvisionedThroughput is not specified for index: %s", ix.Name)
	case through == nil:
		return nil
	}
	return readThroughput(through, &ix.Read, &ix.Write)
}
