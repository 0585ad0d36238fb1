package shadow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportsCountOnce: the same report twice would count twice.
func TestReportsCountOnce(t *testing.T) {
	const report = `{"schema":1,"requests":{"total":1,"taken":1},"counted":1,"counts":{"format":1,"requests":1}}`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, copied := write("one", report), write("copied", report)
	other := write("other", strings.ReplaceAll(report, "1,", "1, "))
	idle := write("idle", `{"schema":1,"counts":{"format":1}}`)
	if all, err := ReadReports([]string{one, other, idle, idle}); err != nil || len(all) != 4 {
		t.Errorf("%d reports: %v", len(all), err)
	}
	newer := write("newer", strings.Replace(report, "1", "2", 1))
	for _, files := range [][]string{{one, one}, {one, copied}, {one, newer}} {
		if _, err := ReadReports(files); err == nil {
			t.Errorf("%v: no error", files)
		}
	}
}
