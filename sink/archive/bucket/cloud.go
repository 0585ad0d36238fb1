package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// cloud is a store in a service.
type cloud struct {
	backend
	url    string // without its query, as users name the bucket
	prefix string // of the keys; empty, or with a slash at its end

	// pageSize is how many objects a page of a listing has, and pause waits before a call is
	// repeated. Tests replace them.
	pageSize int
	pause    func(ctx context.Context, attempt int) error
}

// backend is the client of a service. Each call is one request, which is not repeated: package
// bucket does so.
//
// Rule 15: each answer is returned only if it has what the service alone can state. What stands
// between, and answers 200 to everything, states no checksum, no version of an object and no name
// of the bucket: errNotStore.
type backend interface {
	// put puts an object in one request that the service refuses if the key is taken or the MD5 is
	// another. It returns the MD5 that the service states of what it has stored; nil if it states
	// none.
	put(ctx context.Context, key string, body *io.SectionReader, sum []byte) ([]byte, error)

	// head returns what the service states of an object.
	head(ctx context.Context, key string) (stored, error)

	// list returns a page of a listing.
	list(ctx context.Context, q query) (page, error)

	// read returns bytes of an object of which head returned of.
	read(ctx context.Context, key string, of stored, at, n int64) (io.ReadCloser, error)

	// lifecycle returns the rules that delete objects; ErrNoLifecycle where the service has no such
	// call.
	lifecycle(ctx context.Context) ([]expiry, error)

	close() error
}

// stored is what a service states of an object.
type stored struct {
	size    int64
	sum     []byte // its MD5; nil where it is not known
	version string // another one for each content: an ETag, or a generation
}

// query selects a page of the keys that begin with prefix.
type query struct {
	prefix string
	after  string // keys up to this one may be left out
	token  string // of the page before; "": the first page
	size   int
}

// page is a part of a listing. Its names are keys.
type page struct {
	objects []Info
	next    string // "" behind the last page
}

// openCloud opens the bucket of a URL. Parameters of the URL must be among the known ones.
func openCloud(
	ctx context.Context, u *url.URL, o Options, open func(context.Context, *url.URL, Options) (backend, error),
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
	s, err := open(ctx, u, o)
	if err != nil {
		return nil, err
	}
	return &cloud{backend: s, url: u.Scheme + "://" + u.Host, prefix: prefix, pageSize: 1000, pause: pause}, nil
}

const contentType = "application/octet-stream"

// slowest is the throughput in bytes per second below which an upload counts as stuck: a connection
// that was cut silently would else hold it for a quarter of an hour.
const slowest = 256 << 10

// callLimit is how long a call may take, beside the time for its bytes.
const callLimit = time.Minute

func (c *cloud) Create(ctx context.Context, name string, f *os.File, size int64) error {
	return create(ctx, c, name, f, size)
}

func (c *cloud) put(ctx context.Context, name string, content *io.SectionReader) error {
	// The MD5 is what all three services compare before they store an object.
	hash := md5.New()
	if _, err := io.Copy(hash, content); err != nil {
		return fmt.Errorf("read what is to be stored: %w", err)
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := hash.Sum(nil)
	limited, cancel := c.limited(ctx, content.Size())
	defer cancel()
	have, err := c.backend.put(limited, c.prefix+name, content, sum)
	if err != nil || bytes.Equal(have, sum) {
		return c.explain(ctx, err)
	}
	return c.confirm(ctx, c.prefix+name, stored{size: content.Size(), sum: sum})
}

// confirm requests the checksum of an object if the reply to its upload had none: S3 returns none
// for objects that are encrypted with a KMS key.
//
// Rule 15: an object counts as stored only once the service has stated its size and its checksum.
func (c *cloud) confirm(ctx context.Context, key string, sent stored) error {
	limited, cancel := c.limited(ctx, 0)
	defer cancel()
	have, err := c.head(limited, key)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return refused(failure.Transient, hintNotStore, "the upload was accepted, but it is not shown that the object is "+
			"there: %w", err)
	case have.size != sent.size || !bytes.Equal(have.sum, sent.sum):
		return refused(failure.Transient, hintNotStore, "the upload was accepted, but the object that is there is not shown "+
			"to be the one that was sent: it has %d bytes and checksum %x, not %d and %x",
			have.size, have.sum, sent.size, sent.sum)
	}
	return nil
}

// limited returns the context of a call that transfers size bytes.
func (c *cloud) limited(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit+time.Duration(size/slowest)*time.Second)
}

func (c *cloud) Open(ctx context.Context, name string) (Reader, error) {
	op := "open " + name
	if err := checkName(name); err != nil {
		return nil, wrap(ctx, op, err)
	}
	r := &reader{ctx: ctx, cloud: c, name: name}
	err := c.retryRead(ctx, func() error {
		limited, cancel := c.limited(ctx, 0)
		defer cancel()
		of, err := c.head(limited, c.prefix+name)
		r.of = of
		if err != nil {
			return c.explainObject(ctx, name, err)
		}
		return nil
	})
	if err != nil {
		return nil, wrap(ctx, op, err)
	}
	return r, nil
}

// List requests once more what follows the last object.
//
// Rule 13: only a second answer, to a request that began after the first one, proves that there is
// nothing, or nothing more. Objects missing from a listing would be archived twice.
func (c *cloud) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		q, last, again := query{prefix: c.prefix + prefix, size: c.pageSize}, "", false
		for {
			p, err := c.page(ctx, q)
			if err != nil {
				yield(Info{}, wrap(ctx, "list "+prefix, err))
				return
			}
			more := false
			for _, o := range p.objects {
				if again && o.Name <= q.after {
					continue
				}
				if o.Name <= last {
					yield(Info{}, wrap(ctx, "list "+prefix, refused(failure.Fatal, "take a bucket whose listings are "+
						"sorted: not a directory bucket of S3", "%s is listed behind %s", o.Name, last)))
					return
				}
				last, more = o.Name, true
				if !yield(Info{Name: strings.TrimPrefix(o.Name, c.prefix), Size: o.Size}, nil) {
					return
				}
			}
			switch q.token = p.next; {
			case p.next != "":
			case again && !more:
				return
			default:
				q.after, again = last, true
			}
		}
	}
}

// page reads a page of a listing, by a few requests where they fail.
func (c *cloud) page(ctx context.Context, q query) (p page, err error) {
	err = c.retryRead(ctx, func() error {
		limited, cancel := c.limited(ctx, 0)
		defer cancel()
		p, err = c.list(limited, q)
		return c.explain(ctx, err)
	})
	return p, err
}

func (c *cloud) Close() error { return c.close() }

// attempts is how often a call that changes nothing is made.
const attempts = 3

// retryRead repeats a call that changes nothing while its error is transient, up to attempts times.
func (c *cloud) retryRead(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		class := Classify(err)
		if n == attempts || (class != failure.Transient && class != failure.Throttled) {
			return err
		}
		if paused := c.pause(ctx, n); paused != nil {
			return errors.Join(paused, err)
		}
	}
}

func pause(ctx context.Context, attempt int) error {
	return failure.Pause(ctx, failure.Backoff(attempt))
}

// explainObject is explain for a call that reads an object.
//
// Rule 13: an object counts as missing only if a listing that began after the reply lacks it too.
// The listing also shows whether the bucket is missing: replies to HEAD have no body with a code.
func (c *cloud) explainObject(ctx context.Context, name string, err error) error {
	answer, answered := replyOf(err)
	if !answered || answer.status != http.StatusNotFound || ctx.Err() != nil {
		return c.explain(ctx, err)
	}
	for o, listed := range c.List(ctx, name) { // the object would be the first
		if listed != nil {
			return listed
		}
		if o.Name == name {
			return refused(failure.Transient, "", "the object is listed, but was not found: %w", err)
		}
		break
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
	case errors.Is(err, errNotStore):
		return refused(failure.Transient, hintNotStore, "%w", err)
	case answered && answer.taken():
		return fmt.Errorf("%w: %w", ErrExists, err)
	case answered:
		class, hint := answer.class()
		return refused(class, strings.ReplaceAll(hint, "BUCKET", c.url), "%w", err)
	}
	class, hint := classOfCall(err)
	return refused(class, hint, "%w", err)
}
