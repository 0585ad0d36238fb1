package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// RowFormat is the highest format of a Row that this build reads.
const RowFormat = 1

// Row names the format that a pipeline's logs are written in. It is only ever raised.
type Row struct {
	Format int       `json:"format"` // Rule 11: Everything stored carries a format number.
	Log    int       `json:"log"`    // the highest format that a log of the pipeline may have
	Build  string    `json:"build"`  // version of the build that raised it, for those that must be upgraded
	By     string    `json:"by"`     // what raised it: ByStart, ByFinalize or ByAgreement
	Since  time.Time `json:"since"`  // by the clock of the machine that wrote it

	stored []byte // as it was loaded, with which a swap compares
}

// What raises a row.
const (
	ByStart     = "start"
	ByFinalize  = "upgrade --finalize"
	ByAgreement = "agreement"
)

// Store keeps the row of each pipeline. old is nil where there is none; Swap reports whether the
// row is next afterwards.
type Store interface {
	Load(ctx context.Context, pipeline string) (*Row, error)
	Swap(ctx context.Context, pipeline string, old, next *Row) (bool, error)
}

// Raise makes the row name at least the format of next, and returns the row as it is then. It may
// be repeated.
func Raise(ctx context.Context, s Store, pipeline string, next Row) (*Row, error) {
	next.Format, next.Since = RowFormat, next.Since.UTC()
	for {
		have, err := s.Load(ctx, pipeline)
		if err != nil {
			return nil, err
		}
		if have != nil && have.Log >= next.Log {
			return have, nil
		}
		won, err := s.Swap(ctx, pipeline, have, &next)
		if err != nil {
			return nil, err
		}
		if won {
			return &next, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// Check returns why this build must not work on the pipeline; nil if it may. It may work on logs of
// an older format.
//
// Rule 11: a newer format is refused before anything is written.
func (r *Row) Check(pipeline string) *outcome.RefusedError {
	if r == nil || r.Log <= checkpoint.Format {
		return nil
	}
	return &outcome.RefusedError{
		What: fmt.Sprintf("pipeline %s has format %d since %s, this build reads up to %d", pipeline, r.Log,
			r.Since.Format(time.RFC3339), checkpoint.Format),
		Hint: fmt.Sprintf("upgrade the replicator: version %s or later; there is no way back to an older format", r.Build),
	}
}

// decode reads a stored row.
func decode(stored []byte) (*Row, error) {
	if stored == nil {
		return nil, nil
	}
	r := &Row{stored: stored}
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, fmt.Errorf("decode format of the pipeline: %w", err)
	}
	if r.Format > RowFormat { // Rule 11
		return nil, fmt.Errorf("decode format of the pipeline: %w",
			&bigtable.NewerFormatError{Have: r.Format, Know: RowFormat})
	}
	return r, nil
}

// InBigtable keeps rows in tailrace_state.
func InBigtable(c *bigtable.Client) Store { return inBigtable{c} }

type inBigtable struct{ client *bigtable.Client }

func (s inBigtable) Load(ctx context.Context, pipeline string) (*Row, error) {
	stored, err := s.client.LoadFormat(ctx, pipeline)
	if err != nil {
		return nil, err
	}
	return decode(stored)
}

func (s inBigtable) Swap(ctx context.Context, pipeline string, old, next *Row) (bool, error) {
	b, err := json.Marshal(next)
	if err != nil {
		return false, err
	}
	var was []byte
	if old != nil {
		was = old.stored
	}
	return s.client.SwapFormat(ctx, pipeline, was, b)
}

// InBucket keeps rows in the archive's bucket, for pipelines in which no table has a target. Each
// format is an object, created if absent, and the highest one counts: so a row cannot fall, and two
// processes that raise it at once agree.
//
// probe checks, before each write, that the bucket creates a name only once.
func InBucket(b bucket.Bucket, probe func(context.Context) error) Store { return inBucket{b, probe} }

type inBucket struct {
	bucket bucket.Bucket
	probe  func(context.Context) error
}

// rowOf is the row's name where the bucket keeps the rows of tables. No table has an exclamation
// mark in its name.
func rowOf(pipeline string) string { return "format!" + pipeline }

func (s inBucket) Load(ctx context.Context, pipeline string) (*Row, error) {
	var last int64
	for info, err := range s.bucket.List(ctx, layout.Lives(rowOf(pipeline))) {
		if err != nil {
			return nil, err
		}
		if n, ok := layout.ParseLife(rowOf(pipeline), info.Name); ok {
			last = max(last, n)
		}
	}
	if last == 0 {
		return nil, nil
	}
	text, err := bucket.ReadText(ctx, s.bucket, layout.Life(rowOf(pipeline), last))
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func (s inBucket) Swap(ctx context.Context, pipeline string, _, next *Row) (bool, error) {
	text, err := json.Marshal(next)
	if err == nil {
		err = s.probe(ctx)
	}
	if err != nil {
		return false, err
	}
	err = bucket.CreateText(ctx, s.bucket, layout.Life(rowOf(pipeline), int64(next.Log)), string(text))
	if errors.Is(err, bucket.ErrExists) {
		return false, nil // the next look finds it
	}
	return err == nil, err
}
