package extsort

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// format is the number in each manifest. Rule 11: a part of another format is made again.
//
//	1  rows front-coded, blocks as they are
//	2  rows and names front-coded, blocks compressed, hashes of 12 bytes
const format = 2

// File is a run of a part.
type File struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Records int64  `json:"records"`
}

// Part is what the manifest of a part holds. After and Note are the caller's: where the reading of
// its source goes on, and what it counted.
type Part struct {
	Files []File          `json:"files,omitempty"`
	After string          `json:"after,omitempty"`
	Note  json.RawMessage `json:"note,omitempty"`
	Done  bool            `json:"done,omitempty"`
}

type manifest struct {
	Format   int    `json:"format"`
	Identity string `json:"identity"`
	Part     Part   `json:"part"`
}

// Store is a directory with the runs of several parts.
type Store struct {
	dir, identity string

	mu   sync.Mutex
	free []memory // of parts that are done
}

// Open opens a directory, and makes it where it does not exist. Parts that were stored under
// another identity are removed: they belong to another comparison.
func Open(dir, identity string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of runs: %w", err)
	}
	s := &Store{dir: dir, identity: identity}
	for _, i := range s.parts() {
		if m, ok := s.read(i); !ok || m.Identity != identity || m.Format != format {
			if err := s.Drop(i); err != nil {
				return nil, err
			}
		}
	}
	return s, s.removeUnnamed()
}

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

func (s *Store) manifest(part int) string {
	return filepath.Join(s.dir, fmt.Sprintf("part-%05d.json", part))
}

// parts returns the parts that have a manifest, in order.
func (s *Store) parts() (all []int) {
	names, _ := filepath.Glob(filepath.Join(s.dir, "part-*.json")) // the pattern is well formed
	for _, name := range names {
		var i int
		if _, err := fmt.Sscanf(filepath.Base(name), "part-%d.json", &i); err == nil {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

func (s *Store) read(part int) (m manifest, ok bool) {
	b, err := os.ReadFile(s.manifest(part))
	if err != nil || json.Unmarshal(b, &m) != nil {
		return m, false
	}
	return m, true
}

// Part returns what is stored of a part; the zero Part when nothing is. A part is dropped if one of
// its files is missing or has another size.
func (s *Store) Part(i int) (Part, error) {
	m, ok := s.read(i)
	if !ok {
		return Part{}, s.Drop(i)
	}
	for _, f := range m.Part.Files {
		info, err := os.Stat(filepath.Join(s.dir, f.Name))
		if err != nil || info.Size() != f.Bytes {
			return Part{}, s.Drop(i)
		}
	}
	return m.Part, nil
}

// save stores a part's manifest: the file is replaced as a whole.
func (s *Store) save(i int, p Part) error {
	b, err := json.Marshal(manifest{format, s.identity, p})
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	next := s.manifest(i) + ".new"
	if err = os.WriteFile(next, b, 0o600); err == nil {
		err = os.Rename(next, s.manifest(i))
	}
	if err != nil {
		return NoRoom(s.dir, fmt.Errorf("write manifest: %w", err))
	}
	return nil
}

// DropIf removes the parts for which f returns true.
func (s *Store) DropIf(f func(Part) bool) error {
	for _, i := range s.parts() {
		if m, ok := s.read(i); ok && f(m.Part) {
			if err := s.Drop(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// Drop removes a part with its files.
func (s *Store) Drop(i int) error {
	names, _ := filepath.Glob(filepath.Join(s.dir, fmt.Sprintf("part-%05d*", i))) // the pattern is well formed
	return removeAll(names)
}

// removeUnnamed removes files that no manifest names: a process was killed before it wrote the
// manifest.
func (s *Store) removeUnnamed() error {
	named := map[string]bool{}
	for _, i := range s.parts() {
		m, _ := s.read(i)
		named[filepath.Base(s.manifest(i))] = true
		for _, f := range m.Part.Files {
			named[f.Name] = true
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "part-") && !named[e.Name()] {
			names = append(names, filepath.Join(s.dir, e.Name()))
		}
	}
	return removeAll(names)
}

// Remove removes all parts, and the directory where it is then empty.
func (s *Store) Remove() error {
	names, _ := filepath.Glob(filepath.Join(s.dir, "part-*")) // the pattern is well formed
	if err := removeAll(names); err != nil {
		return err
	}
	_ = os.Remove(s.dir) // fails when the caller keeps other files there
	return nil
}

func removeAll(names []string) error {
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove run: %w", err)
		}
	}
	return nil
}

// Size returns the bytes of all runs that manifests name.
func (s *Store) Size() (sum int64) {
	for _, i := range s.parts() {
		m, _ := s.read(i)
		for _, f := range m.Part.Files {
			sum += f.Bytes
		}
	}
	return sum
}
