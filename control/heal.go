package control

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// Heal requests the owner to make archival events of what gaps lost, and returns the id of the
// request; with wait, when it is done, and its outcome.
func (r *Requester) Heal(ctx context.Context, h *request.HealOrder, wait bool) (string, *request.Outcome, error) {
	c := &request.Chunk{ID: request.NewID() + "-000000", What: request.Heal, By: r.By, Asked: time.Now().UTC(), Heal: h}
	if err := r.send(ctx, c); err != nil || !wait {
		return c.ID, nil, err
	}
	p := &count{}
	p.all.Store(true)
	defer r.show(ctx, p)()
	out, err := r.await(ctx, c.ID)
	if err != nil {
		return c.ID, nil, err
	}
	if out.Failed != "" {
		err := fmt.Errorf("the owner of %s refuses the request: %s", r.Table, out.Failed)
		return c.ID, nil, failure.With(failure.Unready, out.Hint, err)
	}
	return c.ID, out, nil
}
