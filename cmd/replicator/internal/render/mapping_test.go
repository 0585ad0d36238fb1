package render

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/catalog"
)

func TestMappingOfATableThatWasNeverStarted(t *testing.T) {
	var out strings.Builder
	MappingEdit(&out, &catalog.MappingEdit{Source: "Users", Target: "users"}, false)
	if want := "Users: it was never started, so no rows are written with another mapping.\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestAcceptDoesNotAskForAccept: diff says how to go on; accept does it.
func TestAcceptDoesNotAskForAccept(t *testing.T) {
	e := &catalog.MappingEdit{Source: "Users", Target: "users"}
	e.From, e.To, e.Acceptable = "a", "b", true
	var diff, accept strings.Builder
	MappingEdit(&diff, e, false)
	MappingEdit(&accept, e, true)
	next := "  next: `replicator schema --apply` where it has new families, then " +
		"`replicator mapping accept --table Users`, both with the file of this mapping: the table is copied again\n"
	if diff.String() != accept.String()+next {
		t.Errorf("diff:\n%saccept:\n%s", diff.String(), accept.String())
	}
}
