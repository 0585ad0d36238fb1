package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRun reads files whose blocks are whole as their checksums say, with any content. Each ends
// with its last record or with a DamagedError, and no record is longer than the content.
func FuzzRun(f *testing.F) {
	w := &fileWriter{}
	first, second := Record{[]byte("row-1"), []byte("item-1"), []byte("a")}, Record{[]byte("row-2"), []byte("item-2"), nil}
	for _, r := range []Record{first, second} {
		if err := w.add(&r); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(bytes.Clone(w.keys), bytes.Clone(w.values), int64(2))
	f.Add(bytes.Clone(w.keys[:3]), bytes.Clone(w.values), int64(3))
	f.Add([]byte{0, 0, 9, 9, 9, 0}, []byte{0xff, 0xff, 0xff, 0xff, 0x7f}, int64(1))
	path := filepath.Join(f.TempDir(), "run")
	f.Fuzz(func(t *testing.T, keys, values []byte, records int64) {
		records = records % 1000
		packed := packer.EncodeAll(keys, nil)
		n := len(packed)
		packed = packer.EncodeAll(values, packed)
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(packed)))
		head = binary.LittleEndian.AppendUint32(head, uint32(n))
		head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(packed, castagnoli))
		if err := os.WriteFile(path, append(head, packed...), 0o600); err != nil {
			t.Fatal(err)
		}
		read := int64(0)
		r, err := openFile(path, 0, File{Name: "run", Records: max(records, 0)}, 4096)
		for ; err == nil; err = r.next() {
			if read++; len(r.head.Row) > len(keys) || len(r.head.Value) > len(values) {
				t.Fatalf("record %d has a row of %d and a value of %d bytes", read, len(r.head.Row), len(r.head.Value))
			}
		}
		if r != nil {
			_ = r.f.Close() // only read
		}
		var damaged *DamagedError
		if errors.Is(err, io.EOF) && !errors.As(err, &damaged) {
			if read != max(records, 0) {
				t.Fatalf("the run ends after %d of %d records", read, records)
			}
		} else if !errors.As(err, &damaged) {
			t.Fatalf("not a DamagedError: %v", err)
		}
	})
}
