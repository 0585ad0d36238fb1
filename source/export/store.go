package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/source"
)

// store is where an export lies. Keys are paths with slashes; "" or "." is the top of a bucket. Parts
// of a key may be empty: with the prefix "acme/" DynamoDB writes below "acme//AWSDynamoDB". So keys
// are not cleaned as paths are, but put together by join, parent and base.
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
	case u.Scheme != "s3" || u.Host == "":
		return nil, "", refused(failure.Rejected, "write file:///folder or s3://bucket/prefix", "not the URL of an export")
	case src == nil:
		return nil, "", refused(failure.Fatal, "", "no source of credentials for S3")
	}
	client := src.Buckets()
	if region := u.Query().Get("region"); region != "" {
		client = s3.New(client.Options(), func(o *s3.Options) { o.Region = region })
	}
	b, err := s3blob.OpenBucket(ctx, client, u.Host, nil)
	if err != nil {
		return nil, "", err
	}
	return bucket{b, u.Host, u.RawQuery}, strings.Trim(u.Path, "/"), nil
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

// bucket is a store in S3.
type bucket struct {
	*blob.Bucket
	name, query string
}

func (b bucket) open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	r, err := b.NewReader(ctx, key, nil)
	if err != nil {
		return nil, 0, b.wrap(key, err)
	}
	return r, r.Size(), nil
}

func (b bucket) list(ctx context.Context, dir string) (files map[string]int64, dirs []string, err error) {
	prefix := ""
	if dir != "" && dir != "." {
		prefix = dir + "/"
	}
	files = map[string]int64{}
	it := b.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		object, err := it.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return files, dirs, nil
		case err != nil:
			return nil, nil, b.wrap(dir, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(object.Key, prefix), "/")
		if object.IsDir {
			dirs = append(dirs, name)
		} else {
			files[name] = object.Size
		}
	}
}

func (b bucket) url(key string) string {
	text := fmt.Sprintf("s3://%s/%s", b.name, key)
	if b.query != "" {
		text += "?" + b.query
	}
	return text
}

// wrap returns a library's error with class and hint.
func (b bucket) wrap(key string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound && !isCode(err, "NoSuchBucket") {
		return missing(b.url(key))
	}
	class, hint := source.Classify(err), ""
	switch {
	case isCode(err, "NoSuchBucket"):
		class, hint = failure.Missing, "check the bucket's name"
	case isCode(err, "PermanentRedirect"), isCode(err, "AuthorizationHeaderMalformed"), isCode(err, "MovedPermanently"):
		class, hint = failure.Rejected, "the bucket is in another region: add ?region=REGION to the URL"
	case class == failure.Denied:
		hint = "check the policy: s3:ListBucket on the bucket, s3:GetObject on the export, and kms:Decrypt if it is " +
			"encrypted with a key of yours"
	}
	return refused(class, hint, "%s: %w", b.url(key), err)
}
