package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/verify/report"
)

// TestResultIsKeptAsAWhole: it is read as it was kept, and the folders of earlier comparisons go.
func TestResultIsKeptAsAWhole(t *testing.T) {
	dir := SavedDir(t.TempDir(), "shop", "orders")
	if _, err := LoadSaved(dir); !errors.Is(err, ErrNoneSaved) {
		t.Errorf("nothing is kept: %v", err)
	}
	old, err := newFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &Saved{Format: format, Pipeline: "shop", Target: "orders", Strong: true, Followed: true, OpenItems: 2,
		Began: time.Unix(5, 0).UTC(), Ended: time.Unix(6, 0).UTC(), Verdict: report.Different,
		Tables: []SavedTable{{TableID: "id", Begun: 7}}, Since: &SavedSince{Items: 3}}
	if r.Folder, err = newFolder(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "all"), 0o700); err != nil { // of the comparison itself
		t.Fatal(err)
	}
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := LoadSaved(dir)
	if d := cmp.Diff(r, got, cmpopts.IgnoreUnexported(report.Table{})); err != nil || d != "" {
		t.Errorf("%v, %s", err, d)
	}
	for name, want := range map[string]bool{old: false, r.Folder: true, "all": true, resultFile: true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, resultFile))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, err := fs.Glob(os.DirFS(dir), "*.new"); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestResultThatCannotBeReadIsNone: one of another format (Rule 11), and one that a power failure
// has damaged. The error says which file, and why.
func TestResultThatCannotBeReadIsNone(t *testing.T) {
	for content, why := range map[string]string{
		`{"format": 0}`:                         "has format 0",
		fmt.Sprintf(`{"format": %d}`, format+1): "has format",
		``:                                      "is damaged",
		`{"format": 1`:                          "is damaged",
		fmt.Sprintf(`{"format": %d} x`, format): "is damaged",
		fmt.Sprintf(`{"format": "%d"}`, format): "is damaged",
		fmt.Sprintf(`{"format": %d, "began": 3}`, format): "is damaged",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, resultFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := LoadSaved(dir)
		if r != nil || !errors.Is(err, ErrNoneSaved) || !strings.Contains(err.Error(), resultFile+" "+why) {
			t.Errorf("%s: %+v, %v", content, r, err)
		}
	}
}

// TestOnlyListedCellsAreAccepted: of more cells than the list takes, nobody knows whether all may
// be accepted.
func TestOnlyListedCellsAreAccepted(t *testing.T) {
	for cells, want := range map[int64]bool{
		0: true, maxSavedCells - 1: true, maxSavedCells: false, maxSavedCells + 1: false,
	} {
		if r := (&Saved{OpenCells: cells}); r.CellsListed() != want {
			t.Errorf("%d cells: listed: %v", cells, !want)
		}
	}
}
