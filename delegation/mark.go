package delegation

import (
	"encoding/json"
	"fmt"
)

// FilesPerRow is how many marks of files one row holds.
const FilesPerRow = 1000

// MostHandedBack is how many lines of a file a worker hands back. A file with more has no mark: the
// mapping is wrong.
const MostHandedBack = 1000

// FileMark records that every item of a file is durable in Bigtable, but for the lines that the
// worker hands back to the daemon. It is the only result of a worker's work: what an engine reports
// of its job proves nothing.
type FileMark struct {
	Format  int    `json:"format"` // Rule 11: everything stored carries a format number
	Order   string `json:"order"`  // id
	Items   int64  `json:"items"`
	Bytes   int64  `json:"bytes"`             // of the items, as JSON
	Rows    int64  `json:"rows"`              // that were written
	Skipped int64  `json:"skipped,omitempty"` // rows that held the item at this version or later
	// HandedBack are the numbers of the lines, from 1 and ascending, that the mapping or Bigtable
	// refuses. The daemon writes them, or makes them dead letters.
	HandedBack []int64 `json:"handed_back,omitempty"`
}

// RowOf returns in which row of marks the mark of a file is.
func RowOf(file int) int { return file / FilesPerRow }

// Rows returns how many rows the marks of an export have.
func Rows(files int) int { return (files + FilesPerRow - 1) / FilesPerRow }

// Encode returns the stored form of a mark.
func (m FileMark) Encode() ([]byte, error) {
	m.Format = Format
	return json.Marshal(m)
}

// DecodeFileMark reads the stored form of a mark. Errors: *NewerFormatError.
func DecodeFileMark(stored []byte) (*FileMark, error) {
	m := &FileMark{}
	if err := json.Unmarshal(stored, m); err != nil {
		return nil, fmt.Errorf("decode the mark of a file: %w", err)
	}
	if m.Format > Format { // Rule 11
		return nil, fmt.Errorf("decode the mark of a file: %w", &NewerFormatError{Have: m.Format})
	}
	return m, nil
}

// Of reports whether a mark is one of an order. Marks of another one do not count: it had another
// export, another version or another mapping.
func (m *FileMark) Of(order string) bool { return m != nil && m.Order == order }
