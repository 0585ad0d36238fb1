package extsort

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func readAll(s *Store) (all []Record, err error) {
	m, err := s.Merge()
	if err != nil {
		return nil, err
	}
	defer m.Close()
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Record{bytes.Clone(r.Row), bytes.Clone(r.Name), bytes.Clone(r.Value)})
	}
}

func sortRecords(rs []Record) {
	slices.SortStableFunc(rs, func(a, b Record) int { return a.compare(&b) })
}

// TestRunsKeepAllRecordsInOrder, also where a process is killed between two runs and its successor
// goes on.
func TestRunsKeepAllRecordsInOrder(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s, err := Open(filepath.Join(dir, fmt.Sprint(n)), "a")
		if err != nil {
			t.Fatal(err)
		}
		some := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 12)
		var want []Record
		for part := range rapid.IntRange(1, 3).Draw(t, "parts") {
			memory := rapid.IntRange(1, 2000).Draw(t, "memory")
			w, err := s.Writer(part, memory)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rapid.IntRange(0, 100).Draw(t, "records") {
				name := fmt.Appendf(some.Draw(t, "name"), "%d-%d", part, i) // of its own, in any order
				r := Record{some.Draw(t, "row"), name, some.Draw(t, "value")}
				want = append(want, r)
				w.Add(r)
				if w.Full() {
					if err := w.Save(fmt.Sprint(i), i, false); err != nil {
						t.Fatal(err)
					}
					if w, err = s.Writer(part, memory); err != nil || w.Part().After != fmt.Sprint(i) {
						t.Fatalf("goes on after %q: %v", w.Part().After, err)
					}
				}
			}
			if err := w.Save("", nil, true); err != nil || len(w.Part().Files) > maxFiles {
				t.Fatalf("%d files: %v", len(w.Part().Files), err)
			}
		}
		sortRecords(want)
		got, err := readAll(s)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		if err := s.Remove(); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(s.dir); len(left) > 0 {
			t.Fatalf("%d files are left", len(left))
		}
	})
}

func filled(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	for part := range 2 {
		w, err := s.Writer(part, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2000 {
			w.Add(Record{fmt.Appendf(nil, "row %05d", i), fmt.Appendf(nil, "%d", part), bytes.Repeat([]byte{1}, 50)})
		}
		if err := w.Save("", nil, true); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAnyFlippedByteIsFound(t *testing.T) {
	s := filled(t, t.TempDir())
	p, err := s.Part(1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, p.Files[0].Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 4999 {
		altered := bytes.Clone(whole)
		altered[at] ^= 0x10
		if err := os.WriteFile(path, altered, 0o600); err != nil {
			t.Fatal(err)
		}
		var damaged *DamagedError
		if _, err := readAll(s); !errors.As(err, &damaged) || damaged.Part != 1 {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

func TestPartWithAMissingOrShortFileIsDropped(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"missing": os.Remove,
		"short":   func(path string) error { return os.Truncate(path, 100) },
	} {
		s := filled(t, t.TempDir())
		p, err := s.Part(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := harm(filepath.Join(s.dir, p.Files[0].Name)); err != nil {
			t.Fatal(err)
		}
		if p, err = s.Part(0); err != nil || p.Done || len(p.Files) > 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if p, err = s.Part(1); err != nil || !p.Done {
			t.Errorf("%s: the other part is %+v, %v", name, p, err)
		}
	}
}

func TestRunsOfAnotherComparisonAreRemoved(t *testing.T) {
	s := filled(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(s.dir, "part-00000-00099.run"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.dir, "a")
	if err != nil || len(again.parts()) != 2 {
		t.Fatalf("%d parts, %v", len(again.parts()), err)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "part-00000-00099.run")); err == nil {
		t.Error("a run that no manifest names is left")
	}
	if s, err = Open(s.dir, "b"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		t.Errorf("%d files of another comparison are left", len(left))
	}
}

func TestRoomOfADirectoryThatDoesNotExistYet(t *testing.T) {
	room, err := Room(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil || room <= 0 {
		t.Errorf("%d, %v", room, err)
	}
}

func TestRunsOfAnotherFormatAreMadeAgain(t *testing.T) {
	s := filled(t, t.TempDir())
	path := s.manifest(1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older := bytes.Replace(text, fmt.Appendf(nil, `"format":%d`, format), []byte(`"format":1`), 1)
	if bytes.Equal(older, text) {
		t.Fatalf("no format in %s", text)
	}
	if err := os.WriteFile(path, older, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := again.Part(1); err != nil || len(p.Files) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := again.Part(0); err != nil || !p.Done {
		t.Errorf("the other part: %+v, %v", p, err)
	}
}

// TestNamesThatTheirRowsHold: what a name has in common with its row, and with the name before, is
// not stored again.
func TestNamesThatTheirRowsHold(t *testing.T) {
	s, err := Open(t.TempDir(), "a")
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Writer(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	var want []Record
	for i := range n {
		sum := sha256.Sum256(fmt.Append(nil, i))
		key := hex.EncodeToString(sum[:16])
		r := Record{[]byte(key), fmt.Appendf(nil, `{"pk":{"S":%q},"sk":{"N":"1"}}`, key), sum[20:]}
		want = append(want, r)
		w.Add(r)
	}
	if err := w.Save("", nil, true); err != nil {
		t.Fatal(err)
	}
	sortRecords(want)
	got, err := readAll(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	// A key of 16 random bytes, written as 32 digits, and a hash of 12 bytes.
	if each := s.Size() / n; each > 32 {
		t.Errorf("%d bytes for each record", each)
	}
}
