package apply

import "context"

// RetryArchived tries the dead letters of an item again in a table without a target: all are
// letters of the archive, and there are no rows that a put would make true.
func RetryArchived(
	ctx context.Context, shared *Shared, o *Options, letters *DeadLetters, item *ResyncItem,
) (ResyncOutcome, error) {
	refs := letters.of(item.Hash, true)
	if len(refs) == 0 {
		return ResyncOutcome{}, nil
	}
	x := &resyncing{worker: newWorker(&lanePass{o: o, shared: shared, letters: letters}), item: item}
	if err := x.readKey(); err != nil {
		return x.out, err
	}
	if err := x.loadLetters(ctx, refs); err != nil {
		return x.out, err
	}
	return x.out, x.settleLetters(ctx)
}
