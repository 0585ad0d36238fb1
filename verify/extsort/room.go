package extsort

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/host"
)

// NoRoomError reports that a volume has too little room for a directory.
type NoRoomError struct {
	Dir  string
	Need int64 // bytes that all of it takes beyond what is there; 0: not known
	Free int64 // bytes
	Err  error // of the write that failed, which names its file; nil: nothing was written yet
}

func (e *NoRoomError) Error() string {
	free := humanize.IBytes(uint64(max(e.Free, 0)))
	text := fmt.Sprintf("no room in %s: %s are free there", e.Dir, free)
	if e.Need > 0 {
		text = fmt.Sprintf("no room in %s: about %s more are needed there, and %s are free", e.Dir,
			humanize.IBytes(uint64(e.Need)), free)
	}
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}

func (e *NoRoomError) Unwrap() error { return e.Err }

// NoRoom returns a *NoRoomError if the error of a write to a directory means that the volume, or
// the user's share of it, is full. It returns any other error as it is.
func NoRoom(dir string, err error) error {
	known := (*NoRoomError)(nil)
	if !errors.Is(err, host.ErrNoSpace) && !errors.Is(err, host.ErrQuota) || errors.As(err, &known) {
		return err
	}
	free, _ := Room(dir) // what failed is known, with or without it
	return &NoRoomError{Dir: dir, Free: free, Err: err}
}

// Room returns how many bytes the file system of a directory, or of the nearest one above it that
// exists, has for this process.
func Room(dir string) (int64, error) {
	v, err := host.VolumeOf(dir)
	if err != nil {
		return 0, fmt.Errorf("ask for room: %w", err)
	}
	return int64(v.Available), nil
}
