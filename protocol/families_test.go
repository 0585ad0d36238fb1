package protocol

import (
	"testing"
	"time"
)

// TestRulesThatCollectTooEarly: a rule by which a guard, a tombstone or a row of the pipeline ends
// too early stops writing; of the mapping's own cells it is red, and so is one that keeps too much.
// What is missing is refused by Bigtable itself.
func TestRulesThatCollectTooEarly(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, x := range []struct {
		f      Family
		unsafe bool
		cost   bool
	}{
		{Family{Code: FamilyRule, Role: RoleLive, Keeps: week, Needs: KeptForEver}, true, true},
		{Family{Code: FamilyRule, Role: RoleLive, Keeps: KeptForEver, Needs: KeptForEver}, false, true},
		{Family{Code: FamilyRule, Role: RoleState, Keeps: week, Needs: KeptForEver}, true, true},
		{Family{Code: FamilyRule, Role: RoleDead, Keeps: week - time.Second, Needs: week}, true, true},
		{Family{Code: FamilyRule, Role: RoleDead, Keeps: 2 * week, Needs: week}, false, true},
		{Family{Code: FamilyRule, Role: RoleData, Keeps: week, Needs: KeptForEver}, false, true},
		{Family{Code: FamilyMissing, Role: RoleLive, Name: "_tr_live"}, false, false},
		{Family{Code: TableMissing, Role: RoleData}, false, false},
		{Family{Code: FamilyType, Role: RoleData}, false, false},
	} {
		p := x.f.Premise()
		if p.Unsafe != x.unsafe || (p.Cost != "") != x.cost || p.Code != x.f.Code || len(Premises{p}.Broken()) != 1 {
			t.Errorf("%+v: %+v", x.f, p)
		}
	}
}

// TestProfilesForConditionalWrites: one cluster and single-row transactions.
func TestProfilesForConditionalWrites(t *testing.T) {
	for _, x := range []struct {
		p    Profile
		code string // of what is wrong; "": nothing
		stop bool
	}{
		{Profile{SingleCluster: true, Transactional: true}, "", false},
		{Profile{Transactional: true}, ProfileRouting, true},
		{Profile{SingleCluster: true}, ProfileTransactions, true},
		{Profile{Missing: true}, ProfileMissing, false},
	} {
		found := x.p.Premises()
		if x.code == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Code != x.code || (found.Unsafe() != nil) != x.stop || found[0].Mend == "" {
			t.Errorf("%+v: %+v", x.p, found)
		}
	}
}

// TestRulesThatDeleteArchivedObjects: manifests and what a start looks for must stay; what goes
// later is retention.
func TestRulesThatDeleteArchivedObjects(t *testing.T) {
	const day = 24 * time.Hour
	for _, x := range []struct {
		rule   Expiry
		code   string
		broken bool
	}{
		{Expiry{Prefix: "", After: 3650 * day}, LifecycleOwn, true},
		{Expiry{Prefix: "_tail", After: 3650 * day}, LifecycleOwn, true},
		{Expiry{Prefix: "_tailrace/Orders/"}, LifecycleOwn, true},
		{Expiry{Prefix: "tr_table=", After: 2 * day}, LifecycleEarly, true},
		{Expiry{Prefix: "tr_table=Orders/"}, LifecycleEarly, true},
		{Expiry{Prefix: "tr_table=", After: 3 * day}, LifecycleData, false},
	} {
		found := Lifecycle("s3://b", []Expiry{x.rule}, "_tailrace/", 3*day, "mend")
		if len(found) != 1 || found[0].Code != x.code || (len(found.Broken()) == 1) != x.broken ||
			(found[0].Mend == "mend") != x.broken || found.Unsafe() != nil {
			t.Errorf("%+v: %+v", x.rule, found)
		}
	}
	if found := Lifecycle("s3://b", nil, "_tailrace/", 3*day, ""); len(found) > 0 {
		t.Error(found)
	}
}
