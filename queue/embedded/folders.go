package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// streamFolders returns the folders of a stream, of all streams for the name "".
func streamFolders(dir, stream string) ([]string, error) {
	return foldersBelow(filepath.Join(dir, "jetstream"), stream)
}

// foldersBelow is streamFolders, of a folder with one folder for each account.
//
// Rule 13: a folder that cannot be listed is an error, and no folder without streams.
func foldersBelow(root, stream string) (folders []string, err error) {
	accounts, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list streams of the store: %w", err)
	}
	for _, account := range accounts {
		if !account.IsDir() {
			continue
		}
		streams, err := os.ReadDir(filepath.Join(root, account.Name(), "streams"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list streams of the store: %w", err)
		}
		for _, s := range streams {
			if stream == "" || s.Name() == stream {
				folders = append(folders, filepath.Join(root, account.Name(), "streams", s.Name()))
			}
		}
	}
	return folders, nil
}
