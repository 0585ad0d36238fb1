package conn

import (
	"context"
	"errors"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
)

// LeastPause and MostPause bound the pauses between attempts to read.
const LeastPause, MostPause = 20 * time.Millisecond, time.Second

// StorePause is the pause after the first attempt to store a message.
const StorePause = 5 * time.Millisecond

// NextPause returns the pause that follows one of that length, after an attempt to store with this
// outcome. It grows while the server does not answer. It does not where another message came first:
// a busy owner of a log leaves gaps of milliseconds, and with pauses of a second a command misses
// all of them for minutes.
func (o Outcome) NextPause(pause time.Duration) time.Duration {
	if o == Fenced {
		return StorePause
	}
	return min(2*pause, MostPause)
}

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
