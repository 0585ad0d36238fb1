package transform

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestWorkedExamplesHaveTheirClasses holds how the rows of each worked example are replaced, in the
// order of its rules and indexes; - is a rule that drops.
func TestWorkedExamplesHaveTheirClasses(t *testing.T) {
	want := map[string]string{
		"01_catalog.yaml": "R", "02_video.yaml": "K D K K K", "02b_video_safe.yaml": "K D",
		"02c_video_sk_time.yaml": "K K K K K", "03_invoice.yaml": "K K",
		"04_counter.yaml": "K K", "05_versions.yaml": "- K", "06_erd.yaml": "D K K R R R", "07_ttl.yaml": "R",
		"07b_ttl_gc.yaml": "R", "08_document.yaml": "R",
		"09_tags_lists.yaml": "R", "10_regroup.yaml": "D", "11_google.yaml": "R",
	}
	for _, name := range slices.Sorted(maps.Keys(exampleTables)) {
		var got []string
		for _, r := range example(t, name).Report() {
			got = append(got, r.Class)
			if r.Class == "" {
				got[len(got)-1] = "-"
			}
		}
		if g := strings.Join(got, " "); g != want[name] {
			t.Errorf("%s: classes %s, want %s", name, g, want[name])
		}
	}
}
