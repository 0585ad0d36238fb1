package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// Format of an object.
type Format string

// The formats.
const (
	Parquet   Format = "parquet"
	JSONLines Format = "json"
)

// Extension returns how names of objects end.
func (f Format) Extension() string {
	if f == JSONLines {
		return "jsonl.zst"
	}
	return string(f)
}

// FormatOf returns the format of an object by its name.
func FormatOf(name string) Format {
	if strings.HasSuffix(name, "."+JSONLines.Extension()) {
		return JSONLines
	}
	return Parquet
}

// Options of Write.
type Options struct {
	Format   Format
	Columns  []Column // Parquet only; valid by ValidateColumns
	Pipeline string
}

// Hash returns the hash of what changes the bytes of an object with the same events: format and
// columns.
func (o Options) Hash() string {
	b, _ := json.Marshal(struct { // marshalling strings cannot fail
		Version int
		Format  Format
		Columns []Column
	}{Version, o.Format, sorted(o.Columns)})
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

var errFooter = errors.New("footer is absent or damaged")

type encoder interface {
	add(e *transform.Event, id, item []byte) error
	close(f *Footer) error
}

// Write writes an object. The caller sets the footer's part, coverage, First and Last; Write sets
// the rest. An event outside of part or coverage is an error, and so is one of the iterator. An
// event must be valid until the next one is asked for. Nothing is synced.
func Write(w io.Writer, o Options, foot *Footer, events iter.Seq2[*transform.Event, error]) error {
	enc, err := newEncoder(w, o)
	if err != nil {
		return err
	}
	return writeEvents(enc, o, foot, events)
}

func writeEvents(enc encoder, o Options, foot *Footer, events iter.Seq2[*transform.Event, error]) error {
	sums := newDigest()
	foot.Version, foot.Format, foot.Pipeline, foot.Config, foot.Events = Version, o.Format, o.Pipeline, o.Hash(), 0
	var id, scratch []byte
	for e, err := range events {
		if err != nil {
			return err
		}
		id = appendID(id[:0], e)
		var item []byte
		if item, scratch, err = compact(e.Item, scratch); err == nil {
			err = foot.admits(e, id)
		}
		if err == nil {
			sums.add(id, sumOf(item))
			foot.Events++
			err = enc.add(e, id, item)
		}
		if err != nil {
			return fmt.Errorf("write event %s: %w", id, err)
		}
	}
	foot.Digest = sums.String()
	if err := enc.close(foot); err != nil {
		return fmt.Errorf("write footer: %w", err)
	}
	return nil
}

func newEncoder(w io.Writer, o Options) (encoder, error) {
	switch o.Format {
	case Parquet:
		if problems := ValidateColumns(o.Columns); len(problems) > 0 {
			return nil, problems[0]
		}
		return newParquetWriter(w, o)
	case JSONLines:
		return newLineWriter(w)
	}
	return nil, fmt.Errorf("unknown format %q", o.Format)
}

// admits returns an error if the event does not belong into the object.
func (f *Footer) admits(e *transform.Event, id []byte) error {
	r := row{id: id}
	if err := r.splitID(); err != nil || string(r.stream) != e.Stream || string(r.shard) != e.Shard {
		return errID
	}
	if e.Subject == "" || e.Source == "" {
		return errors.New("event has no key or no source")
	}
	if e.Table != f.Part.Table || e.Class != f.Part.Class || layout.HourOf(e.Time()) != f.Part.Hour {
		return fmt.Errorf("event of %s, %s at %s does not belong into %s", e.Table, e.Class, e.Time(), f.Part.Prefix())
	}
	if !f.Coverage.Contains(coverage.Key(e.Stream, e.Shard), e.Sequence) {
		return errors.New("event is outside of the coverage")
	}
	return nil
}

// ReadFooter returns the footer; only the end of the object is read. Error: *NewerVersionError.
func ReadFooter(r io.ReaderAt, size int64) (*Footer, error) {
	_, _, foot, err := open(r, size)
	return foot, err
}

// open returns the footer, and in Parquet the file and what it is read through.
func open(r io.ReaderAt, size int64) (file *parquet.File, t *window, foot *Footer, err error) {
	err = safely(func() (err error) {
		if size < int64(tailSize) {
			return errFooter
		}
		t = &window{ReaderAt: r}
		n := min(size, 64<<10)
		if err := t.load(size-n, int(n)); err != nil {
			return err
		}
		switch {
		case bytes.HasSuffix(t.data, []byte("PAR1")):
			file, foot, err = openParquet(t, size)
		case bytes.HasSuffix(t.data, []byte(tailMagic)):
			foot, err = openLines(t, size)
		default:
			return errFooter
		}
		return err
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read footer: %w", err)
	}
	return file, t, foot, nil
}

// window keeps a part of an object in memory: its end, so that the footer is read in one request,
// then a row group.
type window struct {
	io.ReaderAt
	from int64
	data []byte
}

// load reads the part.
func (t *window) load(from int64, n int) error {
	if cap(t.data) < n {
		t.data = make([]byte, n)
	}
	t.from, t.data = from, t.data[:n]
	if k, err := t.ReaderAt.ReadAt(t.data, from); k < n {
		return err
	}
	return nil
}

func (t *window) ReadAt(p []byte, at int64) (int, error) {
	if at >= t.from && at+int64(len(p)) <= t.from+int64(len(t.data)) {
		return copy(p, t.data[at-t.from:]), nil
	}
	return t.ReaderAt.ReadAt(p, at)
}

// rows reads batches of rows, see groups.read and frames.read.
type rows interface {
	read(rows []row) (int, error)
	release()
}

// scan iterates the rows of an object, each valid until the next one. In Parquet only the columns
// of forVerify are read, unless full is set.
func scan(r io.ReaderAt, size int64, full bool) (*Footer, iter.Seq2[*row, error], error) {
	file, t, foot, err := open(r, size)
	if err != nil {
		return nil, nil, err
	}
	return foot, func(yield func(*row, error) bool) {
		var from rows
		if file != nil {
			from = newGroups(file, t, foot.groups, full)
		} else if from, err = newFrames(r, foot); err != nil {
			yield(nil, err)
			return
		}
		defer from.release()
		var all [batch]row
		for {
			var n int
			err := safely(func() (err error) { n, err = from.read(all[:]); return err })
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range n {
				if !yield(&all[i], nil) {
					return
				}
			}
			if n == 0 {
				return
			}
		}
	}, nil
}

// Read iterates the events of an object in their order, which the caller may keep. The last element
// is the error, if any. Expiry is lost in Parquet where it is not a whole number of seconds. An
// event is yielded only if its bytes have the right checksum.
func Read(r io.ReaderAt, size int64) iter.Seq2[*transform.Event, error] {
	return func(yield func(*transform.Event, error) bool) {
		foot, all, err := scan(r, size, true)
		if err != nil {
			yield(nil, err)
			return
		}
		var n int64
		for row, err := range all {
			var e *transform.Event
			if err == nil {
				e = row.event(foot)
				n++
				err = foot.admits(e, row.id)
			}
			if err == nil && (!bytes.Equal(appendID(nil, e), row.id) || n > foot.Events) {
				err = errID
			}
			if err != nil {
				yield(nil, fmt.Errorf("read event %d: %w", n, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if n != foot.Events {
			yield(nil, fmt.Errorf("object holds %d events, its footer says %d", n, foot.Events))
		}
	}
}

// safely returns a panic as an error: damaged bytes may make a library panic.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	return f()
}
