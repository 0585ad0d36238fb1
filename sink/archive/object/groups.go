package object

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// groups reads a Parquet object, one row group at a time.
type groups struct {
	file    *parquet.File
	bytes   *window // through which file reads
	sums    []group
	at      int64 // where the next row group begins
	columns []int // those that are read, rising
	next    int   // row group
	rows    int   // left in the row group
	readers [columnsRead]columnReader
	expiry  []byte
}

// forVerify are the columns without which an event cannot be verified.
var forVerify = []int{columnID, columnDeletedAt, columnStream, columnShard, columnSequence, columnItem}

func newGroups(file *parquet.File, bytes *window, sums []group, full bool) *groups {
	g := &groups{file: file, bytes: bytes, sums: sums, columns: forVerify}
	if full {
		g.columns = nil
		for i := range columnsRead {
			g.columns = append(g.columns, i)
		}
	}
	return g
}

// batch is how many rows are read at once.
const batch = 64

// read sets rows, at most batch of them. It returns how many: 0 at the end. They are valid until
// the next call.
func (g *groups) read(rows []row) (int, error) {
	for g.rows == 0 {
		g.release()
		if g.next == len(g.file.RowGroups()) {
			return 0, nil
		}
		if err := g.load(g.file.RowGroups()[g.next]); err != nil {
			return 0, fmt.Errorf("read row group %d: %w", g.next, err)
		}
		g.next++
	}
	n := min(g.rows, len(rows), batch)
	for _, i := range g.columns {
		if err := g.readers[i].fill(n); err != nil {
			return 0, fmt.Errorf("read row group %d: column %d: %w", g.next-1, i, err)
		}
	}
	g.rows -= n
	g.expiry = g.expiry[:0]
	for k := range n {
		g.set(&rows[k], k)
	}
	return n, nil
}

func (g *groups) set(r *row, k int) {
	*r = row{
		id: g.readers[columnID].bytes(k), created: g.readers[columnDeletedAt].values[k].Int64(),
		stream: g.readers[columnStream].bytes(k), shard: g.readers[columnShard].bytes(k),
		sequence: g.readers[columnSequence].bytes(k), item: g.readers[columnItem].bytes(k),
	}
	if len(g.columns) == len(forVerify) {
		return
	}
	r.source, r.keys = g.readers[columnSource].bytes(k), g.readers[columnKeys].bytes(k)
	r.version = g.readers[columnVersion].values[k].Int64()
	if v := g.readers[columnExpires].values[k]; !v.IsNull() {
		from := len(g.expiry)
		g.expiry = strconv.AppendInt(g.expiry, v.Int64(), 10)
		r.expiry = g.expiry[from:]
	}
}

// load reads the columns of a row group. All of them must have as many values as the group has
// rows, or the values of an event would not stand beside each other.
func (g *groups) load(group parquet.RowGroup) error {
	sum := g.sums[g.next]
	if sum.Size < 0 || sum.Size > maxLoaded {
		return errFooter
	}
	if err := g.bytes.load(g.at, int(sum.Size)); err != nil {
		return err
	}
	if crc32.ChecksumIEEE(g.bytes.data) != sum.CRC {
		return errChecksum
	}
	g.at += sum.Size
	rows := group.NumRows()
	for _, i := range g.columns {
		if err := g.readers[i].load(group.ColumnChunks()[i], rows); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	g.rows = int(rows)
	return nil
}

func (g *groups) release() {
	for i := range g.readers {
		g.readers[i].release()
	}
}

// columnReader holds the pages of a column in one row group.
type columnReader struct {
	pages  []parquet.Page
	reader parquet.ValueReader // of pages[0]
	at     int                 // the page that reader reads
	values []parquet.Value
}

var (
	errChecksum = errors.New("wrong checksum")
	errPages    = errors.New("pages hold another number of values than the row group has rows")
)

// maxLoaded bounds what a damaged object makes us read: the size of a row group, with room for one
// large item.
const maxLoaded = maxGroup + 64<<20

func (c *columnReader) load(chunk parquet.ColumnChunk, rows int64) error {
	pages := chunk.Pages()
	defer pages.Close()
	var values, size int64
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c.pages = append(c.pages, p)
		values += p.NumValues()
		if size += p.Size(); values > rows || size > maxLoaded {
			return errPages
		}
	}
	if values != rows {
		return errPages
	}
	return nil
}

// fill reads the next n values, which alias the pages.
func (c *columnReader) fill(n int) error {
	if cap(c.values) < n {
		c.values = make([]parquet.Value, batch)
	}
	c.values = c.values[:n]
	for have := 0; have < n; {
		if c.at == len(c.pages) {
			return errPages
		}
		if c.reader == nil {
			c.reader = c.pages[c.at].Values()
		}
		k, err := c.reader.ReadValues(c.values[have:])
		have += k
		if errors.Is(err, io.EOF) || err == nil && k == 0 {
			c.reader = nil
			c.at++
		} else if err != nil {
			return err
		}
	}
	return nil
}

// bytes returns value k; nil where it is null.
func (c *columnReader) bytes(k int) []byte {
	if c.values[k].IsNull() {
		return nil
	}
	return c.values[k].ByteArray()
}

func (c *columnReader) release() {
	for _, p := range c.pages {
		parquet.Release(p)
	}
	clear(c.pages)
	c.pages, c.reader, c.at = c.pages[:0], nil, 0
}
