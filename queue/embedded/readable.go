package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadErr returns the error of reading what the store holds of a stream; nil if all of its files
// can be read, whatever is in them, or there are none. It reads them all.
//
// Rule 13: the server's answer to a request for a message that it cannot read is that there is
// none. The files show more: an input/output error is no damage.
func ReadErr(dir, stream string) error {
	folders, err := streamFolders(dir, stream)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := readAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// readAll returns the error of reading the files of a stream's folder.
func readAll(folder string) error {
	for _, sub := range []string{folder, filepath.Join(folder, "msgs")} {
		entries, err := os.ReadDir(sub)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			if err := readFile(filepath.Join(sub, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads a file to its end; a file that is gone meanwhile has no error.
func readFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}

// tryWriting returns the error of writing a file to the store's volume, down to the disk.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return fmt.Errorf("try to write: %w", err)
	}
	_, err = f.Write(make([]byte, 1<<12))
	err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	if err != nil {
		return fmt.Errorf("try to write: %w", err)
	}
	return nil
}
