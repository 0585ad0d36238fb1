package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// settleLeftovers prepares the folders of the streams for a start of the server after a kill. The trouble of one stream
// is logged and leaves the others as they are: the server leaves that stream out, and its table alone halts (see
// WhyUnopened).
//
//   - The server renames the folder of a deleted stream to .NAME before it removes its files: the rest is removed.
//   - It writes the checksum of a new stream's description last. Nothing was acknowledged in a stream without one that
//     holds no message. Its folder is set aside, never deleted, and the stream is made again.
//   - Between the two files of a changed description the checksum belongs to the old one, see
//     finishDescription.
//
// An error means that the folders cannot be listed: the server would start without the streams, as
// if they had never been.
func settleLeftovers(dir string, log *zap.Logger) error {
	folders, err := streamFolders(dir, "")
	if err != nil {
		return err
	}
	for _, path := range folders {
		if err := settleFolder(dir, path, log); err != nil {
			log.Error("a stream of the store cannot be opened; only its table halts",
				zap.String("stream", filepath.Base(path)), zap.Error(err))
		}
	}
	return nil
}

// unread is the folder of a stream that is not open and could not be read. It may be whole again
// when the volume is back.
type unread struct {
	folder string
	file   string // the one that could not be read; "" unknown
}

// unreadFolders returns the folders that are not open and cannot be read now.
func unreadFolders(dir string, opened func(stream string) bool) (all []unread, err error) {
	folders, err := streamFolders(dir, "")
	for _, path := range folders {
		if opened(filepath.Base(path)) {
			continue
		}
		if why := whyUnopened(path); !errors.Is(why, ErrDescription) {
			u, of := unread{folder: path}, (*fs.PathError)(nil)
			if errors.As(why, &of) {
				u.file = of.Path
			}
			all = append(all, u)
		}
	}
	return all, err
}

// readAgain reports whether one of these folders can be read now.
func readAgain(all []unread) bool {
	return slices.ContainsFunc(all, func(u unread) bool {
		if info, err := os.Stat(u.file); u.file != "" && (err != nil || !info.IsDir() && readFile(u.file) != nil) {
			return false // without reading all of a large log
		}
		return errors.Is(whyUnopened(u.folder), ErrDescription)
	})
}

func settleFolder(dir, path string, log *zap.Logger) error {
	name := filepath.Base(path)
	if strings.HasPrefix(name, ".") && strings.Trim(name, ".") != "" {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what is left of a deleted stream: %w", err)
		}
		return nil
	}
	never, err := unfinished(path)
	if err != nil {
		return err
	}
	if never {
		to, err := setAside(dir, path)
		if err == nil {
			log.Warn("a stream that was being made when the process ended holds no message: its folder was set aside",
				zap.String("stream", name), zap.String("to", to))
		}
		return err
	}
	return finishDescription(path)
}

// asideFolder holds, in the store's directory, the folders of streams that were set aside. Nothing
// reads them.
const asideFolder = "set-aside"

// SetAside moves the folders of a stream that the server has not opened out of its way, so that the
// stream can be made again. It deletes nothing, and must not be called for a stream that is open.
func SetAside(dir, stream string) error {
	folders, err := streamFolders(dir, stream)
	for _, path := range folders {
		_, moveErr := setAside(dir, path)
		err = errors.Join(err, moveErr)
	}
	return err
}

// setAside moves a folder into asideFolder, and returns its new path.
func setAside(dir, path string) (string, error) {
	to := filepath.Join(dir, asideFolder, fmt.Sprintf("%s.%d", filepath.Base(path), time.Now().UnixNano()))
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return "", fmt.Errorf("make folder for what is set aside: %w", err)
	}
	if err := os.Rename(path, to); err != nil {
		return "", fmt.Errorf("set the folder of a stream aside: %w", err)
	}
	return to, nil
}

// unfinished reports whether a stream was never made to the end: description or checksum is
// missing, and no block holds a message.
func unfinished(path string) (bool, error) {
	whole := true
	for _, name := range []string{server.JetStreamMetaFile, server.JetStreamMetaFileSum} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		whole = whole && err == nil && info.Size() > 0
	}
	if whole {
		return false, nil
	}
	blocks, err := os.ReadDir(filepath.Join(path, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, b := range blocks {
		if filepath.Ext(b.Name()) != ".blk" {
			continue
		}
		holds, err := holdsMessages(filepath.Join(path, "msgs", b.Name()))
		if holds || err != nil {
			return false, err
		}
	}
	return true, nil
}
