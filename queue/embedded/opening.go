package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// openingFolder holds, in the store's directory, second names of all files of the streams while a
// server opens them.
const openingFolder = "opening"

// keepNames gives the files of all streams a second name, until the server has opened the streams.
//
// Rule 13: a server that cannot read a file of a stream at its start removes the folder of that
// stream, with all messages. So a single input/output error would be a lost log.
func keepNames(dir string, log *zap.Logger) error {
	folders, err := streamFolders(dir, "")
	if err != nil {
		return err
	}
	for _, from := range folders {
		if strings.HasPrefix(filepath.Base(from), ".") {
			continue // deleted
		}
		below, err := filepath.Rel(filepath.Join(dir, "jetstream"), from)
		if err != nil {
			return fmt.Errorf("keep names of a stream: %w", err)
		}
		err = linkFiles(from, filepath.Join(dir, openingFolder, below))
		if lacksLinks(err) {
			log.Warn("the volume of the queue has no hard links: an input/output error while the store is opened may "+
				"lose a log", zap.Error(err))
			return os.RemoveAll(filepath.Join(dir, openingFolder))
		}
		if err != nil {
			return fmt.Errorf("keep names of a stream: %w", err)
		}
	}
	return nil
}

// restoreNames gives back to streams what a server has removed that did not open them, and drops
// the second names. It may be repeated, also after a kill.
func restoreNames(dir string, opened func(stream string) bool, log *zap.Logger) error {
	kept, err := foldersBelow(filepath.Join(dir, openingFolder), "")
	if err != nil {
		return err
	}
	for _, from := range kept {
		if opened(filepath.Base(from)) {
			continue
		}
		below, err := filepath.Rel(filepath.Join(dir, openingFolder), from)
		if err != nil {
			return fmt.Errorf("restore a stream: %w", err)
		}
		to := filepath.Join(dir, "jetstream", below)
		if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
			log.Error("the server has removed a stream that it could not open: its folder is restored",
				zap.String("stream", filepath.Base(to)))
		}
		if err := restore(from, to); err != nil {
			return fmt.Errorf("restore a stream: %w", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, openingFolder)); err != nil {
		return fmt.Errorf("drop names of streams: %w", err)
	}
	return nil
}

// restore is linkFiles, again where the server removes a folder above that was empty.
func restore(from, to string) (err error) {
	for range 3 {
		if err = linkFiles(from, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// linkFiles gives the files of a stream's folder names in another one, which keeps the files that
// it has.
func linkFiles(from, to string) error {
	for _, sub := range []string{"", "msgs"} {
		entries, err := os.ReadDir(filepath.Join(from, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, sub), 0o750)
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			err := os.Link(filepath.Join(from, sub, e.Name()), filepath.Join(to, sub, e.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}

// lacksLinks reports whether an error means that a file system has no hard links, or not these.
func lacksLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.EXDEV)
}

// openedBy returns which streams a server has opened.
func openedBy(srv *server.Server) (func(stream string) bool, error) {
	info, err := srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return nil, fmt.Errorf("ask which streams are open: %w", err)
	}
	opened := map[string]bool{}
	for _, a := range info.AccountDetails {
		for _, s := range a.Streams {
			opened[s.Name] = true
		}
	}
	return func(stream string) bool { return opened[stream] }, nil
}

// noneOpened is for restoreNames when no server runs.
func noneOpened(string) bool { return false }
