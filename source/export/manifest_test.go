package export

import "testing"

// TestDigestOfAnExport follows the content and the order of its files, and not where they lie.
func TestDigestOfAnExport(t *testing.T) {
	export := func(edit func(*Export)) string {
		e := &Export{Files: []File{{Key: "a", Items: 1, MD5: "x"}, {Key: "b", Items: 2, MD5: "y"}}}
		edit(e)
		return e.Digest()
	}
	want := export(func(*Export) {})
	if got := export(func(e *Export) { e.Files[0].Key, e.Files[0].Size, e.URL = "c", 9, "elsewhere" }); got != want {
		t.Error("a copy of the export has another digest")
	}
	for name, edit := range map[string]func(*Export){
		"order":   func(e *Export) { e.Files[0], e.Files[1] = e.Files[1], e.Files[0] },
		"content": func(e *Export) { e.Files[1].MD5 = "z" },
		"count":   func(e *Export) { e.Files[1].Items = 3 },
		"files":   func(e *Export) { e.Files = e.Files[:1] },
	} {
		if export(edit) == want {
			t.Errorf("another %s has the same digest", name)
		}
	}
}
