package protocol

import (
	"math"
	"time"
)

// KeptForEver is the lifetime of a cell that no rule collects.
const KeptForEver = time.Duration(math.MaxInt64)

// Family is a table of Bigtable, or one of its families, that is not as the mappings need it. It is
// found by comparing the instance with them.
type Family struct {
	Code   string // one of the codes below
	Role   string // what the family is for
	Table  string
	Name   string // "": the table itself
	Found  string // rule or type, as cbt spells it
	Wanted string
	Mend   string

	// Keeps is how long the newest cell of a column stays at least under the rule that was found,
	// Needs how long it stays under the one that is wanted. Older cells of a column do not matter.
	Keeps, Needs time.Duration
}

// Codes of a Family.
const (
	TableMissing  = "table_missing"
	FamilyMissing = "family_missing"
	FamilyType    = "family_type" // other cells: a family never changes its type
	FamilyRule    = "gc_rule"
)

// Roles of a Family.
const (
	RoleData  = "data"
	RoleLive  = "live"  // _tr_live, the guards of items
	RoleDead  = "dead"  // _tr_dead, the tombstones
	RoleState = "state" // the rows of the pipeline itself
)

// costs are the effects of a rule that collects cells too early, by the role of its family.
var costs = map[string]string{
	RoleData: "cells are deleted that the mapping keeps",
	RoleLive: "items lose their guards, so that an older change could replace a newer one",
	RoleDead: "tombstones end while changes are still taken that they must refuse, so that a deleted item could come back",
	RoleState: "the pipeline's own rows could be deleted, and with them what keeps versions growing and other pipelines " +
		"out of the target",
}

// Premise judges the family. A rule by which a guard, a tombstone or a row of the pipeline is
// collected too early stops writing: Bigtable would take what it must refuse. What is missing or
// has another type is refused by Bigtable itself.
//
// Rule 14: schema, check and run judge families by this.
func (f *Family) Premise() Premise {
	p := Premise{Code: f.Code, What: "table " + f.Table, Found: f.Found, Wanted: f.Wanted, Mend: f.Mend}
	if f.Name != "" {
		p.What = "family " + f.Name + " of table " + f.Table
	}
	if f.Code != FamilyRule {
		return p
	}
	if f.Keeps < f.Needs {
		p.Cost, p.Unsafe = costs[f.Role], f.Role != RoleData
	} else {
		p.Cost = "cells stay that the mapping lets go"
	}
	return p
}

// Profile is what an app profile of Bigtable does with conditional writes.
type Profile struct {
	Name, Instance string
	Missing        bool
	SingleCluster  bool // writes go to one cluster
	Transactional  bool // single-row transactions are allowed
	DataBoost      bool // it only reads
	Cluster        string

	// Stream is the profile of the stream's writes, if this one is that of copies, resyncs and
	// comparisons; nil: this one is the stream's. Its cluster is "" where it could not be read.
	Stream *Profile
}

// Codes of an app profile.
const (
	ProfileMissing      = "profile"
	ProfileRouting      = "profile_routing"
	ProfileTransactions = "profile_transactions"
	ProfileIsolation    = "profile_isolation"
	ProfileCluster      = "profile_cluster"
)

// Premises judges an app profile: conditional writes need single-cluster routing and single-row
// transactions. With several clusters a guard would be compared with one copy of several. So it
// would if copies were written to another cluster than the stream's changes: what the stream has
// written arrives there later. And a comparison would read rows that are old.
//
// A profile of copies under which Bigtable refuses every write stops copies only.
func (p *Profile) Premises() Premises {
	found := Premise{What: "app profile " + p.Name, Unsafe: true}
	cluster, writes, options := "CLUSTER", "write", " --transactional-writes"
	if p.Stream != nil {
		found.What += " (bigtable.copy_profile)"
		writes, options = "write of copies", options+" --priority=PRIORITY_LOW"
		if p.Stream.Cluster != "" {
			cluster = p.Stream.Cluster
		}
	}
	at := " --instance=" + p.Instance + " --route-to=" + cluster + options
	found.Mend = "gcloud bigtable app-profiles update " + p.Name + at
	found.Cost = "conditional writes are refused, and would be decided by one copy of several"
	refused := "every " + writes + " is refused"
	switch {
	case p.Missing:
		found.Code, found.Found, found.Wanted, found.Unsafe = ProfileMissing, "missing", "there", false
		found.Mend, found.Cost = "gcloud bigtable app-profiles create NAME"+at, refused
	case p.DataBoost:
		found.Code, found.Found, found.Wanted, found.Unsafe = ProfileIsolation, "Data Boost", "standard", p.Stream == nil
		found.Mend, found.Cost = "gcloud bigtable app-profiles create NAME"+at, "it only reads, "+refused
	case !p.SingleCluster:
		found.Code, found.Found, found.Wanted = ProfileRouting, "several clusters", "one cluster"
	case !p.Transactional:
		found.Code, found.Found, found.Wanted, found.Unsafe = ProfileTransactions, "off", "on", p.Stream == nil
		found.Cost = refused
	case p.Stream != nil && p.Stream.Cluster != "" && p.Stream.Cluster != p.Cluster:
		found.Code, found.Found = ProfileCluster, p.Cluster
		found.Wanted = p.Stream.Cluster + ", as that of app profile " + p.Stream.Name
		found.Cost = "copies would be decided by rows that lack what the stream has written, and comparisons would read them"
	default:
		return nil
	}
	return Premises{found}
}
