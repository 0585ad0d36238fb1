package emit

import "testing"

// TestColumnsNamedByAttributesShowNoData: a template with any other variable, or with a filter, may
// show the value of a key, whatever punctuation stands around it.
func TestColumnsNamedByAttributesShowNoData(t *testing.T) {
	for to, want := range map[string]bool{
		"d:{attr}": true, "d:fixed": true, "d:{attr} (x)": true, "d:a (of) {attr}": true, "d: → ": true,
		"d:{sk}": false, "d:{attr} ({sk})": false, "d:(of {sk}) x": false, "d:{attr}/{status}": false,
		"d:x → {sk}": false, "d:{attr|lower}": false, "d:{{attr}}": false,
	} {
		if got := entryOf("attrs: all", to); got.ByAttributes != want || got.Text != "attrs: all → "+to {
			t.Errorf("%s: %+v", to, got)
		}
	}
}
