package queue

import (
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// Disk returns how much room the embedded store's volume has; false with an external server, or
// when the file system returns an error.
func (q *Queue) Disk() (embedded.Disk, bool) {
	if q.disk == nil {
		return embedded.Disk{}, false
	}
	d, err := q.disk.Look()
	return d, err == nil
}

// DiskOf looks at the volume of a store that need not exist yet.
func DiskOf(o Options) (embedded.Disk, error) {
	return embedded.NewDiskWatch(o.withDefaults().embedded(), nil).Look()
}

// diskPauseReason returns why frames have to wait for room on the embedded store's volume; "" when
// they need not.
//
// Rule 9: reading pauses while there is still room for the marks that let the logs be trimmed.
func (q *Queue) diskPauseReason() string {
	if d, ok := q.Disk(); ok && d.Low {
		return d.PauseReason(q.opts.Dir)
	}
	return ""
}
