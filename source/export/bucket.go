package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/tailrace-cdc/replicator/failure"
)

// bucket is a store in a service of objects.
type bucket struct {
	*blob.Bucket
	service
	scheme, name, query string
}

// service is how the errors of one service are read, and its objects.
type service interface {
	// lacks reports whether an error means that there is no such object. The error about a missing
	// bucket does not.
	lacks(err error) bool

	// explain returns the class of another error, and what to do.
	explain(err error) (failure.Class, string)

	// stored are the options that return an object as it is stored, and not unpacked.
	stored() *blob.ReaderOptions
}

// pageLimit is how long a page of a listing may take: a connection that was cut silently would else
// hold the listing for a quarter of an hour.
const pageLimit = time.Minute

func (b *bucket) open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	r, err := b.NewReader(ctx, key, b.stored())
	if err != nil {
		return nil, 0, b.wrap(key, err)
	}
	return r, r.Size(), nil
}

func (b *bucket) list(ctx context.Context, dir string) (files map[string]int64, dirs []string, err error) {
	prefix := ""
	if dir != "" && dir != "." {
		prefix = dir + "/"
	}
	files = map[string]int64{}
	it := b.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		limited, cancel := context.WithTimeout(ctx, pageLimit)
		object, err := it.Next(limited)
		cancel()
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

func (b *bucket) url(key string) string {
	text := fmt.Sprintf("%s://%s/%s", b.scheme, b.name, key)
	if b.query != "" {
		text += "?" + b.query
	}
	return text
}

// wrap returns a library's error with class and hint.
func (b *bucket) wrap(key string, err error) error {
	if b.lacks(err) {
		return missing(b.url(key))
	}
	class, hint := b.explain(err)
	return refused(class, hint, "%s: %w", b.url(key), err)
}
