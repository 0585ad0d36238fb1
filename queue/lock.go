package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

const (
	lockName   = "LOCK"
	clientName = "client.json"
)

// lockDir takes the store for this process. The kernel lets the lock go when the process dies, however it
// dies; the pid in the file is for people.
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
	if err != nil && conn.SaysNoSpace(err.Error()) && dropReserve(dir) {
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

// Client is what <dir>/client.json holds while the embedded server runs: how the commands and the nats tool
// reach it. The file is readable by its owner only, since the token opens everything.
type Client struct {
	URL     string    `json:"url"`
	Token   string    `json:"token"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

func writeClient(dir string, c Client) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode client file: %w", err)
	}
	tmp, err := os.CreateTemp(dir, clientName+".*") // 0600 by itself
	if err != nil {
		return fmt.Errorf("write client file: %w", err)
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, clientName))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error counts
		return fmt.Errorf("write client file: %w", err)
	}
	return nil
}

// ReadClient returns how to reach the daemon that has dir open. The file may be older than the daemon, or
// left by one that was killed; fs.ErrNotExist when there is none.
func ReadClient(dir string) (Client, error) {
	var c Client
	b, err := os.ReadFile(filepath.Join(dir, clientName))
	if err != nil {
		return c, fmt.Errorf("read client file: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("decode client file: %w", err)
	}
	return c, nil
}
