package limit

import (
	"sync"
	"time"
)

const (
	// PerSecond is how often a second a table is to be looked at.
	PerSecond = 4
	// Seconds is how far back the facts reach: few enough for "now", and enough for a share.
	Seconds = 5

	looks = PerSecond*Seconds + 1 // counts are compared with those of the look before the first
)

// Look is how a table is at a moment.
type Look struct {
	Sink    Place // of changes between the log and Bigtable
	Reading Place // of changes between DynamoDB and the log

	CPUShort  bool // goroutines of this process wait for a processor
	Throttled bool // DynamoDB has throttled the reading of the table for seconds

	InFlight, Bound, Most int // calls to Bigtable: now, as many as may be, and the most that may be configured

	Counts Counts // since the start of the process
}

// Counts are what the clients of a table count.
type Counts struct {
	Calls, Overloads uint64        // calls to Bigtable that were answered or refused; those that were refused or timed out
	Cuts             uint64        // of the bound, because of refused calls
	Took             time.Duration // all calls together, between sending and answer
	// Reads of shards, those with as many records as fit, and those that failed and will be
	// repeated.
	Reads, FullReads, FailedReads uint64
}

// since returns what was counted after before.
func (c Counts) since(before Counts) Counts {
	return Counts{
		Calls: c.Calls - before.Calls, Overloads: c.Overloads - before.Overloads, Cuts: c.Cuts - before.Cuts,
		Took:  c.Took - before.Took,
		Reads: c.Reads - before.Reads, FullReads: c.FullReads - before.FullReads,
		FailedReads: c.FailedReads - before.FailedReads,
	}
}

// Facts are what the looks of the last seconds sum up to.
type Facts struct {
	Looks int
	// Sink and Reading are at how many looks changes waited at each place.
	Sink, Reading [places]int
	CPUShort      int  // looks
	Throttled     bool // now
	Counts        Counts
	Calls         Calls
}

// Calls are how many calls to the target of a table there are. Tables that share a target share
// them.
type Calls struct {
	InFlight int `json:"in_flight"` // in the mean of the last seconds
	Bound    int `json:"bound"`     // how many may be in flight now
	Most     int `json:"most"`      // bigtable.max_in_flight, which the bound never exceeds
}

// Window holds the looks of the last seconds at a table. Its zero value is ready for use, by any
// number of goroutines.
type Window struct {
	mu   sync.Mutex // covers what follows
	last []Look     // in the order of time
}

// Add adds a look.
func (w *Window) Add(l Look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.last) < looks {
		w.last = append(w.last, l)
		return
	}
	copy(w.last, w.last[1:])
	w.last[looks-1] = l
}

// Clear forgets all looks, while the table does not work here.
func (w *Window) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = nil
}

// Facts returns what the looks sum up to; false before there was a second of them.
func (w *Window) Facts() (f Facts, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.Looks = len(w.last) - 1
	if f.Looks < PerSecond {
		return Facts{}, false
	}
	newest := &w.last[f.Looks]
	sum := 0
	for i := range w.last[1:] {
		l := &w.last[1+i]
		f.Sink[l.Sink]++
		f.Reading[l.Reading]++
		if l.CPUShort {
			f.CPUShort++
		}
		sum += l.InFlight
	}
	f.Throttled = newest.Throttled
	f.Counts = newest.Counts.since(w.last[0].Counts)
	f.Calls = Calls{InFlight: (sum + f.Looks/2) / f.Looks, Bound: newest.Bound, Most: newest.Most}
	return f, true
}
