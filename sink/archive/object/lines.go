package object

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// frameSize is the size of a frame before compression. A frame is held in memory, so that its
// checksum is verified before an event is read from it.
const frameSize = 4 << 20

// The CloudEvents types. A subscriber of the subject distinguishes a user's deletion from an expiry
// by them: the class is in the names of objects only.
const (
	EventExpired = "dev.tailrace.item.expired"
	EventDeleted = "dev.tailrace.item.deleted" // of class user
)

// eventType returns the CloudEvents type of the events of a class.
func eventType(c transform.EventClass) string {
	if c == transform.ClassUser {
		return EventDeleted
	}
	return EventExpired
}

// lineWriter writes JSON lines.
type lineWriter struct {
	w      io.Writer
	zstd   *zstd.Encoder
	lines  []byte
	frame  []byte
	frames []int64
	source reference
}

func newLineWriter(w io.Writer) (*lineWriter, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	return &lineWriter{w: w, zstd: z}, nil
}

func (l *lineWriter) add(e *transform.Event, id, item []byte) error {
	l.lines = append(appendEvent(l.lines, e, id, item, l.source.of(e.Source)), '\n')
	if len(l.lines) < frameSize {
		return nil
	}
	return l.flush()
}

func (l *lineWriter) flush() error {
	if len(l.lines) == 0 {
		return nil
	}
	l.frame = l.zstd.EncodeAll(l.lines, l.frame[:0])
	l.lines = l.lines[:0]
	l.frames = append(l.frames, int64(len(l.frame)))
	_, err := l.w.Write(l.frame)
	return err
}

func (l *lineWriter) close(f *Footer) error {
	if err := l.flush(); err != nil {
		return err
	}
	f.frames = l.frames
	text, err := f.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = l.w.Write(appendTail(nil, text))
	return err
}

const (
	skippable = 0x184D2A57
	tailMagic = "TRFOOT01"
	tailSize  = 4 + 4 + len(tailMagic) // what follows the footer
	headSize  = 4 + 4                  // what stands before it
)

// appendTail appends the skippable frame that holds the footer, see the package.
func appendTail(dst, footer []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, skippable)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(footer)+tailSize))
	dst = append(dst, footer...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(footer))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(footer)))
	return append(dst, tailMagic...)
}

// AppendEvent appends an event in CloudEvents' structured JSON form, as one line without its end.
// The data is JSON, in the member data as it is (CloudEvents 1.0, JSON event format, section 3.1).
// It is the same on every replay.
func AppendEvent(dst []byte, e *transform.Event) ([]byte, error) {
	item, _, err := compact(e.Item, nil)
	if err != nil {
		return nil, err
	}
	return appendEvent(dst, e, []byte(e.ID()), item, escaped(e.Source)), nil
}

func appendEvent(dst []byte, e *transform.Event, id, item []byte, source string) []byte {
	dst = change.AppendString(append(dst, `{"specversion":"1.0","id":`...), stringOf(id))
	dst = change.AppendString(append(dst, `,"source":`...), source)
	dst = append(append(append(dst, `,"type":"`...), eventType(e.Class)...), `","subject":`...)
	dst = change.AppendString(dst, e.Subject)
	dst = append(dst, `,"datacontenttype":"application/json","time":"`...)
	dst = e.Time().AppendFormat(dst, time.RFC3339Nano)
	dst = change.AppendString(append(dst, `","data":{"schema":1,"table":`...), e.Table)
	dst = append(append(dst, `,"keys":`...), e.Subject...)
	dst = append(dst, `,"item":`...)
	if item == nil {
		dst = append(dst, null...)
	} else {
		dst = append(dst, item...)
	}
	dst = strconv.AppendInt(append(dst, `,"version":`...), int64(e.Version), 10)
	dst = strconv.AppendInt(append(dst, `,"created":`...), int64(e.Created), 10)
	dst = append(dst, `,"expiry":`...)
	if e.Expiry == "" {
		dst = append(dst, null...)
	} else {
		dst = append(dst, e.Expiry...)
	}
	return append(dst, '}', '}')
}

const null = "null"

// reference caches the escaped form of a source: the source is nearly always the same as in the
// event before.
type reference struct{ raw, escaped string }

func (r *reference) of(source string) string {
	if r.raw != source {
		r.raw, r.escaped = source, escaped(source)
	}
	return r.escaped
}

// escaped returns a source as the URI reference that CloudEvents requires.
func escaped(source string) string {
	if u, err := url.Parse(source); err == nil {
		return u.String()
	}
	return url.PathEscape(source)
}
