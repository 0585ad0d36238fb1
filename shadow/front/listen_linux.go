package front

import (
	"errors"
	"syscall"
)

// reusePort is SO_REUSEPORT, which package syscall lacks. It has this value on all processors for
// which the program is built.
const reusePort = 0xf

// shareAddress lets several processes of one user listen on the same address, so that a new one
// listens before the old one ends. A connection that is in its handshake while a listener is closed
// is reset, unless net.ipv4.tcp_migrate_req is 1; clients connect again.
func shareAddress(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, reusePort, 1)
	})
	return errors.Join(err, failed)
}

// isPassing reports whether an error of Accept passes: too many files are open, or a client has
// left.
func isPassing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}
