package comparison

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/verify"
)

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	for _, r := range []verify.Record{
		{Row: []byte("c1#o1"), Name: []byte("\x00\x01key"), Value: []byte("h\x02sum")},
		{Name: []byte("\x00\x00refused")},
		{Row: bytes.Repeat([]byte("r"), 4096), Name: bytes.Repeat([]byte("n"), 3000),
			Value: bytes.Repeat([]byte("v"), 1<<20)},
	} {
		value := appendRecord(nil, r)
		got, err := readRecord(value)
		if err != nil || isCounts(value) || !bytes.Equal(got.Row, r.Row) || !bytes.Equal(got.Name, r.Name) ||
			!bytes.Equal(got.Value, r.Value) {
			t.Errorf("%.40q: %.40q, %v", r, got, err)
		}
		for n := range min(len(value)-len(r.Value), 100) {
			if got, err := readRecord(value[:n]); err == nil && len(got.Row) == len(r.Row) && len(got.Name) == len(r.Name) {
				t.Errorf("%d bytes of %d are taken for a whole record", n, len(value))
			}
		}
	}
	c := counts{File: 1, Records: 4, Items: 2, Refused: 1, At: 3}
	value, err := c.append(nil)
	if err != nil || !isCounts(value) {
		t.Fatal(err)
	}
	if got, err := readCounts(value); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(appendRecord(nil, verify.Record{Row: []byte("r"), Name: []byte("\x00\x00n"), Value: []byte("v")}))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := readRecord(value)
		if err == nil && len(r.Name) < 2 {
			t.Errorf("%q has no table", value)
		}
	})
}

// Workers in Google Cloud have no identity of AWS: the exports are copied, with their keys.
func TestExportsAreReadWhereTheyWereCopiedTo(t *testing.T) {
	const original = "s3://backups/compare/AWSDynamoDB/01700000000000-a1b2c3d4"
	for exports, want := range map[string]string{
		"":                   original,
		"gs://copies":        "gs://copies/compare/AWSDynamoDB/01700000000000-a1b2c3d4",
		"gs://copies/there/": "gs://copies/there/compare/AWSDynamoDB/01700000000000-a1b2c3d4",
	} {
		if got, err := (&Place{Exports: exports}).exportAt(original); err != nil || got != want {
			t.Errorf("%q: %s, %v", exports, got, err)
		}
	}
}

// Rule 15: a range that has lost records is not compared: a row that lacks a lost item would
// be taken for right.
func TestRangeWithoutAllItsRecordsIsNotCompared(t *testing.T) {
	record := func(row string) []byte {
		return appendRecord(nil, verify.Record{Row: []byte(row), Name: []byte("\x00\x00" + row), Value: []byte("v")})
	}
	count := func(file int, records int64) []byte {
		text, err := counts{File: file, Records: records}.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	all := [][]byte{nil, record("a"), count(0, 2), record("b"), record("c"), count(1, 1)}
	read := func(values [][]byte) (rows int, err error) {
		got := received{files: map[int]counts{}}
		err = got.read(func(to *[]byte) bool {
			if len(values) == 0 {
				return false
			}
			*to, values = values[0], values[1:]
			return true
		}, 2, func(verify.Record) error { rows++; return nil })
		return rows, err
	}
	if rows, err := read(all); err != nil || rows != 3 {
		t.Fatalf("%d records, %v", rows, err)
	}
	for lost := 1; lost < len(all); lost++ { // the first only makes the range
		if _, err := read(slices.Delete(slices.Clone(all), lost, lost+1)); !errors.Is(err, errIncomplete) {
			t.Errorf("without value %d: %v", lost, err)
		}
	}
	if _, err := read(append(all, record("c"))); !errors.Is(err, errIncomplete) {
		t.Errorf("a record twice: %v", err)
	}
}
