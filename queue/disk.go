package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

const (
	// leastFree is what a volume should have left while logs grow: other programs write to it too.
	leastFree = 1 << 30
	// untakenPart is the part that should be left of what the logs may still take up to their limits: what was
	// promised to the other tables is not all gone before the first one stops.
	untakenPart = 0.2
	// volumePart caps both on a small volume, which is never asked for more than this part of it. It is no limit by
	// itself: a large disk of which little is left is no reason to stop while the logs need less.
	volumePart = 0.1
	// resumeAt keeps reading from going on and pausing again at every entry.
	resumeAt = 1.5
)

// Volume is a file system: bytes that are left to us, and bytes in all.
type Volume struct{ Available, Total uint64 }

// VolumeOf asks the file system of a directory, or of the nearest one above it that exists.
func VolumeOf(dir string) (Volume, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Volume{}, fmt.Errorf("ask the file system of the queue: %w", err)
	}
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		if err != nil {
			return Volume{}, fmt.Errorf("ask the file system of %s: %w", dir, err)
		}
		return Volume{Available: s.Bavail * uint64(s.Bsize), Total: s.Blocks * uint64(s.Bsize)}, nil
	}
}

// Disk is how the volume of the embedded store compares with what the logs may take.
type Disk struct {
	Volume
	Left       uint64 // for the logs: what is available, less the reserve where it is not held
	Untaken    uint64 // what the logs may still take until each of them has reached its limit
	PauseBelow uint64 // reading pauses while less than this is left, and goes on at half as much again
	Low        bool   // reading pauses
}

// Short tells whether the volume fills up before the logs have reached their limits.
func (d Disk) Short() bool { return d.Left < d.Untaken }

func (d Disk) reason(dir string) string {
	return fmt.Sprintf("the volume of %s has %s left for the logs; reading pauses below %s and goes on at %s",
		dir, humanize.IBytes(d.Left), humanize.IBytes(d.PauseBelow), humanize.IBytes(uint64(resumeAt*float64(d.PauseBelow))))
}

func pauseBelow(v Volume, untaken uint64) uint64 {
	return uint64(min(max(leastFree, untakenPart*float64(untaken)), volumePart*float64(v.Total)))
}

// disk watches the volume of the embedded store. The disks of an external NATS server cannot be seen from here.
type disk struct {
	dir     string
	limit   uint64 // of all logs together
	volume  func(dir string) (Volume, error)
	metrics *diskMetrics

	mu    sync.Mutex
	taken map[string]uint64 // by table
	low   bool
}

func newDisk(o Options, reg prometheus.Registerer) *disk {
	return &disk{
		dir: o.Dir, limit: uint64(o.MaxBytes) * uint64(max(o.Logs, 1)), volume: o.Volume, metrics: newDiskMetrics(reg),
		taken: map[string]uint64{},
	}
}

// took records how many bytes a log holds.
func (d *disk) took(table string, bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken[table] = bytes
}

// look asks the file system how much room is left. An error of it never pauses reading.
func (d *disk) look() (Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(d.dir)
	if err != nil {
		d.low = false
		return Disk{}, err
	}
	now := Disk{Volume: v, Left: v.Available, Untaken: d.limit}
	if !holdsReserve(d.dir) { // its room is for the marks
		now.Left -= min(now.Left, uint64(reserveSize(v)))
	}
	for _, bytes := range d.taken {
		now.Untaken -= min(now.Untaken, bytes)
	}
	now.PauseBelow = pauseBelow(v, now.Untaken)
	enough := float64(now.PauseBelow)
	if d.low {
		enough *= resumeAt
	}
	d.low = float64(now.Left) < enough
	now.Low = d.low
	return now, nil
}

// Disk returns how much room the embedded store's volume has; false when the server is elsewhere or the volume
// cannot be asked.
func (q *Queue) Disk() (Disk, bool) {
	if q.disk == nil {
		return Disk{}, false
	}
	d, err := q.disk.look()
	return d, err == nil
}

// DiskOf looks at the volume of a store that need not exist yet.
func DiskOf(o Options) (Disk, error) { return newDisk(o.withDefaults(), nil).look() }

// crowded says why frames have to wait for room on the volume; "" when they need not.
//
// Rule 9: reading pauses while there is still room for the marks that let the logs be trimmed.
func (q *Queue) crowded() string {
	if d, ok := q.Disk(); ok && d.Low {
		return d.reason(q.opts.Dir)
	}
	return ""
}
