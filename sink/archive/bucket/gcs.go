package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/googleauth"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// openGCS opens gs://bucket/prefix with the application default credentials, or without any at an
// emulator (STORAGE_EMULATOR_HOST).
func openGCS(ctx context.Context, u *url.URL, _ Options) (backend, error) {
	identity, err := googleauth.Options(ctx, storage.ScopeReadWrite)
	if err != nil {
		return nil, refused(failure.Denied, "see docs/credentials.md", "%w", err)
	}
	client, err := storage.NewClient(ctx, identity...)
	if err != nil {
		return nil, refused(failure.Denied, "run `gcloud auth application-default login`, set "+
			"GOOGLE_APPLICATION_CREDENTIALS, or give the pod a service account", "%w", err)
	}
	// Calls that change nothing are repeated by package bucket, for all services alike.
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return &inGCS{client, client.Bucket(u.Host)}, nil
}

// inGCS is a bucket of Google Cloud Storage.
type inGCS struct {
	client *storage.Client
	bucket *storage.BucketHandle
}

func (g *inGCS) put(ctx context.Context, key string, body *io.SectionReader, sum []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := g.bucket.Object(key).If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
	w.ChunkSize = 0 // one request; the default is a session of several, and buffers 16 MB
	w.MD5 = sum
	w.ContentType = contentType
	if _, err := io.Copy(w, body); err != nil {
		cancel() // before Close, which would complete the upload
		_ = w.Close()
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, ofJSON(err)
	}
	of, err := stateOf(w.Attrs())
	if err != nil {
		return nil, nil // the caller asks for the object
	}
	return of.sum, nil
}

// stateOf returns what Google states of an object.
func stateOf(a *storage.ObjectAttrs) (stored, error) {
	if a == nil || a.Generation == 0 {
		return stored{}, fmt.Errorf("%w: it names no generation of an object", errNotStore)
	}
	return stored{size: a.Size, sum: a.MD5, version: strconv.FormatInt(a.Generation, 10)}, nil
}

// ofJSON marks the error of a client that could not read an answer, as it is where that is HTML or
// empty.
func ofJSON(err error) error {
	var syntax *json.SyntaxError
	var call *url.Error // the connection was cut
	if errors.As(err, &syntax) || errors.Is(err, io.EOF) && !errors.As(err, &call) {
		return fmt.Errorf("%w: %w", errNotStore, err)
	}
	return err
}

func (g *inGCS) head(ctx context.Context, key string) (stored, error) {
	a, err := g.bucket.Object(key).Attrs(ctx)
	if err != nil {
		return stored{}, ofJSON(err)
	}
	return stateOf(a)
}

func (g *inGCS) list(ctx context.Context, q query) (page, error) {
	objects := g.bucket.Objects(ctx, &storage.Query{
		Prefix: q.prefix, StartOffset: q.after, Projection: storage.ProjectionNoACL,
	})
	var all []*storage.ObjectAttrs
	next, err := iterator.NewPager(objects, q.size, q.token).NextPage(&all)
	if err != nil {
		return page{}, ofJSON(err)
	}
	p := page{next: next}
	if len(all) == 0 {
		return p, g.answers(ctx)
	}
	for _, a := range all {
		if _, err := stateOf(a); err != nil {
			return page{}, err
		}
		p.objects = append(p.objects, Info{Name: a.Name, Size: a.Size})
	}
	return p, nil
}

// answers returns nil if an object is described, or refused, as Google does. The client reads 204,
// and {}, as a listing without objects.
func (g *inGCS) answers(ctx context.Context) error {
	_, err := g.head(ctx, layout.Probe)
	if answer, answered := replyOf(err); answered && answer.status == http.StatusNotFound {
		return nil
	}
	return err
}

func (g *inGCS) read(ctx context.Context, key string, of stored, at, n int64) (io.ReadCloser, error) {
	r, err := g.bucket.Object(key).NewRangeReader(ctx, at, n)
	if err != nil {
		return nil, err
	}
	if strconv.FormatInt(r.Attrs.Generation, 10) != of.version {
		return nil, errors.Join(fmt.Errorf("%w: it is of another object", errNotStore), r.Close())
	}
	return r, nil
}

// lifecycle leaves out rules that match no object of an archive: those for versions that were
// replaced, and those for objects with a time of their own.
func (g *inGCS) lifecycle(ctx context.Context) (all []expiry, err error) {
	a, err := g.bucket.Attrs(ctx)
	if err != nil {
		return nil, ofJSON(err)
	}
	if a.Name == "" {
		return nil, fmt.Errorf("%w: it describes no bucket", errNotStore)
	}
	for i, r := range a.Lifecycle.Rules {
		c := &r.Condition
		if r.Action.Type != storage.DeleteAction || c.Liveness == storage.Archived || c.NumNewerVersions > 0 ||
			c.DaysSinceNoncurrentTime > 0 || !c.NoncurrentTimeBefore.IsZero() ||
			c.DaysSinceCustomTime > 0 || !c.CustomTimeBefore.IsZero() {
			continue
		}
		e := expiry{
			id: "number " + strconv.Itoa(i+1), prefixes: c.MatchesPrefix, suffixes: c.MatchesSuffix,
			after: time.Duration(c.AgeInDays) * day,
		}
		if len(e.prefixes) == 0 {
			e.prefixes = []string{""}
		}
		all = append(all, e)
	}
	return all, nil
}

func (g *inGCS) close() error { return g.client.Close() }
