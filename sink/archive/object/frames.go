package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tailrace-cdc/replicator/change"
)

// frames reads JSON lines, one frame at a time.
type frames struct {
	r      io.ReaderAt
	sizes  []int64 // of the frames that are left
	at     int64
	zstd   *zstd.Decoder
	packed []byte
	lines  []byte
	rest   []byte // of lines
	texts  []byte // unescaped subjects
}

// maxFrame is what a frame may unpack to: a full one and a line of an item with many escapes.
const maxFrame = frameSize + 32<<20

func newFrames(r io.ReaderAt, f *Footer) (*frames, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, err
	}
	return &frames{r: r, sizes: f.frames, zstd: z}, nil
}

// read sets rows and returns how many: 0 at the end. They are valid until the next call.
func (f *frames) read(rows []row) (int, error) {
	if len(f.rest) == 0 {
		if len(f.sizes) == 0 {
			return 0, nil
		}
		if err := f.load(); err != nil {
			return 0, fmt.Errorf("read frame at %d: %w", f.at, err)
		}
	}
	f.texts = f.texts[:0]
	n := 0
	for ; n < len(rows) && len(f.rest) > 0; n++ {
		line, rest, ok := bytes.Cut(f.rest, []byte{'\n'})
		if !ok {
			return 0, errLine
		}
		f.rest = rest
		if err := f.parse(&rows[n], line); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (f *frames) load() (err error) {
	size := f.sizes[0]
	f.packed = append(f.packed[:0], make([]byte, size)...)
	if _, err := f.r.ReadAt(f.packed, f.at); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if f.lines, err = f.zstd.DecodeAll(f.packed, f.lines[:0]); err != nil {
		return err
	}
	if len(f.lines) == 0 {
		return errLine
	}
	f.rest, f.sizes, f.at = f.lines, f.sizes[1:], f.at+size
	return nil
}

func (f *frames) release() { f.zstd.Close() }

var errLine = errors.New("line is not an event")

// parse reads a line that appendEvent wrote.
func (f *frames) parse(r *row, line []byte) error {
	*r = row{}
	var kind []byte
	err := change.Members(line, func(name, value []byte) (err error) {
		switch string(name) {
		case "id":
			r.id, err = f.text(value)
		case "source":
			r.source, err = f.text(value)
		case "subject":
			r.keys, err = f.text(value)
		case "type":
			kind, err = f.text(value)
		case "data":
			err = r.data(value)
		}
		return err
	})
	if err == nil && string(kind) != EventExpired && string(kind) != EventDeleted {
		err = errLine
	}
	if err == nil {
		err = r.splitID()
	}
	return err
}

// data reads the event's data.
func (r *row) data(b []byte) error {
	return change.Members(b, func(name, value []byte) (err error) {
		switch string(name) {
		case "item":
			if string(value) != null {
				r.item = value
			}
		case "version":
			r.version, err = strconv.ParseInt(stringOf(value), 10, 64)
		case "created":
			r.created, err = strconv.ParseInt(stringOf(value), 10, 64)
		case "expiry":
			if string(value) != null {
				r.expiry = value
			}
		}
		return err
	})
}

// text returns the text of a JSON string.
func (f *frames) text(raw []byte) ([]byte, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, errLine
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, nil
	}
	from := len(f.texts)
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			break
		}
		f.texts = append(f.texts, raw[:i]...)
		switch raw = raw[i+1:]; {
		case len(raw) == 0:
			return nil, errLine
		case raw[0] == 'u':
			if len(raw) < 5 {
				return nil, errLine
			}
			c, err := strconv.ParseUint(stringOf(raw[1:5]), 16, 8) // only control characters are written so
			if err != nil {
				return nil, err
			}
			f.texts = append(f.texts, byte(c))
			raw = raw[5:]
		default:
			k := strings.IndexByte(`"\ntr`, raw[0])
			if k < 0 {
				return nil, errLine
			}
			f.texts = append(f.texts, "\"\\\n\t\r"[k])
			raw = raw[1:]
		}
	}
	f.texts = append(f.texts, raw...)
	return f.texts[from:], nil
}

// openLines reads the footer of JSON lines; only the end of the object is read.
func openLines(r io.ReaderAt, size int64) (*Footer, error) {
	tail := make([]byte, tailSize)
	if _, err := r.ReadAt(tail, size-int64(tailSize)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[4:]))
	start := size - int64(tailSize) - n - int64(headSize)
	if start < 0 || n > maxFooter {
		return nil, errFooter
	}
	frame := make([]byte, int64(headSize)+n)
	if _, err := r.ReadAt(frame, start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text := frame[headSize:]
	if crc32.ChecksumIEEE(text) != binary.LittleEndian.Uint32(tail) ||
		binary.LittleEndian.Uint32(frame) != skippable ||
		int64(binary.LittleEndian.Uint32(frame[4:])) != n+int64(tailSize) {
		return nil, errFooter
	}
	f := new(Footer)
	if err := f.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	for _, size := range f.frames {
		if size <= 0 || size > start {
			return nil, errFooter
		}
		start -= size
	}
	if start != 0 {
		return nil, errFooter
	}
	return f, nil
}

// maxFooter bounds what a damaged object makes us read.
const maxFooter = 64 << 20
