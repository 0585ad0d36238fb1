package pipeline

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
)

// TestMappingCopyIsAboveTheMappingBefore: versions may run ahead of time, and the copy must replace every row that the
// mapping before wrote.
func TestMappingCopyIsAboveTheMappingBefore(t *testing.T) {
	const now change.Millis = 1_000_000_000
	v := change.Version(now)
	for _, above := range []change.Version{0, v - 1e6, v, v + 600_000} {
		begin := beginOfMappingCopy(&checkpoint.Switch{Above: above}, now)
		if begin < now {
			t.Errorf("above %d: begins at %d, before the switch at %d", above, begin, now)
		}
		if v := apply.ResyncVersion(begin, 0); v <= above {
			t.Errorf("above %d: the first page has version %d", above, v)
		}
	}
}

// TestRowMayNameOnlyTheMappingThatTheLogReplaced: a mapping that was switched twice ago is not excused.
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
