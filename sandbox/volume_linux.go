package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SmallVolume mounts an empty file system of a size, such as "64m", over a directory until the test
// ends, so that it can be filled. The error states why that is not permitted here.
func SmallVolume(t TB, dir, size string) error {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return fmt.Errorf("mount a file system: %w", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return nil
}
