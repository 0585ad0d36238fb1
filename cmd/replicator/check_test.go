package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// TestAppProfileThatWouldRefuseEveryWriteIsFound: with routing to several clusters or without transactional writes no
// conditional write is taken.
func TestAppProfileThatWouldRefuseEveryWriteIsFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		profile bigtable.Profile
		err     error
		want    string // severity and a word; empty: nothing to say
	}{
		{"as it should be", bigtable.Profile{Name: "p", SingleCluster: true, Transactional: true}, nil, ""},
		{"several clusters", bigtable.Profile{Name: "p"}, nil, "error: app profile p routes to several clusters"},
		{"no transactions", bigtable.Profile{Name: "p", SingleCluster: true}, nil, "error: app profile p does not allow single-row transactions"},
		{"emulator", bigtable.Profile{}, bigtable.ErrNoProfiles, ""},
		{"may not look", bigtable.Profile{}, status.Error(codes.PermissionDenied, "no"), "warning: the app profile cannot be read"},
		{"not there", bigtable.Profile{}, status.Error(codes.NotFound, "no"), "error: the instance has no such app profile"},
		{"server away", bigtable.Profile{}, status.Error(codes.Unavailable, "no"), ""},
	} {
		got, bad := profileProblem(c.profile, c.err, "main")
		if said := got.Severity + ": " + got.What; bad != (c.want != "") || bad && !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %v %s, want %q", c.name, bad, said, c.want)
		}
	}
}
