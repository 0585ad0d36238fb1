package embedded

import (
	"os"

	"golang.org/x/sys/unix"
)

func allocate(f *os.File, size int64) error {
	if unix.Fallocate(int(f.Fd()), 0, 0, size) == nil {
		return nil
	}
	return allocateZeros(f, size) // some file systems lack fallocate; on a full volume this fails too
}
