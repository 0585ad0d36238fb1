package distributed

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

func plan() *Plan {
	return &Plan{ID: "a1", Tables: []Table{
		{Export: delegation.Export{Files: 2}}, {}, {Export: delegation.Export{Files: 3}},
	}, Splits: [][]byte{[]byte("d"), []byte("m")}}
}

func TestEachRowHasOneRange(t *testing.T) {
	p := plan()
	for row, want := range map[string]int{"": 0, "c\xff": 0, "d": 1, "d\x00": 1, "l": 1, "m": 2, "\xff": 2} {
		if got := p.RangeOf([]byte(row)); got != want {
			t.Errorf("row %q is of range %d, want %d", row, got, want)
		}
		if start, end := p.Bounds(want); row < start || end != "" && row >= end {
			t.Errorf("row %q is not between %q and %q", row, start, end)
		}
	}
}

func TestFilesCountThroughAllTables(t *testing.T) {
	p := plan()
	var got [][2]int
	for n := range p.Files() {
		table, file := p.FileOf(n)
		got = append(got, [2]int{table, file})
	}
	if want := [][2]int{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {2, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if table, _ := p.FileOf(p.Files()); table != -1 {
		t.Errorf("a file behind the last is of table %d", table)
	}
}

// TestFirstFindingsOfARangeStay: workers may compare a range twice, and nobody takes the findings
// of another comparison for its own.
func TestFirstFindingsOfARangeStay(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	f, err := Open(ctx, "file://"+dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Plan(ctx); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("a folder without a plan: %v", err)
	}
	if err := f.StorePlan(ctx, plan()); err != nil {
		t.Fatal(err)
	}
	if err := f.StorePlan(ctx, plan()); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("a second plan: %v", err)
	}
	p, err := f.Plan(ctx)
	if err != nil || p.ID != "a1" || p.Ranges() != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, text := range []string{"first\n", "second\n"} {
		err := f.StoreRange(ctx, p, 1, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	stored, err := f.Stored(ctx, p)
	if err != nil || len(stored) != 1 || !stored[1] {
		t.Errorf("%v, %v", stored, err)
	}
	var text []byte
	read := func(r io.Reader) (err error) { text, err = io.ReadAll(r); return err }
	if err := f.ReadRange(ctx, p, 1, read); err != nil || string(text) != "first\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := f.ReadRange(ctx, p, 2, read); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("a range without findings: %v", err)
	}
	other := plan()
	other.ID = "b2"
	if err := f.ReadRange(ctx, other, 1, read); err == nil || !strings.Contains(err.Error(), "of comparison a1") {
		t.Errorf("findings of another comparison: %v", err)
	}
	// A byte of the checksum: a key could be another one, and no line would be damaged.
	path := filepath.Join(dir, rangeName(1))
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	packed[len(packed)-5] ^= 1
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	first := func(r io.Reader) error { _, err := io.ReadFull(r, make([]byte, 6)); return err }
	if err := f.ReadRange(ctx, p, 1, first); !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("findings with another checksum: %v", err)
	}
	// What write has begun when it fails is not stored.
	failed := errors.New("full")
	err = f.StoreRange(ctx, p, 2, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return failed })
	if stored, _ := f.Stored(ctx, p); !errors.Is(err, failed) || stored[2] {
		t.Errorf("%v, %v", stored, err)
	}
}

// Rule 11: a plan of a newer build is not guessed at.
func TestPlanOfAnotherFormatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"format":2,"tables":[{}]}`: "format 2",
		`{"format":1}`:               "damaged",
		`{"format":1,"tables":[{}],"splits":["bQ==","ZA=="]}`: "damaged",
		`{"format":1`: "read the plan",
	} {
		if _, err := decodePlan([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
