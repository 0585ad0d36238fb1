package outcome

import (
	"context"
	"time"
)

// AwaitNext waits for a pause, or shorter: until a request comes and the log has another newest entry than when the
// wait began, as after resume. Requests alone prove nothing: status sends one every second while it waits. newest
// returns the newest entry; it may fail, also in the beginning: then the first request after which it succeeds ends the
// wait. AwaitNext returns false when ctx ends.
func AwaitNext(
	ctx context.Context, pause time.Duration, requests <-chan struct{}, newest func(context.Context) (uint64, error),
) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	known := uint64(0)
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
			if last, err := newest(ctx); err == nil && last != known {
				return true
			}
		}
	}
}
