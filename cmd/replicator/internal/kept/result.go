package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// ErrNone means that the directory keeps no result.
var ErrNone = errors.New("no full comparison of all tables of the target is kept")

// format is the number in the file. Rule 11: a newer one is refused.
const format = 1

const (
	resultFile   = "last.json"
	begunFile    = "begun.json" // of a comparison that has not ended
	folderPrefix = "kept-"
	cellsFile    = "cells.jsonl"
)

// Result is what the last full comparison of a target found.
type Result struct {
	Format   int            `json:"format"`
	Folder   string         `json:"folder"` // of the keys, beside the file
	Pipeline string         `json:"pipeline"`
	Target   string         `json:"target"`
	Strong   bool           `json:"strong"`   // all items were read strongly
	Followed bool           `json:"followed"` // the logs were read along: --for-cutover
	Began    time.Time      `json:"began"`
	Ended    time.Time      `json:"ended"`
	Verdict  report.Verdict `json:"verdict"` // of the newest incremental one, where there is one
	Tables   []Table        `json:"tables"`

	// OpenItems and OpenCells count what was not equal: their keys and cells are in the folder.
	OpenItems int64 `json:"open_items"`
	OpenCells int64 `json:"open_cells"`

	// Since is the newest incremental comparison that found everything equal: what changed before it is done.
	Since *Since `json:"since,omitempty"`
}

// CellsListed reports whether all cells that were not equal are in the folder: those beyond a limit are only counted,
// if at all.
func (r *Result) CellsListed() bool { return r.OpenCells < maxCells }

// Since is an incremental comparison that found everything equal.
type Since struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Items int64     `json:"items"`
}

// Table is one source table, as it was when the full comparison began.
type Table struct {
	Result      report.Table `json:"result"`
	TableID     string       `json:"table_id"`
	MappingHash string       `json:"mapping_hash"`
	LogCreated  time.Time    `json:"log_created"`
	Life        uint64       `json:"life"`
	Requests    Requests     `json:"requests"`
	// Mark is where the log must be read from: Bigtable had what is before it when the comparison began.
	Mark checkpoint.Mark `json:"mark"`
	// Begun is the newest entry of the log then. What was done to the rows before it was seen by the comparison.
	Begun uint64 `json:"begun"`
	// OpenGaps are losses of changes that waited to be accepted then: what their shards get until then is in no log.
	OpenGaps int `json:"open_gaps,omitempty"`
}

// Requests is how far the stream of the requests for a table has come: repairs, and retries of dead letters.
type Requests struct {
	Created time.Time `json:"created,omitzero"`
	Last    uint64    `json:"last"`
}

// Dir returns the directory of the kept result of a target.
func Dir(scratch, pipeline, target string) string {
	return filepath.Join(scratch, "verify", pipeline, target)
}

// Load reads the kept result of a directory. ErrNone where there is none, or none that can be read: after a power
// failure the file may be damaged, and a full comparison makes it anew.
func Load(dir string) (*Result, error) { return load(filepath.Join(dir, resultFile)) }

func load(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read kept result: %w", err)
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%w: %s is damaged: %w", ErrNone, path, err)
	}
	if r.Format < 1 || r.Format > format {
		return nil, fmt.Errorf("%w: %s has format %d, this build reads %d", ErrNone, path, r.Format, format)
	}
	return r, nil
}

// save replaces the kept result of a directory, and removes the folders of earlier ones.
//
// Rule 15: the result is stored then, whatever becomes of what is left of earlier ones. The next
// save removes it.
func (r *Result) save(dir string) error {
	if err := r.write(filepath.Join(dir, resultFile)); err != nil {
		return err
	}
	_ = removeFolders(dir, r.Folder)
	return nil
}

// write replaces a file as a whole.
func (r *Result) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
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
