package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/time/rate"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// tagCalls is how many times a second tags are asked for. The service allows ten, for the whole
// account.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListTagsOfResource.html
const tagCalls = 5

// errPaced means that there is no time for the tags of all tables at this pace.
var errPaced = errors.New("wait to ask for tags")

// lister lists the tables of an account.
type lister struct {
	src   *source.Source
	pace  *rate.Limiter
	place string // what the ARN of each table begins with; "": not known yet
}

func newLister(src *source.Source) *lister {
	return &lister{src: src, pace: rate.NewLimiter(tagCalls, tagCalls)}
}

// list returns the tables that DynamoDB has, with their tags where a selection requires them, and
// the tables of logs that DynamoDB does not have. What cannot be found out about one table is noted
// with it: the others are listed all the same.
func (l *lister) list(ctx context.Context, cfg *config.Config, logged []string) ([]config.Listed, error) {
	names, err := l.src.ListTables(ctx)
	if err != nil {
		return nil, err
	}
	var all []config.Listed
	for _, name := range names {
		t := config.Listed{Name: name, Logged: slices.Contains(logged, name)}
		if cfg.SelectsTags(name) {
			t.Tags, t.Missing, err = l.tagsOrMissing(ctx, name)
			if err = noteUnread(ctx, &t, err); err != nil {
				return nil, err
			}
		}
		if !t.Missing || t.Logged {
			all = append(all, t)
		}
	}
	for _, name := range logged {
		if slices.Contains(names, name) {
			continue
		}
		t, err := l.unlistedTable(ctx, cfg, name)
		if err = noteUnread(ctx, &t, err); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// noteUnread notes with a table what could not be found out about it. It returns an error that is
// about all tables: there is no time left.
func noteUnread(ctx context.Context, t *config.Listed, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errPaced) {
		return err
	}
	t.Tags, t.Unread = nil, err.Error()
	return nil
}

// tagsOrMissing returns the tags of a listed table, or that it is missing: deleted meanwhile, or
// not made yet.
//
// Rule 13: it is missing only if its description is, too.
func (l *lister) tagsOrMissing(ctx context.Context, name string) (tags map[string]string, missing bool, err error) {
	if tags, err = l.tags(ctx, name); source.Classify(err) != failure.Gone {
		return tags, false, err
	}
	_, err = l.src.Table(ctx, name)
	if source.Classify(err) == failure.Gone {
		return nil, true, nil
	}
	return nil, false, errors.Join(err, fmt.Errorf("table %s is there, and its tags are not found", name))
}

// unlistedTable returns a table that has a log, and that the listing does not show.
//
// Rule 13: it has vanished only if its description is missing too.
func (l *lister) unlistedTable(ctx context.Context, cfg *config.Config, name string) (config.Listed, error) {
	t := config.Listed{Name: name, Logged: true}
	_, err := l.src.Table(ctx, name)
	if err == nil && cfg.SelectsTags(name) {
		t.Tags, err = l.tags(ctx, name)
	}
	if source.Classify(err) == failure.Gone {
		t.Missing, err = true, nil
	}
	return t, err
}

// tags returns the tags of a table. If there are none it reads them a second time.
//
// Rule 13: which selection chooses a table decides its target and mapping for good.
func (l *lister) tags(ctx context.Context, name string) (map[string]string, error) {
	if l.place == "" {
		info, err := l.src.Table(ctx, name)
		if err != nil {
			return nil, err
		}
		l.place = strings.TrimSuffix(info.ARN, name)
	}
	for again := false; ; again = true {
		if err := l.pace.Wait(ctx); err != nil { // also before ctx ends, when it would end in the wait
			return nil, fmt.Errorf("%w: %w", errPaced, err)
		}
		if tags, err := l.src.Tags(ctx, l.place+name); err != nil || len(tags) > 0 || again {
			return tags, err
		}
	}
}

// unlisted returns the tables of the logs, of which nothing else is known.
func unlisted(logged []string) (all []config.Listed) {
	for _, name := range logged {
		all = append(all, config.Listed{Name: name, Logged: true})
	}
	return all
}

// firstStart returns when the first of the pipeline's tables was started, by the service's clock;
// 0: none was. The logs know it, so every process finds the same time; where the log of the first
// table is gone or cannot be read, it finds a later one, and more tables are copied than need be.
func firstStart(ctx context.Context, q *queue.Queue) (first change.Millis, err error) {
	tables, err := q.Tables(ctx)
	if err != nil {
		return 0, err
	}
	var unread []error
	for _, table := range tables {
		at, err := startOf(ctx, q, table)
		switch {
		case ctx.Err() != nil:
			return 0, err
		case err != nil: // the others tell enough
			unread = append(unread, fmt.Errorf("look for the first start: log of %s: %w", table, err))
		case at > 0 && (first == 0 || at < first):
			first = at
		}
	}
	if first == 0 {
		return 0, errors.Join(unread...)
	}
	return first, nil
}

// startOf returns when a table was started; 0: not yet.
func startOf(ctx context.Context, q *queue.Queue, table string) (change.Millis, error) {
	l, err := q.Log(ctx, table)
	if err != nil {
		return 0, err
	}
	s, err := l.Fold(ctx)
	if err != nil || len(s.Streams) == 0 {
		return 0, err
	}
	return s.Streams[0].Date, nil
}
