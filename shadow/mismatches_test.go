package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// tearing writes a part of every second line and fails, as a full disk does.
type tearing struct {
	bytes.Buffer
	calls int
}

func (t *tearing) Write(p []byte) (int, error) {
	if t.calls++; t.calls%2 == 0 {
		n, _ := t.Buffer.Write(p[:len(p)/2])
		return n, errors.New("no space left")
	}
	return t.Buffer.Write(p)
}

// TestLinesBehindATornOneAreWhole: a full disk costs the mismatches that it has no room for.
func TestLinesBehindATornOneAreWhole(t *testing.T) {
	to := &tearing{}
	l := &mismatchLines{to: to}
	for i := range 5 {
		err := l.write(lineOf(&replay.Mismatch{Table: "Orders", Key: strconv.Itoa(i)}, "orders"))
		if (err != nil) != (i%2 == 1) {
			t.Errorf("line %d: %v", i, err)
		}
	}
	var keys []string
	for line := range strings.Lines(to.String()) {
		var m report.Difference
		if json.Unmarshal([]byte(line), &m) == nil {
			keys = append(keys, string(m.Key))
		}
	}
	if !slices.Equal(keys, []string{"0", "2", "4"}) {
		t.Errorf("%v of %s", keys, to.String())
	}
}

// TestFileOfMismatchesIsTheUsersAlone, also one that was there before and has lines.
func TestFileOfMismatchesIsTheUsersAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wrong.jsonl")
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	write, closeFile, err := MismatchFile(name, &catalog.Catalog{})
	if err == nil {
		err = errors.Join(write(replay.Mismatch{Key: `"k"`}), closeFile())
	}
	info, _ := os.Stat(name)
	text, _ := os.ReadFile(name)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%v, %v: %s", err, info.Mode(), text)
	}
	_, _, err = MismatchFile(filepath.Join(name, "none"), &catalog.Catalog{})
	if class, _ := failure.Of(err); err == nil || class != failure.Unready {
		t.Errorf("a file that cannot be: %v", err)
	}
}
