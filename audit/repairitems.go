package audit

import (
	"context"
	"errors"
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
	"github.com/tailrace-cdc/replicator/verify/report"
)

// tableRepair repairs the items of one table.
type tableRepair struct {
	*Repairer
	table     *catalog.Table
	result    *RepairedTable
	pair      *pair.Pair
	requester *control.Requester
	batch     []item
	asked     bool         // all items were asked for at once
	outcomes  map[int]item // by their number in what is read: the hot and refused ones of those
	read      int          // items that were read again since
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
	}
	for n := 1; len(open) > 0; n++ {
		if n > 1 || !w.asked {
			if err := w.ask(ctx, open, n == 1); err != nil {
				return err
			}
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

// errEnough ends the reading of what is repaired when no more of its items are taken.
var errEnough = errors.New("enough")

// askAll asks for all items of the table at once, and waits for that unless the options do not.
func (w *tableRepair) askAll(ctx context.Context) error {
	items := func(yield func(request.Item, error) bool) {
		err := w.each(ctx, func(d *report.Difference) error {
			if d.Key == nil || d.Table != w.table.Source {
				return nil
			}
			if !w.counted {
				w.result.Items++
			}
			key, err := control.ParseKey(d.Key, w.table.Info.Schema)
			if err == nil && !yield(request.Item{Key: key, Rows: d.Rows, Future: d.Future}, nil) {
				err = errEnough
			}
			return err
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(request.Item{}, err)
		}
	}
	if w.NoWait {
		sent, err := w.Requester(w.table.Source).Send(ctx, request.Resync, items)
		w.result.Requests, w.result.Asked = sent.IDs, sent
		return err
	}
	w.asked, w.outcomes = true, map[int]item{}
	return w.request(ctx, items, true, func(n int, it item) { w.outcomes[n] = it })
}

// ask requests a correction of the rows of items from the owner, and waits for it.
func (w *tableRepair) ask(ctx context.Context, items []item, first bool) error {
	for i := range items {
		items[i].hot, items[i].refused = time.Time{}, false
	}
	return w.request(ctx, repairRequests(items), first, func(n int, it item) {
		items[n].hot, items[n].refused = it.hot, it.refused
	})
}

// request asks for items and waits until they are done. noted receives the number of each item
// that is hot or refused. What was equal already counts at the first time of an item only.
func (w *tableRepair) request(
	ctx context.Context, items iter.Seq2[request.Item, error], first bool, noted func(n int, it item),
) error {
	if w.requester == nil {
		w.requester = w.Requester(w.table.Source)
	}
	at := 0
	w.requester.Each = func(c *request.Chunk, o *request.Outcome) {
		for _, n := range o.Notes {
			noted(at+n.Item, item{hot: n.Until, refused: n.Until.IsZero()})
		}
		at += len(c.Items)
	}
	done, err := w.requester.Do(ctx, request.Resync, items)
	if err != nil {
		return err
	}
	if !first {
		done.Equal = 0
	}
	w.result.add(done)
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
	verdicts, err := settler.Decide(ctx, candidates)
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
