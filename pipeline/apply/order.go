package apply

// kind is what waits in a lane: changes of the stream come first.
type kind uint8

const (
	changes kind = iota
	resyncs
	kinds
)

// take takes the jobs of a kind out of a lane for a worker; false if there are none, or another
// worker has the lane.
//
// Changes overtake a resync that has not begun. It could as well have come after them: it is written
// at a version below theirs, and nothing that it waits for is among them. A resync that is due while
// changes are being applied goes along with the next ones: in a lane that always has some, it would
// never begin otherwise.
func (l *lanes) take(ln *lane, k kind, into []job) (batch []job, ok bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	defer l.count(ln)
	ln.queued[k] = false
	if ln.working {
		ln.along = k == resyncs && ln.op != nil || ln.along
		return into, false
	}
	batch = into[:0]
	if k == changes {
		batch, ln.waiting = ln.waiting, batch
		if ln.room != nil {
			signal(ln.room)
		}
	}
	if ln.op != nil && (k == resyncs || ln.along) {
		batch = append(batch, job{op: ln.op})
		ln.op, ln.along = nil, false
	}
	ln.working = len(batch) > 0
	return batch, ln.working
}

// endBatch notes that the worker has left the lane, and returns the kinds of jobs to queue it for.
func (l *lanes) endBatch(ln *lane) (wake [kinds]bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	defer l.count(ln)
	ln.working = false
	if len(ln.waiting) == 0 {
		ln.waiting, ln.along = nil, false
	}
	return ln.toQueue()
}

// toQueue notes the lane as queued for the kinds of jobs that wait and are in no queue, and returns
// these kinds. The lane's mutex is held.
func (ln *lane) toQueue() (wake [kinds]bool) {
	if ln.working {
		return wake // its worker queues it
	}
	wake[changes] = len(ln.waiting) > 0 && !ln.queued[changes]
	wake[resyncs] = ln.op != nil && !ln.along && !ln.queued[resyncs]
	for k := range wake {
		ln.queued[k] = ln.queued[k] || wake[k]
	}
	return wake
}

// count counts the lane among those that are in ready or with a worker. The lane's mutex is held.
func (l *lanes) count(ln *lane) {
	now := ln.working || ln.queued[changes] || ln.queued[resyncs]
	switch {
	case now && !ln.counted:
		l.busy.Add(1)
	case !now && ln.counted:
		l.busy.Add(-1)
	}
	ln.counted = now
}

// queue puts a lane into the queues of some kinds. It never blocks: each has room for all lanes.
func (l *lanes) queue(ln *lane, wake [kinds]bool) {
	for k := range wake {
		if wake[k] {
			l.ready[k] <- ln
		}
	}
}

// signal fills a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
