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

// counts is how many items a file has.
type counts struct {
	Table   int           `json:"table"`
	Items   int64         `json:"items"`
	Refused int64         `json:"refused,omitempty"`
	At      change.Millis `json:"at"` // of the export
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
