package bucket

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Expiry is a rule of a bucket's lifecycle that deletes objects of the archive.
type Expiry struct {
	Rule   string
	Prefix string        // of their names in the archive; "": of all
	After  time.Duration // since they were created; 0: at a date
}

// ErrNoLifecycle means that a store does not expose its lifecycle rules to its clients.
var ErrNoLifecycle = errors.New("the store does not tell its lifecycle rules")

// Lifecycle returns the rules of a bucket's lifecycle that delete objects of the archive. A
// directory has none. It returns ErrNoLifecycle where the service has no such call, and an error of
// class Denied where it may not be made.
func Lifecycle(ctx context.Context, b Bucket) ([]Expiry, error) {
	c, ok := b.(*cloud)
	if !ok {
		return nil, nil
	}
	var rules []expiry
	err := c.retryRead(ctx, func() (err error) {
		limited, cancel := c.limited(ctx, 0)
		defer cancel()
		rules, err = c.lifecycle(limited)
		if answer, answered := replyOf(err); answered && answer.status == http.StatusNotImplemented {
			return ErrNoLifecycle
		}
		if errors.Is(err, ErrNoLifecycle) {
			return err
		}
		return c.explain(ctx, err)
	})
	if errors.Is(err, ErrNoLifecycle) {
		return nil, err
	}
	if err != nil {
		return nil, wrap(ctx, "read lifecycle of "+c.url, err)
	}
	var all []Expiry
	for _, r := range rules {
		if !r.mayEnd() {
			continue
		}
		for _, p := range r.prefixes {
			if within, reaches := within(c.prefix, p); reaches {
				all = append(all, Expiry{Rule: r.id, Prefix: within, After: r.after})
			}
		}
	}
	return all, nil
}

// expiry is a rule that deletes objects of the bucket.
type expiry struct {
	id       string
	prefixes []string // of keys; one of them matches. "" matches all
	suffixes []string // of keys, one of which must match; none: any
	after    time.Duration
}

// within returns the prefix of the names in the archive that a prefix of keys covers; false for
// none.
func within(archive, keys string) (prefix string, reaches bool) {
	if strings.HasPrefix(archive, keys) {
		return "", true
	}
	return strings.CutPrefix(keys, archive)
}

// endings are how names end that an archive creates.
var endings = []string{".json", ".parquet", ".jsonl.zst", "~"}

// mayEnd reports whether a name of the archive may end as the rule demands.
func (r *expiry) mayEnd() bool {
	return len(r.suffixes) == 0 || slices.ContainsFunc(r.suffixes, func(s string) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(e, s) || strings.HasSuffix(s, e) })
	})
}

const day = 24 * time.Hour
