package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// shardRef names a shard: by its id, or by a table and a number among its open shards in the order
// of their keys. The number -1 picks one at random.
type shardRef struct {
	Shard string `json:"shard"`
	Table string `json:"table"`
	Open  *int   `json:"open"`
}

// shard returns the id of the shard that a reference names.
func (c *Console) shard(w shardRef) (string, error) {
	if w.Shard != "" {
		return w.Shard, nil
	}
	if w.Table == "" {
		return "", errors.New("name a shard, or a table and the number of an open shard")
	}
	open := c.Stream.OpenShards(w.Table)
	if len(open) == 0 {
		return "", fmt.Errorf("table %s has no open shard", w.Table)
	}
	at := 0
	if w.Open != nil {
		at = *w.Open
	}
	if at == -1 {
		c.mu.Lock()
		at = c.rnd.IntN(len(open))
		c.mu.Unlock()
	}
	if at < 0 || at >= len(open) {
		return "", fmt.Errorf("table %s has %d open shards, no number %d", w.Table, len(open), at)
	}
	return open[at], nil
}

// optionalShard is shard, with "" for a reference that names nothing.
func (c *Console) optionalShard(w shardRef) (string, error) {
	if w.Shard == "" && w.Table == "" {
		return "", nil
	}
	return c.shard(w)
}

// forSpan is the argument "for".
type forSpan struct {
	For Span `json:"for"`
}

// onOff is the argument "on", which is true by default.
type onOff struct {
	On *bool `json:"on"`
}

func (o onOff) on() bool { return o.On == nil || *o.On }

// table is the argument "table".
type table struct {
	Table string `json:"table"`
}

// streamCommands registers what moves shards and trims records, and the faults of streams.
func (c *Console) streamCommands() {
	add(c, "split", "closes an open shard and gives it n children (default 2)", c.split)
	add(c, "rotate", "closes every open shard, of one table or of all, each with one child",
		func(_ context.Context, a table) (any, error) {
			return map[string]int{"rotated": c.Stream.Rotate(a.Table)}, nil
		})
	do(c, "rotate_every", "rotates each time this much of the sandbox's time has passed; 0s ends it", func(a struct {
		Table string `json:"table"`
		Every Span   `json:"every"`
	}) {
		c.Stream.RotateEvery(a.Table, a.Every.d())
	})
	add(c, "trim", "removes stream records older than a time, or than a span of the sandbox's time", c.trim)
	add(c, "shards", "lists the open shards of a table in the order of their keys",
		func(_ context.Context, a table) (any, error) {
			return map[string][]string{"open": c.Stream.OpenShards(a.Table)}, nil
		})
	c.listingCommands()
	c.readingCommands()
}

// split closes a shard and opens its children.
func (c *Console) split(_ context.Context, a struct {
	shardRef
	N int `json:"n"`
}) (any, error) {
	shard, err := c.shard(a.shardRef)
	if err != nil {
		return nil, err
	}
	if a.N == 0 {
		a.N = 2
	}
	children, err := c.Stream.Split(shard, a.N)
	return map[string]any{"parent": shard, "children": children}, err
}

// trim removes old records.
func (c *Console) trim(_ context.Context, a struct {
	Before    time.Time `json:"before"`
	OlderThan *Span     `json:"older_than"`
}) (any, error) {
	switch {
	case a.OlderThan != nil:
		a.Before = c.Clock.Now().Add(-a.OlderThan.d())
	case a.Before.IsZero():
		return nil, errors.New("want before (RFC 3339) or older_than")
	}
	return map[string]int{"trimmed": c.Stream.Trim(a.Before)}, nil
}

// listingCommands registers the faults of DescribeStream.
func (c *Console) listingCommands() {
	x := c.Stream.Faults()
	do(c, "hide_children", "leaves shards with a parent out of listings until they are this old",
		func(a forSpan) { x.HideChildren(a.For.d()) })
	do(c, "open_parents", "lists shards that are split from now on as open for this long, beside their children",
		func(a forSpan) { x.OpenParents(a.For.d()) })
	do(c, "drop_parents", "leaves closed shards that have a child out of listings",
		func(a onOff) { x.DropParents(a.on()) })
	add(c, "drop_shard", "leaves one shard out of listings", func(_ context.Context, a struct {
		shardRef
		onOff
	}) (any, error) {
		shard, err := c.shard(a.shardRef)
		if err == nil {
			x.DropShard(shard, a.on())
		}
		return nil, err
	})
	do(c, "list_page", "shows at most n shards a page of DescribeStream; 0 is the service's 100", func(a struct {
		N int `json:"n"`
	}) {
		x.ListPage(a.N)
	})
}

// readingCommands registers the faults of iterators and GetRecords.
func (c *Console) readingCommands() {
	x := c.Stream.Faults()
	add(c, "false_ends", "makes the next n GetRecords, of a shard or of any, end an open shard; n -1 until it is 0",
		func(_ context.Context, a struct {
			shardRef
			N int `json:"n"`
		}) (any, error) {
			shard, err := c.optionalShard(a.shardRef)
			if err == nil {
				x.FalseEnds(shard, a.N)
			}
			return nil, err
		})
	add(c, "empty_pages", "makes the next n GetRecords, of a shard or of any, return nothing",
		func(_ context.Context, a struct {
			shardRef
			N int `json:"n"`
		}) (any, error) {
			shard, err := c.optionalShard(a.shardRef)
			if err == nil {
				x.EmptyPages(shard, a.N)
			}
			return nil, err
		})
	do(c, "late_end", "makes closed shards end with an empty page instead of with their last records",
		func(a onOff) { x.LateEnd(a.on()) })
	do(c, "latest_slack", "makes LATEST return records up to this old", func(a forSpan) { x.LatestSlack(a.For.d()) })
	do(c, "iterator_ttl", "lets iterators expire after this long; 0s is the service's 15 minutes",
		func(a forSpan) { x.IteratorTTL(a.For.d()) })
	do(c, "readers", "refuses more than n readers of a shard with LimitExceededException; 0 is no limit", func(a struct {
		N int `json:"n"`
	}) {
		x.ReadersPerShard(a.N)
	})
	do(c, "record_skew", "shifts the creation times of records committed from now on", func(a struct {
		By Span `json:"by"`
	}) {
		x.RecordSkew(a.By.d())
	})
	do(c, "record_jitter", "shifts each creation time of records committed from now on by up to within; 0s ends it",
		func(a struct {
			Within Span `json:"within"`
		}) {
			x.RecordJitter(a.Within.d())
		})
	do(c, "record_cut", "cuts creation times of records committed from now on to multiples of to; 0s ends it",
		func(a struct {
			To Span `json:"to"`
		}) {
			x.RecordCut(a.To.d())
		})
	add(c, "record_times", "spells creation times of records committed from now on: seconds, fraction or exponent",
		func(_ context.Context, a struct {
			Format string `json:"format"`
		}) (any, error) {
			f, ok := map[string]stream.TimeFormat{"": stream.Seconds, "seconds": stream.Seconds, "fraction": stream.Fraction,
				"exponent": stream.Exponent}[a.Format]
			if !ok {
				return nil, fmt.Errorf("format %q: want seconds, fraction or exponent", a.Format)
			}
			x.RecordTimes(f)
			return nil, nil
		})
	add(c, "throttle_shard", "refuses GetRecords of a shard: the next times calls, or those beyond per_second; "+
		"without both it ends", c.throttleShard)
}

// throttleCodes are the codes that throttle_shard takes; the first is its default.
var throttleCodes = []string{
	"ThrottlingException", "LimitExceededException", "ProvisionedThroughputExceededException", "InternalServerError",
}

// throttleShard refuses GetRecords of a shard, a number of times or beyond a rate.
func (c *Console) throttleShard(_ context.Context, a struct {
	shardRef
	Code      string   `json:"code"`
	Times     int      `json:"times"`
	PerSecond *float64 `json:"per_second"`
}) (any, error) {
	shard, err := c.shard(a.shardRef)
	if err != nil {
		return nil, err
	}
	if a.Code == "" {
		a.Code = throttleCodes[0]
	}
	if !slices.Contains(throttleCodes, a.Code) {
		return nil, fmt.Errorf("code %q: want one of %v", a.Code, throttleCodes)
	}
	rate := -1.0
	if a.PerSecond != nil {
		rate = *a.PerSecond
	}
	c.Stream.Faults().ThrottleShard(shard, a.Code, a.Times, rate)
	return nil, nil
}
