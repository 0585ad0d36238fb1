package retry

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// Retrier applies dead letters, and counts the outcomes. It is not safe for concurrent use.
type Retrier struct {
	pipeline string
	clients  *wire.Clients
	sink     *bigtable.Client

	dec   change.Decoder
	write transform.Write

	Result
}

// Result counts the letters by outcome.
type Result struct {
	Applied int      // and deleted
	Refused int      // once more; they stay
	Left    int      // not tried, because an earlier letter of their item was refused
	Reasons []string // of the refused ones, a line each
}

// New returns a retrier for the tables of a pipeline. It opens clients as it needs them.
func New(ctx context.Context, pipeline string, clients *wire.Clients) (*Retrier, error) {
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return nil, err
	}
	return &Retrier{pipeline: pipeline, clients: clients, sink: sink}, nil
}

// Letters are the dead letters of one table.
type Letters struct {
	*deadletter.Store
	LogCreated time.Time
	Only       *deadletter.Letter // if set, only the letters of this one's item are applied
}

// Table applies the letters of one table, item by item. A refused letter is not an error; Table returns one that keeps
// the next items from being tried.
func (r *Retrier) Table(ctx context.Context, t *catalog.Table, letters Letters) error {
	items, err := r.items(ctx, t, letters)
	if err != nil || len(items) == 0 {
		return err
	}
	if err := r.checkIdentity(ctx, t, letters.LogCreated); err != nil {
		return err
	}
	for _, ids := range items {
		x := item{Retrier: r, table: t, letters: letters.Store}
		if err := x.apply(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// itemKey identifies an item and the sink that refused its changes.
type itemKey struct {
	sink string
	hash uint64
}

func keyOf(l *deadletter.Letter) itemKey { return itemKey{l.Sink, l.KeyHash} }

// items returns the ids of the letters by item, each item's in version order; items in the order in which they were
// first refused. The records stay in the store, because all of them may be more than fits in memory. A letter that
// cannot be read counts as refused.
func (r *Retrier) items(ctx context.Context, t *catalog.Table, letters Letters) (items [][]string, err error) {
	byItem := map[itemKey][]*deadletter.Letter{}
	var order []itemKey
	for l, err := range letters.All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list dead letters of %s: %w", t.Source, err)
		}
		k := keyOf(l)
		if letters.Only != nil && k != keyOf(letters.Only) {
			continue
		}
		if l.Code == deadletter.CodeUnreadable {
			r.refuse(l.ID, l.Code, l.Reason)
			continue
		}
		if byItem[k] == nil {
			order = append(order, k)
		}
		l.Raw = nil
		byItem[k] = append(byItem[k], l)
	}
	for _, k := range order {
		slices.SortFunc(byItem[k], func(a, b *deadletter.Letter) int { return cmp.Compare(a.Version, b.Version) })
		var ids []string
		for _, l := range byItem[k] {
			ids = append(ids, l.ID)
		}
		items = append(items, ids)
	}
	return items, nil
}

// refuse counts a letter that was refused.
func (r *Retrier) refuse(id, code, reason string) {
	r.Refused++
	r.Reasons = append(r.Reasons, fmt.Sprintf("%s: %s (%s)", id, reason, code))
}

// checkIdentity refuses what run refuses: rows of another mapping would stay beside those of this one permanently.
func (r *Retrier) checkIdentity(ctx context.Context, t *catalog.Table, logCreated time.Time) error {
	row, err := r.sink.LoadState(ctx, r.pipeline, t.Source)
	if err != nil {
		return exit.Bigtable(fmt.Errorf("retry dead letters of %s: %w", t.Source, err))
	}
	hash := t.Program.Hash()
	refused := pipeline.CheckIdentity(row, bigtable.Identity{
		Pipeline: r.pipeline, Table: t.Source, TableID: t.Info.ID, LogCreated: logCreated.UTC(),
		MappingHash: hex.EncodeToString(hash[:]), Target: r.sink.TargetName(t.Target),
	})
	if refused != nil {
		return exit.Environment(fmt.Errorf("retry dead letters of %s: %w", t.Source, refused), refused.Hint)
	}
	return nil
}
