package formats

import "testing"

func TestCappedBuildReadsUpToItsCap(t *testing.T) {
	for to, want := range map[string]int{
		"": Format, "4": 4, "1": 1, "0": Format, "-1": Format, "99": Format, "x": Format,
	} {
		if got := capped(to); got != want {
			t.Errorf("capped to %q: %d, want %d", to, got, want)
		}
	}
}
