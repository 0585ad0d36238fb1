package audit

import (
	"context"

	"github.com/tailrace-cdc/replicator/queue/request"
)

// foreignDeletion deletes the foreign cells of one target, or only counts them.
type foreignDeletion struct {
	*Repairer
	owner   string // the source table whose owner is asked
	result  *RepairedForeign
	known   map[string]bool // columns; a file has a line for each cell
	columns []request.Column
}

func (x *foreignDeletion) add(c request.Column) {
	id := string(c.Row) + "\x00" + c.Family + "\x00" + string(c.Qualifier)
	if x.known[id] {
		return
	}
	x.known[id] = true
	x.result.Columns++
	x.columns = append(x.columns, c)
}

// run requests the deletion of the columns from the owner, if the user wants it.
func (x *foreignDeletion) run(ctx context.Context) error {
	if !x.DeleteForeign {
		return nil
	}
	x.result.Asked = true
	requester := x.Requester(x.owner)
	requester.Each = func(_ *request.Chunk, o *request.Outcome) {
		for _, n := range o.Notes {
			if x.result.Left == nil {
				x.result.Left = map[string]int{}
			}
			x.result.Left[n.Code]++
		}
	}
	items := func(yield func(request.Item, error) bool) {
		for _, c := range x.columns {
			if !yield(request.Item{Columns: []request.Column{c}}, nil) {
				return
			}
		}
	}
	if x.NoWait {
		sent, err := requester.Send(ctx, request.Foreign, items)
		x.result.Requests = sent.IDs
		return err
	}
	done, err := requester.Do(ctx, request.Foreign, items)
	if done != nil {
		x.result.Deleted = done.Deleted
	}
	return err
}
