package comparison

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
)

// A value begins with what it is.
const (
	isRecord = 'r' // two lengths, row, name and value
	isCount  = 'c' // JSON of counts
)

// counts is what a file has for a range. Each range gets it from each file: without it an engine
// that loses records would leave rows that lack their item unseen.
type counts struct {
	File    int   `json:"file"`
	Records int64 `json:"records,omitempty"` // that the file has emitted for the range

	// Of the whole file; for range 0 alone.
	Items   int64         `json:"items,omitempty"`
	Refused int64         `json:"refused,omitempty"`
	At      change.Millis `json:"at,omitempty"` // of the export
}

func (c counts) append(dst []byte) ([]byte, error) {
	text, err := json.Marshal(c)
	return append(append(dst, isCount), text...), err
}

func isCounts(value []byte) bool { return len(value) > 0 && value[0] == isCount }

func readCounts(value []byte) (c counts, err error) {
	if err := json.Unmarshal(value[1:], &c); err != nil {
		return c, fmt.Errorf("read a count: %w", err)
	}
	return c, nil
}

func appendRecord(dst []byte, r verify.Record) []byte {
	dst = binary.AppendUvarint(append(dst, isRecord), uint64(len(r.Row)))
	dst = binary.AppendUvarint(dst, uint64(len(r.Name)))
	return append(append(append(dst, r.Row...), r.Name...), r.Value...)
}

var errValue = errors.New("read a record: it is damaged")

// readRecord reads a record, which shares the value's memory.
func readRecord(value []byte) (r verify.Record, err error) {
	if len(value) == 0 || value[0] != isRecord {
		return r, errValue
	}
	row, n := binary.Uvarint(value[1:])
	if n <= 0 {
		return r, errValue
	}
	name, m := binary.Uvarint(value[1+n:])
	rest := value[min(1+n+max(m, 0), len(value)):]
	if size := uint64(len(rest)); m <= 0 || row > size || name > size-row || name < 2 {
		return r, errValue
	}
	return verify.Record{Row: rest[:row:row], Name: rest[row : row+name : row+name], Value: rest[row+name:]}, nil
}

// errIncomplete means that records of a range, or the counts of a file, did not come.
var errIncomplete = errors.New("records of the range are missing")

// received is what a range has got.
type received struct {
	files   map[int]counts // by file
	records int64
}

// read reads all values of a range, and calls add with its records. It returns errIncomplete unless
// each file has counted its records, and so many came.
func (x *received) read(next func(*[]byte) bool, files int, add func(verify.Record) error) error {
	for value := []byte(nil); next(&value); {
		if len(value) == 0 {
			continue // that there is such a range
		}
		if isCounts(value) {
			c, err := readCounts(value)
			if err != nil {
				return err
			}
			if c.File < 0 || c.File >= files {
				return fmt.Errorf("%w: file %d is none of the plan", errIncomplete, c.File)
			}
			x.files[c.File] = c
			continue
		}
		r, err := readRecord(value)
		if err != nil {
			return err
		}
		x.records++
		if err := add(r); err != nil {
			return err
		}
	}
	wanted := int64(0)
	for _, c := range x.files {
		wanted += c.Records
	}
	if len(x.files) != files || x.records != wanted {
		return fmt.Errorf("%w: %d of %d, and the counts of %d files of %d came", errIncomplete, x.records, wanted,
			len(x.files), files)
	}
	return nil
}
