package host

import "testing"

// TestProcessorsOfAControlGroup: Go runs on two processors where a control group has less, and
// rounds up what it has.
func TestProcessorsOfAControlGroup(t *testing.T) {
	for limit, want := range map[string]float64{
		"": 4, "max 100000\n": 4, "50000 100000\n": 0.5, "100000 100000\n": 1, "250000 100000\n": 2.5,
		"800000 100000\n": 4, "0 100000": 4, "100000": 4, "100000 0": 4, "- -": 4,
	} {
		if got := processorsOf(4, limit); got != want {
			t.Errorf("%q: %g, want %g", limit, got, want)
		}
	}
}
