package object

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/tailrace-cdc/replicator/transform"
)

const (
	// maxGroup is the size of a row group before compression. A row group is held in memory,
	// compressed while it is written and whole while it is read.
	maxGroup = 16 << 20
	// maxRows bounds what the values of a row group take in memory besides their bytes.
	maxRows = 100_000
	// pageSize is large enough for zstd to find what repeats from one item to the next.
	pageSize = 256 << 10
)

// The keys in the metadata: the footer, and the CRC-32 of the metadata, computed with noCheck in
// its place.
const (
	metaFooter = "tailrace"
	metaCheck  = "tailrace.crc32"
)

// parquetWriter writes events column by column: building rows first takes twice as long.
type parquetWriter struct {
	w       *parquet.GenericWriter[any]
	columns []*parquet.ColumnWriter
	convert *converter // nil without configured columns: then nothing is decoded
	values  []parquet.Value
	one     [1]parquet.Value

	out *sealed

	groups      []group
	rows, bytes int // of the row group
}

func newParquetWriter(w io.Writer, o Options) (*parquetWriter, error) {
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	columns := sorted(o.Columns)
	p := &parquetWriter{
		values: make([]parquet.Value, columnsRead+len(columns)+1), out: &sealed{w: bufio.NewWriterSize(w, 64<<10)},
	}
	p.w = parquet.NewGenericWriter[any](p.out, schemaOf(columns),
		parquet.Compression(codec),
		parquet.DataPageVersion(1),
		parquet.PageBufferSize(pageSize),
		parquet.WriteBufferSize(0), // so that a row group has reached out when it is flushed
		parquet.CreatedBy("tailrace", strconv.Itoa(Version), ""),
		// Items and keys are in no order, so no reader could skip a page by their bounds.
		parquet.SkipPageBounds("item"), parquet.SkipPageStatistics("item"),
	)
	p.columns = p.w.ColumnWriters()
	if len(columns) > 0 {
		p.convert = newConverter(columns)
	}
	return p, nil
}

// codec compresses pages with one encoder; its window is the size of the largest pages. The
// library's codec allocates 8 MB for each encoder, and a new encoder after each garbage collection:
// two thirds of all memory that an object needed.
type codec struct {
	*parquetzstd.Codec // reads

	zstd *zstd.Encoder
}

// encoderWindow holds a page, which ends with the item that exceeds pageSize. What a larger page
// repeats over a longer distance is not found.
const encoderWindow = 1 << 20

func newCodec() (*codec, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false), zstd.WithWindowSize(encoderWindow))
	if err != nil {
		return nil, err
	}
	return &codec{Codec: new(parquetzstd.Codec), zstd: z}, nil
}

// Encode compresses a page.
func (c *codec) Encode(dst, src []byte) ([]byte, error) { return c.zstd.EncodeAll(src, dst[:0]), nil }

func (p *parquetWriter) add(e *transform.Event, id, item []byte) error {
	v := p.values
	v[columnID] = parquet.ByteArrayValue(id)
	v[columnDeletedAt] = parquet.Int64Value(int64(e.Created))
	v[columnSource] = parquet.ByteArrayValue(bytesOf(e.Source))
	v[columnStream] = parquet.ByteArrayValue(bytesOf(e.Stream))
	v[columnShard] = parquet.ByteArrayValue(bytesOf(e.Shard))
	v[columnSequence] = parquet.ByteArrayValue(bytesOf(string(e.Sequence)))
	v[columnVersion] = parquet.Int64Value(int64(e.Version))
	v[columnKeys] = parquet.ByteArrayValue(bytesOf(e.Subject))
	v[columnItem] = parquet.NullValue()
	if item != nil {
		v[columnItem] = parquet.ByteArrayValue(item)
	}
	v[columnExpires] = parquet.NullValue()
	if seconds, err := strconv.ParseInt(e.Expiry, 10, 64); err == nil {
		v[columnExpires] = parquet.Int64Value(seconds)
	}
	last := len(v) - 1
	v[last] = parquet.NullValue()
	if p.convert != nil {
		clear(v[columnsRead:last])
		if item != nil {
			list, err := p.convert.convert(item, v[columnsRead:last])
			if err != nil {
				return err
			}
			if list != nil {
				v[last] = parquet.ByteArrayValue(list)
			}
		}
	}
	return p.write()
}

// write writes the values as a row, which begins a new row group where the old one is full.
func (p *parquetWriter) write() error {
	size := 0
	for _, v := range p.values {
		size += 9 // what a value takes at most besides its bytes
		if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
			size += len(v.ByteArray())
		}
	}
	if p.rows > 0 && (p.bytes+size > maxGroup || p.rows == maxRows) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.rows++
	p.bytes += size
	for i, c := range p.columns {
		v := p.values[i]
		level := 0
		if i >= columnItem && !v.IsNull() { // the columns from item on are nullable
			level = 1
		}
		p.one[0] = v.Level(0, level, i)
		if _, err := c.WriteRowValues(p.one[:]); err != nil {
			return err
		}
	}
	return nil
}

// flush ends the row group.
func (p *parquetWriter) flush() error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	p.groups = append(p.groups, p.out.cut())
	p.rows, p.bytes = 0, 0
	return nil
}

func (p *parquetWriter) close(f *Footer) error {
	if p.rows > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	f.groups = p.groups
	b, err := f.MarshalJSON()
	if err != nil {
		return err
	}
	p.w.SetKeyValueMetadata(metaFooter, string(b))
	p.w.SetKeyValueMetadata(metaCheck, noCheck)
	p.out.end = new(bytes.Buffer)
	if err := p.w.Close(); err != nil {
		return err
	}
	return p.out.close()
}

// sealed adds checksums to what parquet-go writes.
type sealed struct {
	w     *bufio.Writer
	group group
	end   *bytes.Buffer // what follows the row groups, with the metadata
}

func (s *sealed) Write(p []byte) (int, error) {
	if s.end != nil {
		return s.end.Write(p)
	}
	s.group.Size += int64(len(p))
	s.group.CRC = crc32.Update(s.group.CRC, crc32.IEEETable, p)
	return s.w.Write(p)
}

func (s *sealed) cut() group {
	g := s.group
	s.group = group{}
	return g
}

// close writes the end with the checksum of the metadata.
func (s *sealed) close() error {
	end := s.end.Bytes()
	n := len(end) - 8
	meta := end[n-int(binary.LittleEndian.Uint32(end[n:])) : n]
	at := findCheck(meta)
	if at < 0 {
		return errFooter
	}
	copy(meta[at:], checkOf(meta))
	if _, err := s.w.Write(end); err != nil {
		return err
	}
	return s.w.Flush()
}

// noCheck stands for the checksum while it is computed.
const noCheck = "00000000"

func checkOf(meta []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(meta)) }

// findCheck returns the place of the checksum in the metadata, or -1. Between the key and the
// value, which has 8 bytes, are the value's type and its length in Thrift's compact form; JSON has
// no such bytes.
func findCheck(meta []byte) int {
	key := []byte(metaCheck + "\x18\x08")
	at := bytes.Index(meta, key) + len(key)
	if at < len(key) || at+len(noCheck) > len(meta) {
		return -1
	}
	return at
}

// verifyMetadata reads the metadata and compares its checksum, before the library uses its sizes
// and offsets.
func verifyMetadata(t *window, size int64) error {
	var end [8]byte
	if _, err := t.ReadAt(end[:], size-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if n > min(size-8, maxFooter) {
		return errFooter
	}
	meta := make([]byte, n)
	if _, err := t.ReadAt(meta, size-8-n); err != nil {
		return err
	}
	at := findCheck(meta)
	if at < 0 {
		return errFooter
	}
	check := string(meta[at : at+len(noCheck)])
	copy(meta[at:], noCheck)
	if check != checkOf(meta) {
		return errFooter
	}
	return nil
}

// openParquet opens an object; only its end is read.
func openParquet(t *window, size int64) (*parquet.File, *Footer, error) {
	if err := verifyMetadata(t, size); err != nil {
		return nil, nil, err
	}
	file, err := parquet.OpenFile(t, size, parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, nil, err
	}
	if err := checkSchema(file.Schema()); err != nil {
		return nil, nil, err
	}
	text, ok := file.Lookup(metaFooter)
	if !ok {
		return nil, nil, errFooter
	}
	f := new(Footer)
	if err := f.UnmarshalJSON([]byte(text)); err != nil {
		return nil, nil, err
	}
	if len(f.groups) != len(file.RowGroups()) {
		return nil, nil, errFooter
	}
	return file, f, nil
}
