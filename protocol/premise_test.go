package protocol

import (
	"strings"
	"testing"
)

// A premise that could not be read makes nothing red and stops nothing; one that is broken does,
// and one that is unsafe stops writing.
func TestPremisesSayWhatStopsWriting(t *testing.T) {
	unread := Premise{Code: "lifecycle", What: "bucket b", Unsafe: true, Unread: "denied"}
	odd := Premise{Code: "max_age", What: "stream S", Found: "1h", Wanted: "0s", Mend: "nats stream edit S"}
	unsafe := Premise{Code: "storage", What: "stream S", Found: "memory", Wanted: "file", Unsafe: true}
	for _, x := range []struct {
		all    Premises
		broken int
		unsafe bool
	}{
		{nil, 0, false}, {Premises{unread}, 0, false}, {Premises{unread, odd}, 1, false},
		{Premises{unread, odd, unsafe}, 2, true},
	} {
		if got := x.all.Unsafe(); len(x.all.Broken()) != x.broken || (got != nil) != x.unsafe {
			t.Errorf("%v: %v, %v", x.all, x.all.Broken(), got)
		}
	}
	if got := (Premises{odd, unsafe}).Unsafe(); got.Code != "storage" {
		t.Error(got)
	}
	if text := odd.Text(); !strings.Contains(text, "1h") || !strings.Contains(text, "`nats stream edit S`") {
		t.Error(text)
	}
}

// TestPremisesAreTextsForPeople: what is missing is no setting with a value, and settings of
// Bigtable have the names of its own tools.
func TestPremisesAreTextsForPeople(t *testing.T) {
	family := Family{Table: "cart", Name: "d", Role: RoleData, Found: "missing", Wanted: "maxversions=1", Mend: "cbt …"}
	with := func(code, found string) Premise {
		f := family
		f.Code, f.Found = code, found
		return f.Premise()
	}
	missing := Premise{Code: ProfileMissing, What: "app profile p", Found: "missing", Wanted: "there"}
	stream := Premise{Code: "stream_max_age", What: "stream S", Found: "1h", Wanted: "0s"}
	rule := Premise{Code: LifecycleData, What: "rule r", Found: "everything, after 9 days", Notice: true}
	for want, p := range map[string]Premise{
		"family d of table cart is missing: `cbt …`": with(FamilyMissing, "missing"),
		"family d of table cart: GC rule is maxage=1h, and must be maxversions=1 (cells stay that the mapping lets go): " +
			"`cbt …`": with(FamilyRule, "maxage=1h"),
		"family d of table cart: type is a sum, and must be maxversions=1: `cbt …`": with(FamilyType, "a sum"),
		"app profile p is missing":                                         missing,
		"stream S: stream_max_age is 1h, and must be 0s":                   stream,
		"rule r: lifecycle_data is everything, after 9 days, as it may be": rule,
	} {
		if got := p.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
