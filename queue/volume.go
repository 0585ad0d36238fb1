package queue

import (
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// ErrVolume is matched by every *VolumeError.
var ErrVolume = errors.New("input/output error of the queue's volume")

// VolumeError reports that the volume of the embedded store returns errors for the files of a
// stream. No damage is proved, and nothing is lost: it is over when the volume is back.
type VolumeError struct {
	Stream string
	Why    error
}

func (e *VolumeError) Error() string {
	return fmt.Sprintf("%v: stream %s: %v; nothing is known to be damaged: bring the volume back, and the replicator "+
		"goes on by itself", ErrVolume, e.Stream, e.Why)
}

// Unwrap lets errors.Is find the cause.
func (e *VolumeError) Unwrap() error { return e.Why }

// Is lets errors.Is(err, ErrVolume) find it.
func (e *VolumeError) Is(target error) bool { return target == ErrVolume }

// confirmUnreadable returns missing, an error for a stream that lacks entries; or a *VolumeError if
// the embedded store has files of the stream that cannot be read now.
//
// Rule 13: an input/output error is no damage, and the server does not distinguish them.
func (q *Queue) confirmUnreadable(stream string, missing error) error {
	if q.opts.Dir == "" {
		if damage := (*DamageError)(nil); errors.As(missing, &damage) {
			damage.elsewhere = true
		}
		return missing
	}
	if err := embedded.ReadErr(q.opts.Dir, stream); err != nil {
		return &VolumeError{Stream: stream, Why: err}
	}
	return missing
}

// checkWritable returns a *VolumeError when the server in this process refuses all writes to a
// stream because one has failed.
func (q *Queue) checkWritable(stream string) error {
	if q.embedded == nil {
		return nil
	}
	if err := q.embedded.WriteErr(stream); err != nil {
		return &VolumeError{Stream: stream, Why: err}
	}
	return nil
}
