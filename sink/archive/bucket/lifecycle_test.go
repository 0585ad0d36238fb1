package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/failure"
)

// rulesOfS3 and rulesOfGCS are a lifecycle as each service spells it: three rules that delete
// objects below some/prefix, and some that do not.
var rulesOfS3 = "<LifecycleConfiguration>" +
	ruleOfS3("all", true, "<Filter/>"+days("7")) +
	ruleOfS3("above", true, "<Prefix>some/</Prefix><Expiration><Date>2026-01-01T00:00:00Z</Date></Expiration>") +
	ruleOfS3("data", true, "<Filter><And><Prefix>some/prefix/tr_table=</Prefix>"+
		"<ObjectSizeGreaterThan>1</ObjectSizeGreaterThan></And></Filter>"+days("3650")) +
	ruleOfS3("off", false, "<Filter/>"+days("7")) +
	ruleOfS3("tagged", true, "<Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter>"+days("7")) +
	ruleOfS3("tags", true,
		"<Filter><And><Prefix></Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter>"+days("7")) +
	ruleOfS3("elsewhere", true, "<Filter><Prefix>some/prefixes/</Prefix></Filter>"+days("7")) +
	ruleOfS3("old versions", true, "<Filter/><NoncurrentVersionExpiration><NoncurrentDays>7</NoncurrentDays>"+
		"</NoncurrentVersionExpiration>") +
	ruleOfS3("markers", true,
		"<Filter/><Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>") +
	ruleOfS3("moved", true,
		"<Filter/><Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>") +
	"</LifecycleConfiguration>"

func ruleOfS3(id string, on bool, what string) string {
	status := map[bool]string{true: "Enabled", false: "Disabled"}[on]
	return "<Rule><ID>" + id + "</ID><Status>" + status + "</Status>" + what + "</Rule>"
}

func days(n string) string { return "<Expiration><Days>" + n + "</Days></Expiration>" }

const rulesOfGCS = `{"kind": "storage#bucket", "name": "archive", "lifecycle": {"rule": [
{"action": {"type": "Delete"}, "condition": {"age": 7}},
{"action": {"type": "Delete"}, "condition": {"createdBefore": "2026-01-01", "matchesPrefix": ["elsewhere/", "some/"]}},
{"action": {"type": "Delete"}, "condition":
  {"age": 3650, "matchesPrefix": ["some/prefix/tr_table="], "matchesSuffix": ["parquet"]}},
{"action": {"type": "Delete"}, "condition": {"age": 7, "matchesSuffix": [".tmp"]}},
{"action": {"type": "Delete"}, "condition": {"age": 7, "isLive": false}},
{"action": {"type": "Delete"}, "condition": {"numNewerVersions": 2}},
{"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": 7}},
{"action": {"type": "Delete"}, "condition": {"daysSinceCustomTime": 7}},
{"action": {"type": "Delete"}, "condition": {"age": 7, "matchesPrefix": ["some/prefixes/"]}},
{"action": {"type": "SetStorageClass", "storageClass": "COLDLINE"}, "condition": {"age": 30}}
]}}`

// TestLifecycleRulesThatReachTheArchive: each service spells them in its own way.
func TestLifecycleRulesThatReachTheArchive(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		rules, ids := rulesOfS3, []string{"all", "above", "data"}
		if s.name == "gcs" {
			rules, ids = rulesOfGCS, []string{"number 1", "number 2", "number 3"}
		}
		s.between(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", map[string]string{"s3": "application/xml", "gcs": "application/json"}[s.name])
			_, _ = io.WriteString(w, rules)
			return true
		})
		got, err := Lifecycle(t.Context(), s.open(t, "some/prefix"))
		want := []Expiry{
			{Rule: ids[0], After: 7 * day}, {Rule: ids[1]}, {Rule: ids[2], Prefix: "tr_table=", After: 3650 * day},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// TestLifecycleThatIsNotTold: that there is none is an answer, that it may not be read another one,
// and a bucket that is not there a third.
func TestLifecycleThatIsNotTold(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b := s.open(t, "p")
		b.(*cloud).pause = func(context.Context, int) error { return nil }
		if s.name == "s3" {
			s.between(refusal(s, http.StatusNotFound, "NoSuchLifecycleConfiguration"))
		}
		if got, err := Lifecycle(t.Context(), b); len(got) > 0 || err != nil {
			t.Errorf("none: %v, %v", got, err)
		}
		for status, class := range map[int]failure.Class{
			http.StatusForbidden: failure.Denied, http.StatusNotFound: failure.Missing,
			http.StatusInternalServerError: failure.Transient,
		} {
			s.between(refusal(s, status, "Refused"))
			if _, err := Lifecycle(t.Context(), b); Classify(err) != class {
				t.Errorf("%d: %v is %v", status, err, Classify(err))
			}
		}
		s.between(refusal(s, http.StatusNotImplemented, "NotImplemented"))
		if _, err := Lifecycle(t.Context(), b); !errors.Is(err, ErrNoLifecycle) {
			t.Error(err)
		}
	})
	azure := startAzure(t, func(http.ResponseWriter, *http.Request) { t.Error("Azure was asked") })
	if _, err := Lifecycle(t.Context(), azure); !errors.Is(err, ErrNoLifecycle) {
		t.Error(err)
	}
	if got, err := Lifecycle(t.Context(), openDir(t, t.TempDir(), Options{})); len(got) > 0 || err != nil {
		t.Errorf("a directory: %v, %v", got, err)
	}
}

// TestEndingsOfTheArchive: a rule for other endings deletes nothing of it.
func TestEndingsOfTheArchive(t *testing.T) {
	for suffix, want := range map[string]bool{
		".json": true, "json": true, ".parquet": true, "-0001.json": true, ".zst": true, ".tmp": false, ".log": false,
	} {
		if r := (expiry{suffixes: strings.Fields(suffix + " .bak")}); r.mayEnd() != want {
			t.Errorf("%q: %v", suffix, !want)
		}
	}
	if !(&expiry{}).mayEnd() {
		t.Error("a rule for all endings")
	}
}
