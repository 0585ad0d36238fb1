package pipe

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/tailrace-cdc/replicator/bulk/comparison"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

func init() {
	register.DoFn3x1[context.Context, int, func(int, []byte), error](&projectFile{})
	register.DoFn2x0[int, func(int, []byte)](&emptyRange{})
	register.DoFn4x1[context.Context, int, func(*[]byte) bool, func(int), error](&compareRange{})
	register.Emitter2[int, []byte]()
	register.Iter1[[]byte]()
}

// Compare adds the comparison of a plan to a pipeline. About 90 bytes of each row pass the engine:
//
//	Impulse → the numbers of files → Reshuffle → projectFile ─┐
//	Impulse → the numbers of ranges ──────────── emptyRange ──┴→ by range → compareRange → ended
func Compare(s beam.Scope, p comparison.Place, plan *distributed.Plan) {
	s = s.Scope("compare")
	files := beam.ParDo(s, &numbers{Files: plan.Files()}, beam.Impulse(s))
	records := beam.ParDo(s, &projectFile{Place: p}, beam.Reshuffle(s, files))
	// A range without a record has rows all the same, perhaps.
	ranges := beam.ParDo(s, &numbers{Files: plan.Ranges()}, beam.Impulse(s))
	empty := beam.ParDo(s, &emptyRange{}, ranges)
	over := beam.ParDo(s, &compareRange{Place: p}, beam.GroupByKey(s, beam.Flatten(s, records, empty)))
	beam.ParDo0(s, &ended{}, beam.Reshuffle(s, over)) // as in Copy
}

// projectFile projects the items of a file.
type projectFile struct {
	Place comparison.Place

	comparison *comparison.Comparison
	records    beam.Counter
}

// Setup opens what the process shares.
func (f *projectFile) Setup() (err error) {
	f.records = beam.NewCounter("replicator", "records")
	f.comparison, err = comparison.Shared(f.Place)
	return hinted(err)
}

// ProcessElement emits the records of a file.
func (f *projectFile) ProcessElement(ctx context.Context, n int, emit func(int, []byte)) error {
	records := int64(0)
	err := f.comparison.Project(ctx, n, func(at int, value []byte) {
		emit(at, append([]byte(nil), value...))
		records++
	})
	f.records.Inc(ctx, records)
	return hinted(err)
}

// emptyRange makes an element of each range.
type emptyRange struct{}

// ProcessElement emits an empty value for a range.
func (*emptyRange) ProcessElement(n int, emit func(int, []byte)) { emit(n, nil) }

// compareRange compares the records of a range with its rows.
type compareRange struct {
	Place comparison.Place

	comparison *comparison.Comparison
	ranges     beam.Counter
}

// Setup opens what the process shares.
func (f *compareRange) Setup() (err error) {
	f.ranges = beam.NewCounter("replicator", "ranges")
	f.comparison, err = comparison.Shared(f.Place)
	return hinted(err)
}

// ProcessElement compares a range. Its findings are in the folder when it returns.
func (f *compareRange) ProcessElement(ctx context.Context, n int, values func(*[]byte) bool, emit func(int)) error {
	if err := f.comparison.Compare(ctx, n, values); err != nil {
		return hinted(err)
	}
	f.ranges.Inc(ctx, 1)
	emit(n)
	return nil
}
