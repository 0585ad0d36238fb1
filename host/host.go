package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Volume is a file system: bytes available to this process, and bytes in total.
type Volume struct{ Available, Total uint64 }

// VolumeOf returns the file system of a directory, or of the nearest one above it that exists.
func VolumeOf(dir string) (Volume, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return Volume{}, fmt.Errorf("ask the file system of %s: %w", dir, err)
	}
	for {
		v, err := volume(at)
		if above := filepath.Dir(at); errors.Is(err, fs.ErrNotExist) && above != at {
			at = above
			continue
		}
		if err != nil {
			return Volume{}, fmt.Errorf("ask the file system of %s: %w", at, err)
		}
		return v, nil
	}
}

// Kind is the kind of a lock on a file.
type Kind bool

// The kinds: any number of processes have a Shared lock, or one has the Exclusive one.
const (
	Shared    Kind = false
	Exclusive Kind = true
)

// URLPath returns the path of a file URL for an absolute path of this system.
func URLPath(name string) string {
	slashed := filepath.ToSlash(name)
	if filepath.VolumeName(name) != "" {
		return "/" + slashed // C:\data is file:///C:/data
	}
	return slashed
}

// FilePath returns the path of this system for the path of a file URL.
func FilePath(urlPath string) string {
	if name := strings.TrimPrefix(urlPath, "/"); filepath.VolumeName(filepath.FromSlash(name)) != "" {
		urlPath = name
	}
	return filepath.Clean(filepath.FromSlash(urlPath))
}

// Unnamed makes a file without a name in a directory, which it makes if it is missing; in the
// system's own for "". The file is gone with the process, however that ends.
func Unnamed(dir, pattern string) (*os.File, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
