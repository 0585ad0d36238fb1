package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const suffix = ".jsonl"

// files appends lines to one file per UTC day. It opens a file for each batch, which costs little compared with the
// fsync, and so cuts off an incomplete line that a crash or full disk has left.
type files struct {
	dir  string
	log  *zap.Logger
	lock *os.File

	mu sync.Mutex // held while writing, so that the lines of a batch are not mixed with others
}

// openFiles locks the directory and repairs its files.
func openFiles(dir string, log *zap.Logger) (*files, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	// Repairing cuts off incomplete lines, so no other process may be writing one.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = fmt.Errorf("lock %s (is another process writing there?): %w", lock.Name(), err)
		return nil, errors.Join(err, lock.Close())
	}
	f := &files{dir: dir, log: log, lock: lock}
	if err := f.repairAll(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

func (f *files) close() error { return f.lock.Close() }

func (f *files) repairAll() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		file, err := f.openRepaired(e.Name())
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// write appends the lines to the files of their days and syncs them.
func (f *files) write(lines []line) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	days := map[string]*bytes.Buffer{}
	var order []string
	for _, l := range lines {
		b := days[l.day]
		if b == nil {
			b = new(bytes.Buffer)
			days[l.day], order = b, append(order, l.day)
		}
		b.Write(l.body)
		b.WriteByte('\n')
	}
	slices.Sort(order)
	for _, day := range order {
		if err := f.append(day+suffix, days[day].Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) append(name string, data []byte) error {
	file, err := f.openRepaired(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// openRepaired opens a day's file to append lines, after cutting off an incomplete one. The directory entry of a new
// file is made durable at once.
func (f *files) openRepaired(name string) (*os.File, error) {
	path := filepath.Join(f.dir, name)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		if file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640); err == nil {
			err = syncDir(f.dir)
		}
	}
	if err == nil {
		err = f.repair(file)
	}
	if err != nil && file != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, err
}

// repair cuts off a line without a newline. It was never acknowledged, so its event is written again.
func (f *files) repair(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	whole, err := lineEnd(file, size)
	if err != nil || whole == size {
		return err
	}
	f.log.Warn("cutting an incomplete line off an archive file",
		zap.String("file", file.Name()), zap.Int64("bytes", size-whole))
	if err := file.Truncate(whole); err != nil {
		return fmt.Errorf("fix %s: %w", file.Name(), err)
	}
	return file.Sync()
}

// lineEnd returns the offset after the last newline of a file with this size, or 0 if it has none.
func lineEnd(file io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if end == size && from < end-1 {
			// Read the last byte alone: it nearly always is the newline.
			from, part = end-1, buf[:1]
		}
		if _, err := file.ReadAt(part, from); err != nil {
			return 0, fmt.Errorf("read end of file: %w", err)
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
