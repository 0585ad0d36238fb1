package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// removeLeftovers removes what is left of streams that were made or deleted when the process was killed. A server that
// finds such a folder does not become healthy.
//
//   - The server renames the folder of a deleted stream to .NAME before it removes its files.
//   - It writes the checksum of a new stream's description last. Nobody was told of a stream without one that holds no
//     message, so nothing is in it.
func removeLeftovers(dir string) error {
	folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
	if err != nil {
		return err
	}
	for _, path := range folders {
		name := filepath.Base(path)
		left := strings.HasPrefix(name, ".") && strings.Trim(name, ".") != ""
		if !left {
			if left, err = unfinished(path); err != nil {
				return err
			}
		}
		if !left {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what is left of a stream: %w", err)
		}
	}
	return nil
}

// unfinished reports whether a stream was never made to the end: it has no checksum and no messages.
func unfinished(path string) (bool, error) {
	_, err := os.Stat(filepath.Join(path, server.JetStreamMetaFileSum))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	blocks, err := os.ReadDir(filepath.Join(path, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, b := range blocks {
		info, err := b.Info()
		if err != nil || info.Size() > 0 {
			return false, err
		}
	}
	return true, nil
}
