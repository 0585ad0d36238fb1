package object

import (
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/tailrace-cdc/replicator/transform"
)

const (
	// maxGroup is the size of a row group before compression. A row group is held in memory, compressed while it is
	// written and whole while it is read.
	maxGroup = 24 << 20
	// maxRows bounds what the values of a row group take in memory besides their bytes.
	maxRows = 100_000
	// pageSize is large enough for zstd to find what repeats from one item to the next.
	pageSize = 512 << 10
)

// The keys of the footer in the metadata.
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

	rows, bytes int // of the row group
}

func newParquetWriter(w io.Writer, o Options) *parquetWriter {
	columns := sorted(o.Columns)
	p := &parquetWriter{values: make([]parquet.Value, columnsRead+len(columns)+1)}
	p.w = parquet.NewGenericWriter[any](w, schemaOf(columns),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.DataPageVersion(1),
		parquet.PageBufferSize(pageSize),
		parquet.CreatedBy("tailrace", strconv.Itoa(Version), ""),
		// Bounds of items and keys would help nobody to skip a page.
		parquet.SkipPageBounds("item"), parquet.SkipPageStatistics("item"),
	)
	p.columns = p.w.ColumnWriters()
	if len(columns) > 0 {
		p.convert = newConverter(columns)
	}
	return p
}

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
		if err := p.w.Flush(); err != nil {
			return err
		}
		p.rows, p.bytes = 0, 0
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

func (p *parquetWriter) close(f *Footer) error {
	b, err := f.MarshalJSON()
	if err != nil {
		return err
	}
	p.w.SetKeyValueMetadata(metaFooter, string(b))
	p.w.SetKeyValueMetadata(metaCheck, checkOf(b))
	return p.w.Close()
}

func checkOf(footer []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(footer)) }

// openParquet opens an object; only its end is read.
func openParquet(r io.ReaderAt, size int64) (*parquet.File, *Footer, error) {
	file, err := parquet.OpenFile(r, size, parquet.SkipMagicBytes(true), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true), parquet.ReadBufferSize(1<<20))
	if err != nil {
		return nil, nil, err
	}
	if err := checkSchema(file.Schema()); err != nil {
		return nil, nil, err
	}
	text, ok := file.Lookup(metaFooter)
	check, _ := file.Lookup(metaCheck)
	if !ok || !strings.EqualFold(check, checkOf([]byte(text))) {
		return nil, nil, errFooter
	}
	f := new(Footer)
	if err := f.UnmarshalJSON([]byte(text)); err != nil {
		return nil, nil, err
	}
	return file, f, nil
}
