package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// ErrNoneSaved means that the directory keeps no result.
var ErrNoneSaved = errors.New("no full comparison of all tables of the target is kept")

// format is the number in the file. Rule 11: a newer one is refused.
const format = 1

const (
	resultFile   = "last.json"
	begunFile    = "begun.json" // of a comparison that has not ended
	folderPrefix = "kept-"
	cellsFile    = "cells.jsonl"
)

// Saved is what the last full comparison of a target found.
type Saved struct {
	Format   int    `json:"format"`
	Folder   string `json:"folder"` // of the keys, beside the file
	Pipeline string `json:"pipeline"`
	Target   string `json:"target"`
	Strong   bool   `json:"strong"`   // all items were read strongly
	Followed bool   `json:"followed"` // the logs were read along: --for-cutover
	// ByWorkers: of a comparison that has not ended, workers of a distributed engine compare.
	ByWorkers bool           `json:"by_workers,omitempty"`
	Began     time.Time      `json:"began"`
	Ended     time.Time      `json:"ended"`
	Verdict   report.Verdict `json:"verdict"` // of the newest incremental one, where there is one
	Tables    []SavedTable   `json:"tables"`

	// OpenItems and OpenCells count what was not equal: their keys and cells are in the folder.
	OpenItems int64 `json:"open_items"`
	OpenCells int64 `json:"open_cells"`

	// Since is the newest incremental comparison that found everything equal: what changed before
	// it is done.
	Since *SavedSince `json:"since,omitempty"`
}

// CellsListed reports whether all cells that were not equal are in the folder: those beyond a limit
// are only counted, if at all.
func (s *Saved) CellsListed() bool { return s.OpenCells < maxSavedCells }

// SavedSince is an incremental comparison that found everything equal.
type SavedSince struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Items int64     `json:"items"`
}

// SavedTable is one source table, as it was when the full comparison began.
type SavedTable struct {
	Result      report.Table  `json:"result"`
	TableID     string        `json:"table_id"`
	MappingHash string        `json:"mapping_hash"`
	LogCreated  time.Time     `json:"log_created"`
	Life        uint64        `json:"life"`
	Requests    SavedRequests `json:"requests"`
	// Mark is where the log must be read from: Bigtable had what is before it when the comparison
	// began.
	Mark checkpoint.Mark `json:"mark"`
	// Begun is the newest entry of the log then. What was done to the rows before it was seen by
	// the comparison.
	Begun uint64 `json:"begun"`
	// OpenGaps are losses of changes that waited to be accepted then: what their shards get until
	// then is in no log.
	OpenGaps int `json:"open_gaps,omitempty"`
}

// SavedRequests is how far the stream of the requests for a table has come: repairs, and retries of
// dead letters.
type SavedRequests struct {
	Created time.Time `json:"created,omitzero"`
	Last    uint64    `json:"last"`
}

// SavedDir returns the directory of the kept result of a target.
func SavedDir(scratch, pipeline, target string) string {
	return filepath.Join(scratch, "verify", pipeline, target)
}

// LoadSaved reads the kept result of a directory. The error is ErrNoneSaved if there is none, or
// none that can be read: a power failure may damage the file, and a full comparison replaces it.
func LoadSaved(dir string) (*Saved, error) { return load(filepath.Join(dir, resultFile)) }

// CopyTo copies the kept result, and the folder that it names, from one directory to another, which
// has none.
func (s *Saved) CopyTo(from, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("copy the kept result: %w", err)
	}
	if err := os.CopyFS(filepath.Join(dir, s.Folder), os.DirFS(filepath.Join(from, s.Folder))); err != nil {
		return fmt.Errorf("copy the kept result: %w", err)
	}
	return s.write(filepath.Join(dir, resultFile))
}

func load(path string) (*Saved, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoneSaved
	}
	if err != nil {
		return nil, fmt.Errorf("read kept result: %w", err)
	}
	r := new(Saved)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%w: %s is damaged: %w", ErrNoneSaved, path, err)
	}
	if r.Format < 1 || r.Format > format {
		return nil, fmt.Errorf("%w: %s has format %d, this build reads %d", ErrNoneSaved, path, r.Format, format)
	}
	return r, nil
}

// save replaces the kept result of a directory, and removes the folders of earlier ones.
//
// Rule 15: the result is stored then, whatever becomes of what is left of earlier ones. The next
// save removes it.
func (s *Saved) save(dir string) error {
	if err := s.write(filepath.Join(dir, resultFile)); err != nil {
		return err
	}
	_ = removeFolders(dir, s.Folder)
	return nil
}

// write replaces a file as a whole.
func (s *Saved) write(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode kept result: %w", err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return nil
}

// removeFolders removes the folders of earlier comparisons, and of such that did not end.
func removeFolders(dir, except string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list kept results: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), folderPrefix) && e.Name() != except {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("remove kept result: %w", err)
			}
		}
	}
	return nil
}

// newFolder makes a folder for keys.
func newFolder(dir string) (name string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory of kept results: %w", err)
	}
	path, err := os.MkdirTemp(dir, folderPrefix)
	if err != nil {
		return "", fmt.Errorf("make folder of kept results: %w", err)
	}
	return filepath.Base(path), nil
}

// differs returns why the kept comparison belongs to other tables, mappings or logs than these; ""
// where it does not.
func (r *Saved) differs(s *pair.Pair, pipeline string, now []SavedTable) string {
	if r.Pipeline != pipeline || r.Target != s.Target || len(r.Tables) != len(now) {
		return "the last full one compared other tables"
	}
	for i := range now {
		old, source := &r.Tables[i], s.Tables[i].Source
		switch {
		case old.Result.Source != source || old.TableID != now[i].TableID:
			return fmt.Sprintf("the last full one compared another table than this %s", source)
		case old.MappingHash != now[i].MappingHash:
			return fmt.Sprintf("the last full one compared %s with another mapping", source)
		case old.Life != now[i].Life || !old.LogCreated.Equal(now[i].LogCreated):
			return fmt.Sprintf("the last full one began before %s was recovered", source)
		}
	}
	return ""
}
