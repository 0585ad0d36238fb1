package outcome

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/queue"
)

// AwaitNext waits for a pause, or shorter: until a request comes and the log has another newest
// entry than when the wait began, as after resume. Requests alone prove nothing: status sends one
// every second while it waits. newest returns the newest entry; it may fail, also in the beginning:
// then the first request after which it succeeds ends the wait. AwaitNext returns false when ctx
// ends.
func AwaitNext(
	ctx context.Context, pause time.Duration, requests <-chan struct{}, newest func(context.Context) (queue.Info, error),
) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var known queue.Info
	if requests != nil {
		first, cancel := context.WithTimeout(ctx, pause)
		known, _ = newest(first)
		cancel()
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-requests:
			if now, err := newest(ctx); err == nil && now.Last != known.Last {
				return true
			}
		}
	}
}
