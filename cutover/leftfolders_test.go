package cutover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/config"
)

// TestFoldersOfKilledRehearsalsAreRemoved by the next one. It leaves those in which another one
// works, or is about to, and what is no rehearsal's.
func TestFoldersOfKilledRehearsalsAreRemoved(t *testing.T) {
	base := t.TempDir()
	for name, age := range map[string]time.Duration{
		"rehearsal-killed": 2 * time.Hour, "rehearsal-works": 2 * time.Hour, "rehearsal-new": 0, "cutover": 2 * time.Hour,
	} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := audit.LockScratch(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if name != "rehearsal-works" {
			_ = lock.Close() // as the end of its process does
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cutover{cfg: &config.Config{Scratch: base}}
	names := func() (names []string) {
		all, err := os.ReadDir(base)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range all {
			names = append(names, entry.Name())
		}
		return names
	}
	end, err := c.makeFolder()
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 4 || !slices.Contains(got, filepath.Base(c.folder)) {
		t.Errorf("while it works: %v", got)
	}
	end()
	if got := names(); !slices.Equal(got, []string{"cutover", "rehearsal-new", "rehearsal-works"}) {
		t.Errorf("after it: %v", got)
	}
}
