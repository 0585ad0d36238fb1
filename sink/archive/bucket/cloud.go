package bucket

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tailrace-cdc/replicator/failure"
)

// cloud is a store in a service. The Go CDK lists and reads; creating is a call of the driver's own client.
type cloud struct {
	bucket *blob.Bucket
	url    string // without its query, as users name the bucket
	prefix string // of the keys; empty, or with a slash at its end
	close  func() error

	pageSize int // objects in a page of a listing

	// limit is set where a client retries calls by itself, and returns a context that turns retries off.
	limit func(context.Context) context.Context

	// send puts an object in one request that the service refuses if the key is taken or the MD5 is another. It does not
	// retry: the caller does, as after a crash, and gets ErrExists if the first attempt arrived. The CDK
	// has no such call for S3 and Azure: it uploads in parts, several at once, with retries of each.
	send func(ctx context.Context, key string, body *io.SectionReader, sum []byte) error

	// key returns the key of a listed object as the service has it. The CDK unescapes it, as if it had written it.
	key func(o *blob.ListObject) string
}

// openCloud opens the bucket of a URL, whose parameters must be among the known ones.
func openCloud(
	ctx context.Context, u *url.URL, o Options, open func(context.Context, *url.URL, Options) (*cloud, error),
	known ...string,
) (*cloud, error) {
	prefix := strings.Trim(u.Path, "/")
	if u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, refused(failure.Rejected, hintURL, "not the URL of a bucket")
	}
	if prefix != "" {
		if err := checkName(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	for name, values := range u.Query() {
		if !slices.Contains(known, name) || len(values) != 1 {
			return nil, refused(failure.Rejected, "known are: "+strings.Join(known, ", "),
				"the URL has a parameter %s that is unknown or repeated", name)
		}
	}
	c, err := open(ctx, u, o)
	if err != nil {
		return nil, err
	}
	c.url, c.prefix, c.pageSize = u.Scheme+"://"+u.Host, prefix, 1000
	return c, nil
}

const contentType = "application/octet-stream"

// slowest is the throughput in bytes per second below which an upload counts as stuck: a connection that was cut
// silently would else hold it for a quarter of an hour.
const slowest = 256 << 10

// callLimit is how long a call may take, beside the time for its bytes.
const callLimit = time.Minute

func (c *cloud) Create(ctx context.Context, name string, f *os.File, size int64) error {
	return create(ctx, c, name, f, size)
}

func (c *cloud) put(ctx context.Context, name string, content *io.SectionReader) error {
	// The MD5 is what all three services compare before they store an object.
	sum := md5.New()
	if _, err := io.Copy(sum, content); err != nil {
		return fmt.Errorf("read what is to be stored: %w", err)
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	limited, cancel := c.limited(ctx, content.Size())
	defer cancel()
	return c.explain(ctx, c.send(limited, c.prefix+name, content, sum.Sum(nil)))
}

// limited returns the context of a call that transfers size bytes.
func (c *cloud) limited(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	if c.limit != nil {
		ctx = c.limit(ctx)
	}
	return context.WithTimeout(ctx, callLimit+time.Duration(size/slowest)*time.Second)
}

func (c *cloud) Open(ctx context.Context, name string) (Reader, error) {
	op := "open " + name
	if err := checkName(name); err != nil {
		return nil, wrap(ctx, op, err)
	}
	r := &reader{ctx: ctx, cloud: c, name: name}
	err := retryRead(ctx, func() error {
		limited, cancel := c.limited(ctx, 0)
		defer cancel()
		a, err := c.bucket.Attributes(limited, c.prefix+name)
		if err == nil {
			r.size = a.Size
		}
		return c.explainObject(ctx, name, err)
	})
	if err != nil {
		return nil, wrap(ctx, op, err)
	}
	return r, nil
}

func (c *cloud) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		last := ""
		for page := blob.FirstPageToken; page != nil; {
			var objects []*blob.ListObject
			err := retryRead(ctx, func() error {
				found, next, err := c.page(ctx, prefix, page, c.pageSize)
				if err == nil {
					objects, page = found, next
				}
				return err
			})
			if err != nil {
				yield(Info{}, wrap(ctx, "list "+prefix, err))
				return
			}
			for _, o := range objects {
				key := c.key(o)
				if key <= last {
					yield(Info{}, wrap(ctx, "list "+prefix, refused(failure.Fatal, "take a bucket whose listings are "+
						"sorted: not a directory bucket of S3", "%s is listed behind %s", key, last)))
					return
				}
				last = key
				if !yield(Info{Name: strings.TrimPrefix(key, c.prefix), Size: o.Size}, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// page reads a page of a listing.
func (c *cloud) page(ctx context.Context, prefix string, page []byte, size int) ([]*blob.ListObject, []byte, error) {
	limited, cancel := c.limited(ctx, 0)
	defer cancel()
	objects, next, err := c.bucket.ListPage(limited, page, size, &blob.ListOptions{Prefix: c.prefix + prefix})
	return objects, next, c.explain(ctx, err)
}

func (c *cloud) Close() error { return errors.Join(c.bucket.Close(), c.close()) }

// attempts is how often a call that changes nothing is made.
const attempts = 3

// retryRead repeats a call that changes nothing while its error is transient, up to attempts times.
func retryRead(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		class := Classify(err)
		if n == attempts || (class != failure.Transient && class != failure.Throttled) {
			return err
		}
		if paused := failure.Pause(ctx, failure.Backoff(n)); paused != nil {
			return errors.Join(paused, err)
		}
	}
}

// explainObject is explain for a call that reads an object. Whether the object or the bucket is missing is asked of the
// bucket: replies to HEAD have no body with a code.
func (c *cloud) explainObject(ctx context.Context, name string, err error) error {
	if gcerrors.Code(err) != gcerrors.NotFound || ctx.Err() != nil {
		return c.explain(ctx, err)
	}
	if _, _, listed := c.page(ctx, name, blob.FirstPageToken, 1); listed != nil {
		return listed
	}
	return fmt.Errorf("%w: %w", ErrNotFound, err)
}

// explain returns the error of a call with its class and what to do.
func (c *cloud) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	answer, answered := replyOf(err)
	switch {
	case answered && answer.taken():
		return fmt.Errorf("%w: %w", ErrExists, err)
	case answered:
		class, hint := answer.class()
		return refused(class, strings.ReplaceAll(hint, "BUCKET", c.url), "%w", err)
	}
	class, hint := classOfCall(err)
	return refused(class, hint, "%w", err)
}
