package launch

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// itemCPU is what an item costs on a core. A prototype took 35 to 39 µs on Prism, Flink and Spark.
const itemCPU = 40 * time.Microsecond

// Plan checks what a job needs, as far as this process can, and prints what it would do. Nothing is
// started, and nothing is written.
func (l *Launch) Plan(ctx context.Context, o *delegation.Order) error {
	if _, _, err := worker.Compile(o); err != nil {
		return err
	}
	e, err := l.Place.OpenExport(ctx, o)
	if err != nil {
		return err
	}
	c, err := l.Place.Client(ctx, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	t := newTally(o)
	if err := t.read(ctx, c); err != nil {
		return bigtable.Explain(err)
	}
	var items, size int64
	for n, f := range e.Files {
		if o.Needs(n) {
			items += f.Items
			size += f.Size
		}
	}
	left := max(items-t.items, 0)
	l.print("order      %s of %s", o.ID, time.UnixMilli(int64(o.Opened)).UTC().Format(time.RFC3339))
	l.print("export     %s, as of %s", e.URL, e.Time.Time().UTC().Format(time.RFC3339))
	l.print("files      %d, %.1f MB compressed, %d of them copied already", t.wanted, float64(size)/1e6, t.files)
	l.print("items      %d, %d of them left: about %.1f core-hours", items, left, (time.Duration(left) * itemCPU).Hours())
	l.print("target     table %s, instance %s of project %s", o.Target, l.Place.Instance, l.Place.Project)
	l.print("nothing was started and nothing was written")
	return nil
}
