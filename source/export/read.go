package export

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

// maxLine is the longest line that is read: two images of 400 KB of the smallest values, ten bytes
// of JSON for each.
const maxLine = 64 << 20

// ReadFile calls f with the lines of data file i behind line number after; 0 for all. Heartbeats are
// left out. It stops at f's first error and returns that as it is. No line is handed out before the
// whole file has been compared with its checksum. Other errors have a class: a Transient one is
// worth another call, after the last line that f took.
func (e *Export) ReadFile(ctx context.Context, i int, after int64, f func(Line) error) error {
	file := e.Files[i]
	op := "read " + e.store.url(file.Key)
	if file.Size == 0 { // a partition without items
		return wrap(ctx, op, e.checkCount(file, 0))
	}
	spool, err := e.copyToScratch(ctx, file)
	if err != nil {
		return wrap(ctx, op, err)
	}
	defer func() { _ = spool.Close() }()
	z, err := gzip.NewReader(bufio.NewReaderSize(spool, 1<<16))
	if err != nil {
		return wrap(ctx, op, refused(failure.Fatal, again, "unpack: %w", err))
	}
	lines := lineReader{r: bufio.NewReaderSize(z, 1<<18)}
	for n := int64(0); ; {
		if ctx.Err() != nil {
			return wrap(ctx, op, context.Cause(ctx))
		}
		text, err := lines.next()
		if errors.Is(err, io.EOF) {
			return wrap(ctx, op, e.checkCount(file, n))
		}
		if err != nil {
			return wrap(ctx, op, refused(failure.Fatal, again, "unpack line %d: %w", n+1, err))
		}
		if n++; n <= after {
			continue
		}
		line, err := parseLine(text, e.Kind)
		if err != nil {
			return wrap(ctx, op, refused(failure.Fatal, again, "line %d: %w", n, err))
		}
		if line.N = n; e.isHeartbeat(&line) {
			continue
		}
		if err := f(line); err != nil {
			return err
		}
	}
}

// isHeartbeat reports whether a line is about a heartbeat. Where a heartbeat was replaced by
// another item, it is not.
func (e *Export) isHeartbeat(l *Line) bool {
	for _, item := range [][]byte{l.Item, l.New, l.Old} {
		if item != nil {
			return e.heartbeats.Item(item)
		}
	}
	return false
}

// checkCount returns an error if the number of lines of a file differs from its manifest.
func (e *Export) checkCount(file File, lines int64) error {
	if lines == file.Items {
		return nil
	}
	return refused(failure.Fatal, again, "the file has %d items, its manifest says %d", lines, file.Items)
}

// copyToScratch copies a data file to a file without a name, and compares it with its checksum on
// the way.
func (e *Export) copyToScratch(ctx context.Context, file File) (*os.File, error) {
	spool, err := host.Unnamed(e.scratch, "tailrace-export-*")
	if err != nil {
		return nil, noScratch(e.scratch, file.Size, err)
	}
	err = e.fetch(ctx, file, spool)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = spool.Close()
		return nil, err
	}
	return spool, nil
}

// fetch copies a data file to spool. A read that makes no progress is given up.
func (e *Export) fetch(ctx context.Context, file File, spool *os.File) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(e.silence, func() { cancel(fmt.Errorf("no bytes for %v", e.silence)) })
	defer watch.Stop()
	r, size, err := e.store.open(ctx, file.Key)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	sum := md5.New()
	var copied int64
	for buf := make([]byte, 1<<18); ; {
		n, err := r.Read(buf)
		watch.Reset(e.silence)
		_, _ = sum.Write(buf[:n]) // a hash never fails
		copied += int64(n)
		if _, err := spool.Write(buf[:n]); err != nil {
			return noScratch(e.scratch, file.Size, err)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			err = errors.Join(context.Cause(ctx), err)
			return refused(failure.Transient, "", "after %d of %d bytes: %w", copied, size, err)
		}
	}
	if copied != size {
		return refused(failure.Transient, "", "%d of %d bytes came", copied, size)
	}
	if actual := base64.StdEncoding.EncodeToString(sum.Sum(nil)); actual != file.MD5 {
		return refused(failure.Fatal, again,
			"the file was altered or cut: its %d bytes have the MD5 %s, the manifest says %s", copied, actual, file.MD5)
	}
	return nil
}

// lineReader reads lines of any length up to maxLine, and skips empty ones.
type lineReader struct {
	r    *bufio.Reader
	long []byte
}

// next returns the next line, valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	for {
		text, err := l.read()
		if text = bytes.TrimSpace(text); len(text) > 0 || err != nil {
			if len(text) > 0 && errors.Is(err, io.EOF) {
				err = nil // the last line needs no end
			}
			return text, err
		}
	}
}

func (l *lineReader) read() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case err == nil && len(l.long) == 0:
			return part, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
			return l.long, err
		case len(l.long)+len(part) > maxLine:
			return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
		}
		l.long = append(l.long, part...)
	}
}
