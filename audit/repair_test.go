package audit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// TestPipeOfDifferencesIsRefused: it would be counted by the first reading, and be empty in the
// second, which repairs.
func TestPipeOfDifferencesIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_RDWR, 0) // so that opening it does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	r := Repairer{RepairOptions: RepairOptions{From: path}}
	_, err = r.Run(t.Context())
	if class, _ := failure.Of(err); class != failure.Usage || !strings.Contains(err.Error(), "read twice") {
		t.Errorf("%v", err)
	}
}

func TestDoneMeansThatEveryItemIsRepaired(t *testing.T) {
	for name, x := range map[string]struct {
		table RepairedTable
		want  bool
	}{
		"all":               {RepairedTable{Items: 2, Repaired: 2}, true},
		"hot":               {RepairedTable{Items: 2, Repaired: 1, Hot: 1}, false},
		"lines were lost":   {RepairedTable{Items: 2, Repaired: 1}, false},
		"lines were added":  {RepairedTable{Items: 2, Repaired: 3}, false},
		"nothing was asked": {RepairedTable{}, true},
	} {
		r := Repaired{Tables: []*RepairedTable{&x.table}}
		if got := r.Done(); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
