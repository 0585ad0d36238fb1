package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/host"
)

// Volume is a file system: bytes available to this process, and bytes in total.
type Volume = host.Volume

// VolumeOf reads the state of the file system of a directory, or of its nearest parent that exists.
func VolumeOf(dir string) (Volume, error) {
	v, err := host.VolumeOf(dir)
	if err != nil {
		return Volume{}, fmt.Errorf("look at the volume of the queue: %w", err)
	}
	return v, nil
}

// Writable returns why an embedded store cannot be made or written in dir; nil when it can. It
// changes nothing.
func Writable(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", at)
		}
		if err := host.CheckWritable(at); err != nil {
			return fmt.Errorf("write into %s: %w", at, err)
		}
		return nil
	}
}
