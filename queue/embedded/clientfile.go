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

// ClientFile is what <dir>/client.json holds while the embedded server runs: how the commands and the nats tool
// reach it. The file is readable by its owner only, since the token opens everything.
type ClientFile struct {
	URL     string    `json:"url"`
	Token   string    `json:"token"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// writeClientFile replaces the file atomically.
func writeClientFile(dir string, c ClientFile) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode client file: %w", err)
	}
	tmp, err := os.CreateTemp(dir, clientFileName+".*") // 0600 by itself
	if err != nil {
		return fmt.Errorf("write client file: %w", err)
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, clientFileName))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error counts
		return fmt.Errorf("write client file: %w", err)
	}
	return nil
}

// ReadClientFile returns how to reach the daemon that has dir open. The file may be older than the daemon, or
// left by one that was killed; fs.ErrNotExist when there is none.
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
