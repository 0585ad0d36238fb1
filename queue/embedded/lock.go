package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

const (
	// lockName is the file that a process locks as long as it has the store open.
	lockName = "LOCK"
	// daemonName is the file that a daemon locks first, and keeps locked until it begins to close
	// the store. So a second daemon is told from a command that has the store open for a moment,
	// and no command takes the store from a daemon that waits for it.
	daemonName = "DAEMON"

	// storePatience is how long a daemon waits for a command that has the store open. It is
	// bounded, so that a command that waits for an operator's answer shows as a daemon that does
	// not start.
	storePatience = 2 * time.Minute
	// daemonPatience is how long a daemon waits for another one: one that was killed has not ended
	// at once, and commands lock the file for a moment to see whether it is locked.
	daemonPatience = time.Second
	lockPeriod     = 100 * time.Millisecond // between two tries
)

// ErrLocked means that another process has the store open.
var ErrLocked = errors.New("store is in use by another process")

// locks are the locks that a process has on a store. The kernel releases them when the process
// ends, however that happens; the pids in the files are for operators.
type locks struct{ store, daemon *os.File }

// lockStore locks the store for this process. A command gets ErrLocked at once when another process
// has the store open or a daemon waits for it; a daemon waits for commands, and gets ErrLocked when
// another daemon runs.
func lockStore(ctx context.Context, o Options, log *zap.Logger) (l locks, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return l, fmt.Errorf("make queue directory: %w", err)
	}
	if o.Command {
		if err := CheckNoDaemon(o.Dir); err != nil {
			return l, err
		}
		l.store, err = lockFile(o.Dir, lockName)
		return l, err
	}
	if l.daemon, err = awaitLock(ctx, o.Dir, daemonName, daemonPatience, func(error) {}); err != nil {
		return locks{}, err
	}
	l.store, err = awaitLock(ctx, o.Dir, lockName, storePatience, func(err error) {
		log.Warn("waiting for the process that has the store of the queue open",
			zap.Error(err), zap.Duration("at_most", storePatience))
	})
	if err != nil {
		return locks{}, errors.Join(err, l.daemon.Close())
	}
	return l, nil
}

// awaitLock locks a file, and waits for its holder. It calls waiting once, with the error that
// names the holder.
func awaitLock(
	ctx context.Context, dir, name string, patience time.Duration, waiting func(error),
) (*os.File, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for tries := 1; ; tries++ {
		f, err := lockFile(dir, name)
		if !errors.Is(err, ErrLocked) {
			return f, err
		}
		if tries == 2 { // the first try may have come before the holder wrote its pid
			waiting(err)
		}
		if failure.Pause(patient, lockPeriod) != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// CheckNoDaemon returns ErrLocked when a daemon has the store open or waits for it.
func CheckNoDaemon(dir string) error {
	f, err := os.Open(filepath.Join(dir, daemonName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	return lock(f, dir, host.Shared)
}

// lockFile locks a file of the store and writes this process's pid into it; ErrLocked when another
// process has it locked.
func lockFile(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := lock(f, dir, host.Exclusive); err != nil {
		f.Close()
		return nil, err
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

// lock locks an open file without waiting; ErrLocked with the holder's pid when another process has
// it locked.
func lock(f *os.File, dir string, kind host.Kind) error {
	locked, err := host.Lock(f, kind)
	if err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	if !locked {
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		return fmt.Errorf("lock %s: %w (pid %s)", dir, ErrLocked, strings.TrimSpace(string(holder)))
	}
	return nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// leave lets the next daemon wait for the store; this process keeps the store locked until release.
func (l *locks) leave() {
	if l.daemon != nil {
		_ = l.daemon.Close() // only unlocks it
		l.daemon = nil
	}
}

// release unlocks the store.
func (l *locks) release() error {
	l.leave()
	return l.store.Close()
}
