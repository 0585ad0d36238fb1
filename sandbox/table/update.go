package table

import (
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// CheckUpdate refuses UpdateTable requests that change nothing, and those with changes that the
// service makes one at a time only. Source: ack-api-quirks, services/dynamodb, DDB-TABLE-015,
// DDB-TABLE-174, DDB-TABLE-359 and DDB-TABLE-433.
func CheckUpdate(r *wire.Node) *wire.Error {
	changes := changesOf(r)
	switch {
	case r.Has("ReplicaUpdates"):
		return wire.Invalid("ReplicaUpdates is not supported by the sandbox")
	case len(changes) == 0:
		return errNoChange
	case r.Has("GlobalSecondaryIndexUpdates") && len(r.Get("GlobalSecondaryIndexUpdates").Kids) == 0:
		return wire.BadValue("List of GlobalSecondaryIndexUpdates is empty")
	case len(changes) == 1:
		return nil
	}
	for _, alone := range []struct{ field, is string }{
		{"SSESpecification", "Server-Side Encryption modification"},
		{"TableClass", "TableClass modification"},
		{"DeletionProtectionEnabled", "DeletionProtection modification"},
	} {
		if r.Has(alone.field) {
			return wire.BadValue("%s must be the only operation in the request", alone.is)
		}
	}
	return checkTogether(r, len(changes))
}

var errNoChange = wire.Invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
	"GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, " +
	"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required")

// changesOf returns the fields of a request that change a table. An empty list of index updates
// changes nothing.
func changesOf(r *wire.Node) (changes []string) {
	for _, f := range []string{"ProvisionedThroughput", "BillingMode", "StreamSpecification",
		"GlobalSecondaryIndexUpdates", "SSESpecification", "DeletionProtectionEnabled", "TableClass",
		"OnDemandThroughput", "WarmThroughput"} {
		if r.Has(f) && (f != "GlobalSecondaryIndexUpdates" || len(r.Get(f).Kids) > 0) {
			changes = append(changes, f)
		}
	}
	return changes
}

// checkTogether checks a request with n changes, of which none has to be the only one at any rate.
func checkTogether(r *wire.Node, n int) *wire.Error {
	online := false // an index is created or deleted
	created := false
	if updates := r.Get("GlobalSecondaryIndexUpdates"); updates != nil {
		for i := range updates.Kids {
			created = created || updates.Kids[i].Has("Create")
			online = online || created || updates.Kids[i].Has("Delete")
		}
	}
	capacity := r.Has("ProvisionedThroughput") || r.Str("BillingMode") == "PROVISIONED"
	switch {
	case r.Has("WarmThroughput") && created:
		return wire.BadValue("Create global secondary index cannot be specified when updating WarmThroughput")
	case r.Has("OnDemandThroughput") && (n > 2 || !r.Has("BillingMode")):
		return wire.BadValue("OnDemandThroughput can only be combined with BillingMode in an UpdateTable request")
	case r.Has("WarmThroughput"):
		return wire.BadValue("WarmThroughput must be the only operation in the request")
	case r.Has("StreamSpecification") && capacity:
		return wire.BadValue("You cannot modify stream status while updating table IOPS")
	case r.Has("ProvisionedThroughput") && online:
		return wire.BadValue("You cannot create or delete index while updating table IOPS")
	case r.Has("StreamSpecification") && online:
		return wire.BadValue("You cannot create or delete index while changing stream status")
	}
	return nil
}

// Change applies an UpdateTable request at a time. The caller passes a copy, because a refused
// request may leave it partly changed.
func (d *Definition) Change(r *wire.Node, now time.Time) *wire.Error {
	through, wasOnDemand := r.Get("ProvisionedThroughput"), d.OnDemand
	switch mode := r.Str("BillingMode"); {
	case mode == "PAY_PER_REQUEST" && through != nil, mode == "" && d.OnDemand && through != nil:
		return wire.BadValue("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is " +
			"PAY_PER_REQUEST")
	case mode == "PROVISIONED" && through == nil:
		return wire.BadValue("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	case mode == "PAY_PER_REQUEST":
		if !d.OnDemand {
			d.OnDemandSince = now
		}
		d.setOnDemand()
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
	if err := d.changeIndexes(r); err != nil || d.OnDemand || !wasOnDemand {
		return err
	}
	return d.checkCapacities()
}

// setOnDemand takes the capacity from a table and its indexes.
func (d *Definition) setOnDemand() {
	d.OnDemand, d.Read, d.Write = true, 0, 0
	d.Global = slices.Clone(d.Global)
	for i := range d.Global {
		d.Global[i].Read, d.Global[i].Write = 0, 0
	}
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

// Updating returns the definition that UpdateTable shows while a table changes from before to d:
// the old capacity, unless the billing mode changes, and the status of indexes that are created,
// changed or deleted. Source: ack-api-quirks, services/dynamodb, DDB-TABLE-138 and DDB-TABLE-165.
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
		case d.Global[at].Read == ix.Read && d.Global[at].Write == ix.Write:
		case d.OnDemand != before.OnDemand:
			ix = d.Global[at]
			ix.status = "UPDATING"
		default:
			ix.status = "UPDATING"
		}
		shown.Global = append(shown.Global, ix)
	}
	for _, ix := range d.Global {
		if !slices.ContainsFunc(before.Global, func(old Index) bool { return old.Name == ix.Name }) {
			ix.status, ix.building = "CREATING", true
			shown.Global = append(shown.Global, ix)
		}
	}
	return &shown
}
