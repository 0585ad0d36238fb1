package embedded

import (
	"fmt"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// minFree is the room that a volume should have left while logs grow: other programs write to
	// it too.
	minFree = 1 << 30
	// untakenPart is the fraction of Disk.Untaken that should be left: reading pauses before one
	// table has used up the room that the other tables may still take.
	untakenPart = 0.2
	// volumePart caps both of the above on a small volume, as a fraction of its size. It never
	// raises the threshold: on a large volume reading does not pause while the logs need less than
	// a tenth of it.
	volumePart = 0.1
	// resumeFactor is how many times as much room is needed to resume as to pause, so that reading
	// does not flap.
	resumeFactor = 1.5
)

// Disk compares the room on the volume of the embedded store with what the logs may take.
type Disk struct {
	Volume
	Left       uint64 // bytes available for the logs, without the reserve if that is not made yet
	Untaken    uint64 // bytes that the logs may still take until each has reached its limit
	PauseBelow uint64 // reading pauses while less than this is left, and goes on at half as much again
	Low        bool   // reading pauses
}

// PauseReason returns why reading pauses, for operators.
func (d Disk) PauseReason(dir string) string {
	left, pause, resume := d.Left, d.PauseBelow, uint64(resumeFactor*float64(d.PauseBelow))
	return fmt.Sprintf("the volume of %s has %s left for the logs; reading pauses below %s and goes on at %s",
		dir, humanize.IBytes(left), humanize.IBytes(pause), humanize.IBytes(resume))
}

// pauseBelow returns Disk.PauseBelow.
func pauseBelow(v Volume, untaken uint64) uint64 {
	return uint64(min(max(minFree, untakenPart*float64(untaken)), volumePart*float64(v.Total)))
}

// DiskWatch compares the room on the volume of an embedded store with what the logs may still take.
// For an external server there is none: a client cannot query its disks.
type DiskWatch struct {
	dir     string
	limit   uint64 // of each log
	logs    int    // that are expected
	volume  func(dir string) (Volume, error)
	metrics *metrics

	mu    sync.Mutex
	taken map[string]uint64 // by table
	low   bool
}

// NewDiskWatch makes a watch; reg may be nil.
func NewDiskWatch(o Options, reg prometheus.Registerer) *DiskWatch {
	return &DiskWatch{
		dir: o.Dir, limit: uint64(o.MaxBytes), logs: max(o.Logs, 1), volume: o.Volume, metrics: newMetrics(reg),
		taken: map[string]uint64{},
	}
}

// SetLogBytes records how many bytes the log of a table holds.
func (d *DiskWatch) SetLogBytes(table string, bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken[table] = bytes
}

// Look reads from the file system how much room is left. An error of the file system never pauses
// reading.
func (d *DiskWatch) Look() (Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.volume(d.dir)
	if err != nil {
		d.low = false
		return Disk{}, err
	}
	now := Disk{Volume: v, Left: v.Available, Untaken: d.limit * uint64(max(d.logs, len(d.taken)))}
	if !HasReserve(d.dir) { // leave room to make it
		now.Left -= min(now.Left, uint64(reserveSize(v)))
	}
	for _, bytes := range d.taken {
		now.Untaken -= min(now.Untaken, bytes)
	}
	now.PauseBelow = pauseBelow(v, now.Untaken)
	enough := float64(now.PauseBelow)
	if d.low {
		enough *= resumeFactor
	}
	d.low = float64(now.Left) < enough
	now.Low = d.low
	return now, nil
}
