package audit

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// NoRoom adds exit code and hint to the error of a scratch directory on a full volume, and returns
// other errors as they are.
func NoRoom(dir string, err error) error {
	full := (*extsort.NoRoomError)(nil)
	if err = extsort.NoRoom(dir, err); failure.Known(err) || !errors.As(err, &full) {
		return err
	}
	return failure.With(failure.Unready,
		"make room there, or name a directory on another volume with `scratch:` of the "+
			"configuration or --scratch; then the same command again", err)
}

// ClearScratch removes what a comparison has sorted in a directory, if the error means that the
// volume is full: if the logs are on the same volume, reading pauses until there is room.
func ClearScratch(dir string, err error) error {
	if full := (*extsort.NoRoomError)(nil); !errors.As(err, &full) || full.Err == nil || full.Dir != dir &&
		filepath.Dir(full.Dir) != dir {
		return err
	}
	return errors.Join(err, removeParts(dir))
}

// removeParts removes what a comparison has sorted.
func removeParts(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "part-*"))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
