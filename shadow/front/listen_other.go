//go:build !linux

package front

import (
	"errors"
	"syscall"
)

// shareAddress does nothing: other systems give all connections to one of the listeners, or steal
// them from the first.
func shareAddress(_, _ string, _ syscall.RawConn) error { return nil }

// isPassing reports whether an error of Accept passes: too many files are open, or a client has
// left.
func isPassing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
