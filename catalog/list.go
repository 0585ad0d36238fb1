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
// the tables of logs that DynamoDB does not have.
func (l *lister) list(ctx context.Context, cfg *config.Config, logged []string) ([]config.Listed, error) {
	names, err := l.src.ListTables(ctx)
	if err != nil {
		return nil, err
	}
	var all []config.Listed
	for _, name := range names {
		t := config.Listed{Name: name, Logged: slices.Contains(logged, name)}
		if cfg.SelectsTags(name) {
			t.Tags, err = l.tags(ctx, name)
			if source.Classify(err) == failure.Gone { // deleted meanwhile, or not made yet
				_, err = l.src.Table(ctx, name) // Rule 13
				if t.Missing = source.Classify(err) == failure.Gone; !t.Missing {
					err = errors.Join(err, fmt.Errorf("table %s is there, and its tags are not found", name))
				} else {
					err = nil
				}
			}
			if err != nil {
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
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
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
// table is gone, it finds a later one.
func firstStart(ctx context.Context, q *queue.Queue) (first change.Millis, err error) {
	tables, err := q.Tables(ctx)
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		l, err := q.Log(ctx, table)
		if err != nil {
			return 0, fmt.Errorf("look for the first start: open log of %s: %w", table, err)
		}
		s, err := l.Fold(ctx)
		if err != nil {
			return 0, fmt.Errorf("look for the first start: read log of %s: %w", table, err)
		}
		if len(s.Streams) > 0 && (first == 0 || s.Streams[0].Date < first) {
			first = s.Streams[0].Date
		}
	}
	return first, nil
}
