package resync

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source/export"
)

// exported reads the files of an export, one after the other. All its items have the same version:
// a minute below the moment that the export shows.
//
// Its items are older than much of what the stream has brought already. Those changes keep their
// rows, because their versions are higher, and so do tombstones. What the stream brings later must
// be newer than the export, or a reader would see an item of the export and then an older change of
// it: so everything up to that moment must be applied before the first item is written. It does not
// matter when the bytes are read; they never change. A change that was lost between the export and
// now is the one thing that could make them wrong, so every reading compares the export with the
// gaps, and what was read is written within minutes.
type exported struct {
	o    *Options
	file *export.Export
	at   change.Millis // the moment whose items the export has

	limit func() int // items of a page; 0: any number

	mu   sync.Mutex // covers open; a file is used by the reader that took its part
	open map[int]*openFile
}

// openFile is a file that is being read.
type openFile struct {
	after string // position of what is read next
	next  func() (export.Line, error, bool)
	stop  func()
}

const (
	exportReaders = 2
	exportBatch   = 512 << 10 // bytes of items that become one page
)

func newExported(o *Options, file *export.Export, limit func() int) *exported {
	return &exported{o: o, file: file, at: file.Time, limit: limit, open: map[int]*openFile{}}
}

func (*exported) readers() int { return exportReaders }

func (*exported) due(*batch) time.Time { return time.Time{} } // the first file that is not read goes on

// newerExport is the hint for an export that cannot be copied any more.
const newerExport = "; take a newer export: `replicator copy cancel`, then `replicator repair --table NAME`"

// pauseError pauses the copy.
type pauseError struct{ why string }

func (e *pauseError) Error() string { return e.why }

func (x *exported) read(ctx context.Context, p *part, from string) (*batch, func(), error) {
	if why := protocol.CheckExport(x.at, x.o.Exports.Cover, x.o.GapsUntil(), x.o.Now()); why != "" {
		return nil, nil, &pauseError{why: why + newerExport}
	}
	f, err := x.openAt(ctx, p.Number, from)
	if err != nil {
		return nil, nil, err
	}
	b := &batch{
		after: from, version: max(protocol.VersionOfExport(x.at), change.LowestRead(x.o.Floor)), requested: x.o.Now(),
		proof: x.at + answerMargin,
		at:    time.Now(),
	}
	limit := x.limit()
	for size := 0; size < exportBatch && (limit == 0 || len(b.items) < limit); {
		line, err, ok := f.next()
		if !ok {
			b.last = true
			break
		}
		if err != nil {
			x.closeFile(p.Number)
			return nil, nil, err
		}
		item := append([]byte(nil), line.Item...)
		b.items, b.after = append(b.items, item), strconv.FormatInt(line.N, 10)
		size += len(item)
	}
	if f.after = b.after; b.last {
		x.closeFile(p.Number)
	}
	return b, func() {}, nil
}

// openAt returns a file at a position. It goes on where the last batch ended, or is opened again.
func (x *exported) openAt(ctx context.Context, i int, from string) (*openFile, error) {
	x.mu.Lock()
	f := x.open[i]
	x.mu.Unlock()
	if f != nil && f.after == from {
		return f, nil
	}
	x.closeFile(i)
	var after int64
	if from != "" {
		var err error
		if after, err = strconv.ParseInt(from, 10, 64); err != nil {
			return nil, fmt.Errorf("mark of file %d: %w", i, err)
		}
	}
	f = &openFile{after: from}
	f.next, f.stop = iter.Pull2(func(yield func(export.Line, error) bool) {
		err := x.file.ReadFile(ctx, i, after, func(l export.Line) error {
			if !yield(l, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(export.Line{}, err)
		}
	})
	x.mu.Lock()
	x.open[i] = f
	x.mu.Unlock()
	return f, nil
}

var errStopped = errors.New("stopped reading")

func (x *exported) closeFile(i int) {
	x.mu.Lock()
	f := x.open[i]
	delete(x.open, i)
	x.mu.Unlock()
	if f != nil {
		f.stop()
	}
}

func (x *exported) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.open {
		f.stop()
	}
}

// CopyOf returns the entry that begins a copy of an export, or completes one that was asked for.
func CopyOf(c checkpoint.Copy, e *export.Export) *checkpoint.Copy {
	c.Export, c.Parts, c.Version, c.Items = e.URL, len(e.Files), protocol.VersionOfExport(e.Time), e.Items
	c.Unconfirmed = e.Wholeness != export.Whole
	return &c
}
