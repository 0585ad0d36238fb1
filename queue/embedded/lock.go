package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

const lockName = "LOCK"

// ErrLocked means that another process has the store open.
var ErrLocked = errors.New("store is in use by another process")

// lockDir locks the store for this process; ErrLocked when another process has it. The kernel unlocks it when the
// process ends, however that happens; the pid in the file is for operators.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make queue directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, fmt.Errorf("lock %s: %w (pid %s)", dir, ErrLocked, strings.TrimSpace(string(holder)))
	}
	pid := fmt.Sprintf("%d\n", os.Getpid())
	err = errors.Join(f.Truncate(0), writeAt(f, pid))
	if err != nil && conn.IsNoSpace(err.Error()) && dropReserve(dir) {
		err = writeAt(f, pid)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return f, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}
