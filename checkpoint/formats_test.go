package checkpoint

import "testing"

func TestCappedBuildReadsUpToItsCap(t *testing.T) {
	for to, want := range map[string]int{
		"": newestFormat, "4": 4, "1": 1, "0": newestFormat, "-1": newestFormat, "99": newestFormat, "x": newestFormat,
	} {
		if got := highestFormat(to); got != want {
			t.Errorf("capped to %q: %d, want %d", to, got, want)
		}
	}
}
