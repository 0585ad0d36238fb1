package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

// Bucket holds objects by name. Names are paths with slashes, relative to the URL: no empty parts,
// no "." or "..". Safe for concurrent use, also by several processes.
type Bucket interface {
	// Create stores the first size bytes of f, durably, if nothing has the name yet; else it
	// returns ErrExists. An earlier call may have stored the object and lost its answer, so the
	// caller compares. After any other error the object may exist too, but only whole: call again.
	// f's own position does not matter and is left unchanged.
	Create(ctx context.Context, name string, f *os.File, size int64) error

	// Open returns a reader of an object, or ErrNotFound. ctx ends the reader too.
	Open(ctx context.Context, name string) (Reader, error)

	// List returns the objects with names that begin with prefix, in the byte order of their names.
	// An error is the last pair.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Close releases files and credentials. Readers must have been closed. Idle connections end by
	// themselves.
	Close() error
}

// Reader reads an object. ReadAt may be called concurrently.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Info describes an object in a listing.
type Info struct {
	Name string
	Size int64
}

var (
	// ErrExists means that a name is taken.
	ErrExists = errors.New("an object of this name exists")
	// ErrNotFound means that there is no object of a name. A bucket that does not exist is another
	// error.
	ErrNotFound = errors.New("no object of this name")
)

// Options of a Bucket.
type Options struct {
	// ReadOnly makes nothing: a directory must exist, and is not cleared of what a crash left
	// there.
	ReadOnly bool
	// Region is the S3 region if the URL names none; empty: the environment's.
	Region string
}

// Open opens the bucket of a URL. It makes no call to the service.
//
//	file:///directory                  made where it is absent
//	s3://bucket/prefix?region=R        endpoint=URL: a server that is not AWS's
//	                                   assume_role=ARN, external_id=: a role to take
//	                                   sse=aws:kms, kms_key=ARN: demanded by the bucket's policy
//	gs://bucket/prefix
//	azblob://container/prefix          storage_account, domain, protocol: see azureblob.URLOpener of the Go CDK
func Open(ctx context.Context, rawURL string, o Options) (Bucket, error) {
	u, err := url.Parse(rawURL)
	if err != nil { // which would repeat the URL, and a password in it
		return nil, wrap(ctx, "open archive", refused(failure.Rejected, hintURL, "the URL cannot be read"))
	}
	var b Bucket
	switch u.Scheme {
	case "file":
		b, err = openDirectory(u, o)
	case "s3":
		b, err = openCloud(ctx, u, o, openS3, "region", "endpoint", "assume_role", "external_id", "sse", "kms_key")
	case "gs":
		b, err = openCloud(ctx, u, o, openGCS)
	case "azblob":
		b, err = openCloud(ctx, u, o, openAzure, "storage_account", "domain", "protocol", "localemu")
	default:
		err = refused(failure.Rejected, hintURL, "the scheme %q is unknown", u.Scheme)
	}
	if err != nil {
		return nil, wrap(ctx, fmt.Sprintf("open archive %s://%s%s", u.Scheme, u.Host, u.Path), err)
	}
	return b, nil
}

// Place returns what of a URL names the place: the same text for the same objects, however they are
// reached.
func Place(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	q := url.Values{}
	for _, name := range []string{"endpoint", "storage_account", "domain"} {
		if v := u.Query().Get(name); v != "" {
			q.Set(name, host.WithoutUser(strings.TrimSuffix(v, "/")))
		}
	}
	place := u.Scheme + "://" + u.Host + path.Clean("/"+u.Path)
	if len(q) > 0 {
		place += "?" + q.Encode()
	}
	return place
}

// hintURL is what to do about a URL that no store understands.
const hintURL = "write file:///directory, s3://bucket/prefix, gs://bucket/prefix or azblob://container/prefix"
