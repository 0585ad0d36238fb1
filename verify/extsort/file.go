package extsort

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Record is what is sorted: by Row, then by Name, each as bytes.
type Record struct{ Row, Name, Value []byte }

func (r *Record) compare(o *Record) int {
	if c := bytes.Compare(r.Row, o.Row); c != 0 {
		return c
	}
	return bytes.Compare(r.Name, o.Name)
}

// blockSize is the size of records from which a block is written. A block is its length, its
// checksum, and its records, compressed: first their rows and names, front-coded, then their
// values: hashes, which cannot be compressed, do not stand between texts.
const blockSize = 32 << 10

// headSize is the length of the head of a block: the length of the whole block, the length of its
// rows and names, and the checksum.
const headSize = 12

// maxBlock bounds the memory that a damaged length can ask for. One record may be larger than
// blockSize: a row of 256 MiB is the largest that Bigtable returns.
const maxBlock = 512 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packer compresses blocks and unpacker reads them; both may be used by several goroutines. The
// options are valid, and the checksum of a block covers its bytes on disk.
var (
	packer, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(2))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecoderConcurrency(2))
)

// fileWriter writes one run.
type fileWriter struct {
	f       *os.File
	to      *bufio.Writer
	keys    []byte // rows and names of the current block
	values  []byte
	packed  []byte
	last    []byte // row of the block's last record
	named   []byte // and its name
	bytes   int64
	records int64
}

func createFile(path string) (*fileWriter, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	return &fileWriter{f: f, to: bufio.NewWriterSize(f, 256<<10)}, nil
}

// add appends a record, which must not sort before the last one.
func (w *fileWriter) add(r *Record) error {
	same := commonPrefix(w.last, r.Row)
	w.keys = binary.AppendUvarint(w.keys, uint64(same))
	w.keys = appendBytes(w.keys, r.Row[same:])
	w.keys = appendName(w.keys, w.named, r.Name, r.Row[same:])
	w.values = appendBytes(w.values, r.Value)
	w.last, w.named = append(w.last[:0], r.Row...), append(w.named[:0], r.Name...)
	w.records++
	if len(w.keys)+len(w.values) < blockSize {
		return nil
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

func commonPrefix(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most && a[n] == b[n]; n++ {
	}
	return n
}

func commonSuffix(a, b []byte) (n int) {
	for most := min(len(a), len(b)); n < most && a[len(a)-1-n] == b[len(b)-1-n]; n++ {
	}
	return n
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// appendName appends a name as what it has in common with the last one: how many bytes at its begin
// and at its end, and how many bytes of fresh follow the begin. fresh is the end of the row, from
// where it differs from the last row: of a key that stands in row and name alike, nothing is left
// to be stored.
func appendName(dst, last, name, fresh []byte) []byte {
	same := commonPrefix(last, name)
	copied := commonPrefix(fresh, name[same:])
	rest := name[same+copied:]
	tail := commonSuffix(last[same:], rest)
	for _, n := range []int{same, copied, tail} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return appendBytes(dst, rest[:len(rest)-tail])
}

func (w *fileWriter) flush() error {
	if len(w.keys) == 0 {
		return nil
	}
	w.packed = packer.EncodeAll(w.keys, w.packed[:0])
	keys := len(w.packed)
	w.packed = packer.EncodeAll(w.values, w.packed)
	var head [headSize]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(w.packed)))
	binary.LittleEndian.PutUint32(head[4:], uint32(keys))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(w.packed, castagnoli))
	w.bytes += int64(len(head) + len(w.packed))
	_, err := w.to.Write(head[:])
	if err == nil {
		_, err = w.to.Write(w.packed)
	}
	w.keys, w.values, w.last, w.named = w.keys[:0], w.values[:0], w.last[:0], w.named[:0]
	return err
}

// close makes the file durable, so that a manifest may name it.
func (w *fileWriter) close() error {
	err := w.flush()
	if err == nil {
		err = w.to.Flush()
	}
	if err == nil {
		err = w.f.Sync()
	}
	if err = errors.Join(err, w.f.Close()); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

// fileReader reads one run; head is its next record, valid until the next call of next.
type fileReader struct {
	part  int
	name  string
	f     *os.File
	from  *bufio.Reader
	left  int64 // records not yet read
	head  Record
	row   []byte
	named []byte // name of the last record
	spare []byte // memory for the next one
	// What is left of the current block, and the memory for a whole one.
	keys, values           []byte
	wholeKeys, wholeValues []byte
	packed                 []byte // as it is on disk
}

// openFile opens a run and reads its first record. It returns io.EOF when there is none.
func openFile(path string, part int, want File, buffer int) (*fileReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &DamagedError{part, want.Name, err}
	}
	r := &fileReader{part: part, name: want.Name, f: f, from: bufio.NewReaderSize(f, buffer), left: want.Records}
	if err := r.next(); err != nil {
		_ = f.Close() // only read
		return nil, err
	}
	return r, nil
}

// next reads the next record into head. It returns io.EOF after the last one, and a *DamagedError
// for a file that is not as it was written.
func (r *fileReader) next() error {
	if r.left == 0 {
		return io.EOF
	}
	if len(r.keys) == 0 {
		if err := r.readBlock(); err != nil {
			return &DamagedError{r.part, r.name, err}
		}
	}
	same, ok := r.length(len(r.row))
	fresh, ok1 := cut(&r.keys)
	if ok && ok1 {
		r.row = append(r.row[:same], fresh...)
		ok = r.readName(fresh)
	}
	value, ok2 := cut(&r.values)
	if !ok || !ok1 || !ok2 {
		return &DamagedError{r.part, r.name, errors.New("a record is cut off")}
	}
	r.head = Record{r.row, r.named, value}
	r.left--
	return nil
}

func (r *fileReader) readBlock() error {
	var head [headSize]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return fmt.Errorf("read block: %w", unexpected(err))
	}
	n, keys := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if n == 0 || n > maxBlock || keys > n {
		return fmt.Errorf("a block claims %d bytes, %d of them of keys", n, keys)
	}
	if cap(r.packed) < int(n) {
		r.packed = make([]byte, n)
	}
	r.packed = r.packed[:n]
	if _, err := io.ReadFull(r.from, r.packed); err != nil {
		return fmt.Errorf("read block: %w", unexpected(err))
	}
	if crc32.Checksum(r.packed, castagnoli) != binary.LittleEndian.Uint32(head[8:]) {
		return errors.New("a block's checksum does not match")
	}
	var err error
	if r.wholeKeys, err = unpacker.DecodeAll(r.packed[:keys], r.wholeKeys[:0]); err != nil {
		return fmt.Errorf("unpack rows and names: %w", err)
	}
	if r.wholeValues, err = unpacker.DecodeAll(r.packed[keys:], r.wholeValues[:0]); err != nil {
		return fmt.Errorf("unpack values: %w", err)
	}
	r.keys, r.values, r.row, r.named = r.wholeKeys, r.wholeValues, r.row[:0], r.named[:0]
	return nil
}

// unexpected returns the error of a file that ends too early, which must not be taken for the end
// of the records.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// length reads a number of bytes, which is at most limit.
func (r *fileReader) length(limit int) (int, bool) {
	v, n := binary.Uvarint(r.keys)
	if n <= 0 || v > uint64(limit) {
		return 0, false
	}
	r.keys = r.keys[n:]
	return int(v), true
}

// readName reads what appendName wrote.
func (r *fileReader) readName(fresh []byte) bool {
	same, ok := r.length(len(r.named))
	copied, ok1 := r.length(len(fresh))
	tail, ok2 := r.length(len(r.named) - same)
	own, ok3 := cut(&r.keys)
	if !ok || !ok1 || !ok2 || !ok3 {
		return false
	}
	name := append(r.spare[:0], r.named[:same]...)
	name = append(append(name, fresh[:copied]...), own...)
	name = append(name, r.named[len(r.named)-tail:]...)
	r.named, r.spare = name, r.named
	return true
}

// cut takes bytes with their length in front from b.
func cut(b *[]byte) ([]byte, bool) {
	size, n := binary.Uvarint(*b)
	if n <= 0 || size > uint64(len(*b)-n) {
		return nil, false
	}
	end := n + int(size)
	first := (*b)[n:end:end]
	*b = (*b)[end:]
	return first, true
}

// DamagedError reports that a run is missing, or not as it was written. Its part must be made
// again: see Store.Drop.
type DamagedError struct {
	Part int
	File string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("run %s of part %d is damaged: %v", e.File, e.Part, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }
