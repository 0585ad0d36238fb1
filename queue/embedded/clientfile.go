package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const clientFileName = "client.json"

// ClientFile is what <dir>/client.json holds while the embedded server runs: how the commands and
// the nats tool reach it. The file is readable by its owner only, because the token gives full
// access to the logs.
type ClientFile struct {
	URL     string    `json:"url"`
	Token   string    `json:"token"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Command bool      `json:"command,omitempty"` // it is a command, which ends soon, not the daemon
}

// writeClientFile replaces the file atomically.
func writeClientFile(dir string, c ClientFile) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode client file: %w", err)
	}
	tmp, err := os.CreateTemp(dir, clientFileName+".*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write client file: %w", err)
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, clientFileName))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // err already says what went wrong
		return fmt.Errorf("write client file: %w", err)
	}
	return nil
}

// ReadClientFile returns how to reach the process that has dir open; fs.ErrNotExist when there is
// no file. The file may also be stale: left by a daemon that was killed.
func ReadClientFile(dir string) (ClientFile, error) {
	var c ClientFile
	b, err := os.ReadFile(filepath.Join(dir, clientFileName))
	if err != nil {
		return c, fmt.Errorf("read client file: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("decode client file: %w", err)
	}
	return c, nil
}
