//go:build !linux

package sandbox

import "errors"

// SmallVolume mounts nothing: it is for Linux alone, and tests do without.
func SmallVolume(TB, string, string) error {
	return errors.New("mount a file system: only on Linux")
}
