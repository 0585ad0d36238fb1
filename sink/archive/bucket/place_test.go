package bucket

import (
	"strings"
	"testing"
)

// TestPlaceShowsNoUser: the name of a place is stored, and errors about an endpoint are shown.
func TestPlaceShowsNoUser(t *testing.T) {
	const at = "s3://bucket/prefix?region=eu-west-1&endpoint="
	with, without := Place(at+"http://me:s3cret@host:9000/"), Place(at+"http://host:9000")
	if with != without {
		t.Errorf("%q with a user, %q without", with, without)
	}
	if _, err := Open(t.Context(), at+"me:s3cret@host", Options{}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}
