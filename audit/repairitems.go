package audit

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/verify"
)

// tableRepair repairs the items of one table.
type tableRepair struct {
	*Repairer
	table     *catalog.Table
	result    *RepairedTable
	pair      *pair.Pair
	requester *control.Requester
	batch     []item
}

// item is an item on its way to being equal.
type item struct {
	key     []byte // canonical
	rows    [][]byte
	future  change.Version
	hot     time.Time // until when a newer write keeps a difference; zero for none
	refused bool
}

const (
	repairTries = 3 // of an item that still differs afterwards
	repairPause = 2 * time.Second
)

// flush has the items of the batch repaired, and settles them. Those that still differ are asked
// for again.
func (w *tableRepair) flush(ctx context.Context) (err error) {
	open := w.batch
	w.batch = nil
	if len(open) == 0 {
		return nil
	}
	if w.pair == nil {
		if w.pair, err = w.OpenPair(ctx, w.table.Source); err != nil {
			return err
		}
		w.requester = w.Requester(w.table.Source)
	}
	for n := 1; len(open) > 0; n++ {
		if err := w.ask(ctx, open); err != nil {
			return err
		}
		if open, err = w.settle(ctx, open, n == repairTries); err != nil || len(open) == 0 {
			return err
		}
		if err := failure.Pause(ctx, repairPause<<n); err != nil {
			return err
		}
	}
	return nil
}

// ask requests a correction of the rows of items from the owner, and waits for it.
func (w *tableRepair) ask(ctx context.Context, items []item) error {
	at := 0
	w.requester.Each = func(c *request.Chunk, o *request.Outcome) {
		for _, n := range o.Notes {
			x := &items[at+n.Item]
			if x.hot = n.Until; n.Until.IsZero() {
				x.refused = true
			}
		}
		at += len(c.Items)
	}
	for i := range items {
		items[i].hot, items[i].refused = time.Time{}, false
	}
	done, err := w.requester.Do(ctx, request.Resync, repairRequests(items))
	if err != nil {
		return err
	}
	w.result.Written, w.result.Left = w.result.Written+done.Written, w.result.Left+done.Left
	return nil
}

func repairRequests(items []item) iter.Seq2[request.Item, error] {
	return func(yield func(request.Item, error) bool) {
		for i := range items {
			if !yield(request.Item{Key: items[i].key, Rows: items[i].rows, Future: items[i].future}, nil) {
				return
			}
		}
	}
}

// settle settles items again, and counts the results. It returns the items that may be repaired by
// another request. An item with a newer write in its rows than its repair may be equal: the stream
// has written it.
func (w *tableRepair) settle(ctx context.Context, items []item, last bool) (again []item, err error) {
	candidates := make([]verify.Candidate, len(items))
	for i := range items {
		candidates[i] = verify.Candidate{Table: w.pair.Index(w.table.Source), Key: string(items[i].key), Rows: items[i].rows}
	}
	settler := w.pair.Settler()
	w.pair.KeepLead(&settler)
	verdicts, err := settler.Settle(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("settle what was repaired: %w", err)
	}
	t := w.result
	for i := range verdicts {
		switch v, x := &verdicts[i], items[i]; v.Status {
		case verify.Equal, verify.EqualByLog, verify.Kept:
			t.Repaired++
		case verify.Refused:
			t.Refused++
		case verify.Unproven:
			t.Unproven++
		case verify.Different:
			switch {
			case x.refused:
				t.Refused++
			case !x.hot.IsZero():
				t.Hot++
				if x.hot.After(t.HotUntil) {
					t.HotUntil = x.hot
				}
			case last:
				t.Different++
			default:
				x.rows, x.future = append(x.rows, v.Rows...), v.Future
				again = append(again, x)
			}
		}
	}
	return again, nil
}
