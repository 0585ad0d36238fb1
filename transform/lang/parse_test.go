package lang

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tailrace-cdc/replicator/problem"
)

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := Parse("f.yaml", data)
		if m == nil {
			t.Fatal("no mapping")
		}
		for _, p := range problems {
			if p.Severity != problem.SeverityError && p.Severity != problem.SeverityWarning || p.Code == "" || p.What == "" {
				t.Fatalf("problem without severity, code or words: %+v", p)
			}
		}
	})
}
