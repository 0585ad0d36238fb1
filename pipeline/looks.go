package pipeline

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
)

// keepLooks looks at each table until ctx ends: what limits it follows from the looks of the last
// seconds.
func (p *Pipeline) keepLooks(ctx context.Context) error {
	tick := time.NewTicker(time.Second / limit.PerSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			short := p.cpuShort()
			for _, t := range p.all() {
				t.view.look(now, short)
			}
		}
	}
}

// look notes where the changes of the table wait. cpuShort is set while goroutines of this process
// wait for a processor.
func (v *tableView) look(now time.Time, cpuShort bool) {
	s := v.latest()
	if s.phase != phaseWorking || s.parts.reading == nil || s.writer == nil {
		v.looks.Clear()
		return
	}
	reads := v.source.Reads(v.Source)
	l := limit.Look{Reading: s.parts.reading.Place(now, reads.Parked), CPUShort: cpuShort}
	l.Counts.Reads, l.Counts.FullReads, l.Counts.FailedReads = reads.All, reads.Full, reads.Failed
	_, l.Throttled = v.source.ThrottledSince(v.Source)
	if s.parts.sink != nil {
		l.Sink = s.parts.sink.Place(now, s.writer.LastChanges())
		load := v.bigtable.Load(v.Target)
		l.InFlight, l.Bound, l.Most = load.InFlight, load.Bound, load.Most
		l.Counts.Calls, l.Counts.Overloads, l.Counts.Cuts = load.Calls, load.Overloads, load.Cuts
		l.Counts.Took = load.Took
	}
	v.looks.Add(l)
	if f, ok := v.looks.Facts(); ok && f.Counts.Calls > 0 {
		v.callTook.Store(int64(f.Counts.Took) / int64(f.Counts.Calls))
	}
}
