package render

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
)

func TestMappingOfATableThatWasNeverStarted(t *testing.T) {
	var out strings.Builder
	MappingEdit(&out, &catalog.MappingEdit{Source: "Users", Target: "users"})
	if want := "Users: it was never started, so no rows are written with another mapping.\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
