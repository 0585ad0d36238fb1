package checkpoint

import "testing"

func TestBuildForTestsReadsTheNextFormat(t *testing.T) {
	for newer, want := range map[string]int{
		"": newestFormat, "1": newestFormat, "2": 2, "3": newestFormat, "-1": newestFormat, "x": newestFormat,
	} {
		if got := highestFormat(newer); got != want {
			t.Errorf("newer format %q: %d, want %d", newer, got, want)
		}
	}
}
