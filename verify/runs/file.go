package runs

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Record is what is sorted: by Row, then by Name, each as bytes.
type Record struct{ Row, Name, Value []byte }

func (r *Record) compare(o *Record) int {
	return cmp.Or(bytes.Compare(r.Row, o.Row), bytes.Compare(r.Name, o.Name))
}

// blockSize is the size from which a block is written. A block is its length, its checksum and its records; the rows of
// records are front-coded within it.
const blockSize = 32 << 10

// maxBlock bounds the memory that a damaged length can ask for. One record may be larger than blockSize: a row of
// 256 MiB is the largest that Bigtable returns.
const maxBlock = 512 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fileWriter writes one run.
type fileWriter struct {
	f       *os.File
	to      *bufio.Writer
	block   []byte
	last    []byte // row of the block's last record
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
	same := 0
	for same < len(w.last) && same < len(r.Row) && w.last[same] == r.Row[same] {
		same++
	}
	w.block = binary.AppendUvarint(w.block, uint64(same))
	for _, part := range [][]byte{r.Row[same:], r.Name, r.Value} {
		w.block = append(binary.AppendUvarint(w.block, uint64(len(part))), part...)
	}
	w.last = append(w.last[:0], r.Row...)
	w.records++
	if len(w.block) < blockSize {
		return nil
	}
	return w.flush()
}

func (w *fileWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(w.block)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(w.block, castagnoli))
	w.bytes += int64(len(head) + len(w.block))
	_, err := w.to.Write(head[:])
	if err == nil {
		_, err = w.to.Write(w.block)
	}
	w.block, w.last = w.block[:0], w.last[:0]
	if err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

// close makes the file durable, so that a manifest may name it.
func (w *fileWriter) close() error {
	err := w.flush()
	if err == nil {
		err = errors.Join(w.to.Flush(), w.f.Sync())
	}
	return errors.Join(err, w.f.Close())
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
	block []byte // what is left of the current block
	whole []byte
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

// next reads the next record into head. It returns io.EOF after the last one, and a *DamagedError for a file that is
// not as it was written.
func (r *fileReader) next() error {
	if r.left == 0 {
		return io.EOF
	}
	if len(r.block) == 0 {
		if err := r.readBlock(); err != nil {
			return &DamagedError{r.part, r.name, err}
		}
	}
	same, ok := r.uvarint()
	row, ok1 := r.bytes()
	name, ok2 := r.bytes()
	value, ok3 := r.bytes()
	if !ok || !ok1 || !ok2 || !ok3 || same > uint64(len(r.row)) {
		return &DamagedError{r.part, r.name, errors.New("a record is cut off")}
	}
	r.row = append(r.row[:same], row...)
	r.head = Record{r.row, name, value}
	r.left--
	return nil
}

func (r *fileReader) readBlock() error {
	var head [8]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return fmt.Errorf("read block: %w", unexpected(err))
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxBlock {
		return fmt.Errorf("a block claims %d bytes", n)
	}
	if cap(r.whole) < int(n) {
		r.whole = make([]byte, n)
	}
	r.whole = r.whole[:n]
	if _, err := io.ReadFull(r.from, r.whole); err != nil {
		return fmt.Errorf("read block: %w", unexpected(err))
	}
	if crc32.Checksum(r.whole, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return errors.New("a block's checksum does not match")
	}
	r.block, r.row = r.whole, r.row[:0]
	return nil
}

// unexpected returns the error of a file that ends too early, which must not be taken for the end of the records.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *fileReader) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(r.block)
	if n <= 0 {
		return 0, false
	}
	r.block = r.block[n:]
	return v, true
}

func (r *fileReader) bytes() ([]byte, bool) {
	n, ok := r.uvarint()
	if !ok || n > uint64(len(r.block)) {
		return nil, false
	}
	b := r.block[:n:n]
	r.block = r.block[n:]
	return b, true
}

// DamagedError says that a run is missing, or not as it was written. Its part must be made again: see Store.Drop.
type DamagedError struct {
	Part int
	File string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("run %s of part %d is damaged: %v", e.File, e.Part, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }
