package manifest

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// ordered calls f for each value of in, up to parallel at once, and yields the results in the order
// of in. An error of in or f is the last pair. At most parallel results wait.
func ordered[T, R any](
	ctx context.Context, in iter.Seq2[T, error], parallel int, f func(context.Context, T) (R, error),
) iter.Seq2[R, error] {
	type result struct {
		value R
		err   error
	}
	return func(yield func(R, error) bool) {
		group, calls := errgroup.WithContext(ctx)
		calls, cancel := context.WithCancel(calls)
		defer func() {
			cancel()
			_ = group.Wait() // results carry the errors
		}()
		// The feeder holds one more result while the channel is full, and one is being waited for.
		pending := make(chan chan result, max(0, parallel-2))
		group.Go(func() error {
			defer close(pending)
			for value, err := range in {
				out := make(chan result, 1)
				if err != nil {
					out <- result{err: err}
				} else {
					group.Go(func() error {
						r, err := f(calls, value)
						out <- result{r, err}
						return nil
					})
				}
				select {
				case pending <- out:
				case <-calls.Done():
					return nil
				}
				if err != nil {
					return nil
				}
			}
			return nil
		})
		for out := range pending {
			if r := <-out; !yield(r.value, r.err) || r.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil { // the feeder stopped before the end
			yield(*new(R), err)
		}
	}
}
