package comparison

import (
	"bytes"
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
	c := counts{Table: 1, Items: 2, Refused: 1, At: 3}
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
