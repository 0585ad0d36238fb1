package export

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/source"
)

// store is where an export lies. Keys are paths with slashes; "" or "." is the top of a bucket.
// Parts of a key may be empty: with the prefix "acme/" DynamoDB writes below "acme//AWSDynamoDB".
// So keys are not cleaned as paths are, but put together by join, parent and base.
type store interface {
	// open opens a file and returns its size. A missing file is an fs.ErrNotExist.
	open(ctx context.Context, key string) (io.ReadCloser, int64, error)

	// list returns the files in a folder with their sizes, and the folders in it. A missing folder
	// of a bucket is empty.
	list(ctx context.Context, dir string) (files map[string]int64, dirs []string, err error)

	// url returns how users write a key.
	url(key string) string
}

// join returns the key of a name in a folder.
func join(dir, name string) string {
	if dir == "" || dir == "." {
		return name
	}
	if dir == "/" { // the top of a file system
		return dir + name
	}
	return dir + "/" + name
}

// parent returns the folder of a key.
func parent(key string) string {
	if i := strings.LastIndexByte(key, '/'); i > 0 && key[i+1:] != ".." {
		return key[:i]
	}
	return path.Join(key, "..")
}

// base returns the last part of a key.
func base(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// openStore returns the store of a URL, and the key in it that the URL names.
func openStore(ctx context.Context, text string, src *source.Source) (store, string, error) {
	if !strings.Contains(text, "://") {
		return folder{}, filepath.ToSlash(filepath.Clean(text)), nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "", refused(failure.Rejected, "", "%w", err)
	case u.Scheme == "file" && u.Host == "" && u.Path != "":
		return folder{}, filepath.ToSlash(host.FilePath(u.Path)), nil
	case u.Host == "" || u.Scheme != "s3" && u.Scheme != "gs":
		return nil, "", refused(failure.Rejected, "write file:///folder, s3://bucket/prefix or gs://bucket/prefix",
			"not the URL of an export")
	case u.Scheme == "gs":
		s, err := openGCS(ctx, u)
		return s, strings.Trim(u.Path, "/"), err
	}
	s, err := openS3(ctx, u, src)
	return s, strings.Trim(u.Path, "/"), err
}

// folder is a store of files. The bucket library's own file store is not used: it silently skips
// files that it may not read, and escapes names.
type folder struct{}

func (folder) open(_ context.Context, key string) (io.ReadCloser, int64, error) {
	f, err := os.Open(key)
	if err != nil {
		return nil, 0, fileError(key, err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, fileError(key, err)
	}
	return f, info.Size(), nil
}

func (folder) list(_ context.Context, dir string) (files map[string]int64, dirs []string, err error) {
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil, nil, fileError(dir, err)
	}
	files = map[string]int64{}
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(dir, entry.Name())) // follows links
		switch {
		case err != nil:
			return nil, nil, fileError(dir, err)
		case info.IsDir():
			dirs = append(dirs, entry.Name())
		default:
			files[entry.Name()] = info.Size()
		}
	}
	return files, dirs, nil
}

func (folder) url(key string) string {
	if absolute, err := filepath.Abs(key); err == nil {
		key = absolute
	}
	return "file://" + key
}

func fileError(key string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing("file://" + key)
	case errors.Is(err, fs.ErrPermission):
		return refused(failure.Denied, "check the permissions of the folder and its files", "%w", err)
	}
	return refused(failure.Transient, "", "%w", err)
}
