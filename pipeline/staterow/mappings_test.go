package staterow

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestRowMayNameOnlyTheMappingThatTheLogReplaced: a mapping that was switched twice ago is not
// excused.
func TestRowMayNameOnlyTheMappingThatTheLogReplaced(t *testing.T) {
	log := func(now string, accepting, accepted *checkpoint.Accept) *checkpoint.State {
		s := checkpoint.NewState()
		s.Identity, s.Accepting, s.Accepted = &checkpoint.Identity{Mapping: now}, accepting, accepted
		return s
	}
	for name, c := range map[string]struct {
		log     *checkpoint.State
		mapping string // of the configuration
		want    string
	}{
		"no log":                      {nil, "b", ""},
		"nothing accepted":            {log("a", nil, nil), "b", ""},
		"the same":                    {log("a", nil, nil), "a", ""},
		"asked for":                   {log("a", &checkpoint.Accept{From: "a", To: "b"}, nil), "b", "a"},
		"another one was asked for":   {log("a", &checkpoint.Accept{From: "a", To: "b"}, nil), "c", ""},
		"switched":                    {log("b", nil, &checkpoint.Accept{From: "a", To: "b"}), "b", "a"},
		"switched, configured before": {log("b", nil, &checkpoint.Accept{From: "a", To: "b"}), "a", ""},
		"switched on since":           {log("c", nil, &checkpoint.Accept{From: "a", To: "b"}), "b", ""},
	} {
		if got := replacedBy(c.log, c.mapping); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
