package conn

import (
	"context"
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// LeastPause and MostPause bound the pauses between attempts to read.
const LeastPause, MostPause = 20 * time.Millisecond, time.Second

// Retry calls f again while its error is transient, until ctx ends.
func Retry(ctx context.Context, f func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := f()
		if err == nil || !Transient(err) || ctx.Err() != nil {
			return err
		}
		if werr := failure.Pause(ctx, pause); werr != nil {
			return errors.Join(err, werr)
		}
	}
}
