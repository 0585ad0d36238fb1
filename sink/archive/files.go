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

// files appends lines to one file per UTC day. A file is opened for each batch: beside the fsync that costs
// nothing, and each opening mends what an earlier crash or full disk left behind.
type files struct {
	dir  string
	log  *zap.Logger
	lock *os.File

	mu sync.Mutex // one writer at a time: a batch's lines stay together
}

func openFiles(dir string, log *zap.Logger) (*files, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	// Mending cuts torn lines off, so it must not see another process's line half-written.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s (is another process writing there?): %w", lock.Name(), err), lock.Close())
	}
	f := &files{dir: dir, log: log, lock: lock}
	if err := f.mendAll(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

func (f *files) close() error { return f.lock.Close() }

func (f *files) mendAll() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		file, err := f.open(e.Name())
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
	file, err := f.open(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// open gives a day's file, ready to append whole lines. A new file's name is made durable at once.
func (f *files) open(name string) (*os.File, error) {
	path := filepath.Join(f.dir, name)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		if file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640); err == nil {
			err = syncDir(f.dir)
		}
	}
	if err == nil {
		err = f.mend(file)
	}
	if err != nil && file != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, err
}

// mend cuts off a line without its newline: it was never acknowledged, so its event comes again.
func (f *files) mend(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	whole, err := lastNewline(file, size)
	if err != nil || whole == size {
		return err
	}
	f.log.Warn("cutting a torn line off an archive file", zap.String("file", file.Name()), zap.Int64("bytes", size-whole))
	if err := file.Truncate(whole); err != nil {
		return fmt.Errorf("mend %s: %w", file.Name(), err)
	}
	return file.Sync()
}

// lastNewline gives the offset after the last newline of a file of this size, 0 if it has none.
func lastNewline(file io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(buf)))
		part := buf[:end-from]
		if end == size && from < end-1 {
			// Nearly always the last byte is the answer.
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
