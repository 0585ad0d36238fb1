package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/protocol"
)

// following is a copy by workers as its owner follows it in one life.
type following struct {
	id       string
	export   []int
	proof    *reading
	opened   bool
	must     bool // the order is to be closed, whatever the log says
	closed   bool
	closedAt protocol.Instant
	looked   change.Millis
	beaten   change.Millis
}

// orderID returns the id of the order of a copy. The sequences of a log begin at the microseconds
// of its creation.
func (w *World) orderID(c *checkpoint.CopyState) string {
	return delegation.ID(c.ID, uint64(w.log.created)*1_000_000+c.Delegated)
}

// exportOf makes the export of a copy: the items as they are now.
func (w *World) exportOf(b *checkpoint.Copy) {
	b.From, b.Export = checkpoint.FromExport, fmt.Sprintf("s3://%s-%d", b.ID, w.log.created)
	if w.choose(3) > 0 {
		b.By = checkpoint.ByWorkers
	}
	if b.Version = w.bulk.versions[b.Export]; b.Version > 0 {
		return // the log lost the entry: the export is the one that was made for it
	}
	b.Version = max(protocol.Version(w.now, 0), change.LowestRead(w.log.truth.Floor()))
	commits := make([]int, len(w.items))
	for i, x := range w.items {
		commits[i] = len(x.commits) - 1
		x.noteRead(commits[i], b.Version)
	}
	w.bulk.exports[b.Export], w.bulk.versions[b.Export] = commits, b.Version
	w.issue(b.Version)
}

// exportTime is the moment that the export of a copy shows.
func exportTime(c *checkpoint.CopyState) change.Millis {
	return change.Millis(c.Version) + protocol.ReadingMargin
}

// outdated reports whether an export may not be copied any more.
func (p *process) outdated(c *checkpoint.CopyState) bool {
	return change.Millis(c.Version) <= p.s.GapsUntil() || p.now-change.Millis(c.Version) > 5*24*3600*1000
}

// followSteps returns the owner's next steps beside workers.
func (p *process) followSteps(c *checkpoint.CopyState, proved func(*reading) bool) (acts []func()) {
	id := p.orderID(c)
	f := p.follow
	if f == nil || f.id != id {
		f = &following{id: id, export: p.bulk.exports[c.Export]}
		p.follow = f
	}
	switch {
	case !c.Closes() && p.outdated(c):
		return append(acts, func() {
			p.append(&checkpoint.CopyMarks{ID: c.ID, Paused: "outdated", Date: p.now}, nil)
		})
	case c.Closes() || f.must:
		return append(acts, p.closeSteps(c, f)...)
	case !f.opened:
		return append(acts, p.openSteps(c, f, proved)...)
	}
	if p.now-f.beaten >= 30_000 {
		acts = append(acts, func() { p.beatWorkers(f) })
	}
	if p.now-f.looked >= 15_000 {
		acts = append(acts, func() { p.takeBulkMarks(c, f, false) })
	}
	return acts
}

// openSteps returns the owner's next steps until the order is open.
func (p *process) openSteps(
	c *checkpoint.CopyState, f *following, proved func(*reading) bool,
) (acts []func()) {
	want := &delegation.Order{
		Format: delegation.Format, ID: f.id, Copy: c.ID, Life: p.lives, Version: c.Version,
		First:  c.Why == checkpoint.CopyBackfill && p.s.Floor() == 0,
		Export: delegation.Export{URL: c.Export, Files: c.Parts, Time: exportTime(c)}, Opened: p.now,
	}
	for i := range c.Parts {
		if c.Marks[i].Done {
			want.Copied = append(want.Copied, delegation.Range{First: i, Last: i})
		}
	}
	have := p.bulk.order
	switch delegation.JudgeOpening(have, want) {
	case delegation.IsOpen:
		return append(acts, func() { f.opened = true })
	case delegation.WasClosed:
		return append(acts, func() { f.must = true })
	case delegation.AnotherOpen:
		p.fail("one order at a time", "order %s is open, and order %s is to be opened", have.ID, f.id)
	}
	if f.proof == nil {
		f.proof = &reading{wait: protocol.Proof{Through: exportTime(c) + protocol.AnswerMargin}}
		f.proof.Requested = exportTime(c)
	}
	if !proved(f.proof) {
		return nil
	}
	return append(acts, func() {
		f.proof.begun = true
		p.bulk.noted = max(p.bulk.noted, c.Delegated)
		want.Revision = delegation.NextRevision(have, p.now)
		p.sendSwap(have, want)
	})
}

// sendSwap sends a replacement of the order, and reports whether it was answered and took place. It
// may be lost, or its answer, or arrive at any later moment: also when its owner was replaced.
func (p *process) sendSwap(have, next *delegation.Order) bool {
	s := swap{next: next}
	if have != nil {
		s.old = have.Revision
	}
	switch p.fault(faultWrite, 4) {
	case 1:
		return false
	case 2:
		p.swap(s)
		return false
	case 3:
		p.bulk.swaps = append(p.bulk.swaps, s)
		return false
	}
	return p.swap(s)
}

// beatWorkers stores a beat.
func (p *process) beatWorkers(f *following) {
	f.beaten = p.now
	if b := p.bulk.beat; p.bulk.order != nil && (b == nil || b.Date < p.now) {
		p.bulk.beat = &delegation.Beat{Order: f.id, Date: p.now}
	}
}

// takeBulkMarks takes over what the workers have marked.
func (p *process) takeBulkMarks(c *checkpoint.CopyState, f *following, last bool) {
	f.looked = p.now
	b := &checkpoint.CopyMarks{ID: c.ID, Parts: map[int]checkpoint.CopyMark{}, Date: p.now, Closed: last}
	for _, order := range slices.Sorted(maps.Keys(p.bulk.marks)) {
		for file, m := range p.bulk.marks[order] {
			if (m.Of(f.id) || p.o.workersWithout == otherMarks) && file < c.Parts && !c.Marks[file].Done {
				b.Parts[file] = checkpoint.CopyMark{
					After: lastItem, Items: max(m.Items, c.Marks[file].Items), Letters: c.Marks[file].Letters, Done: true,
				}
			}
		}
	}
	if len(b.Parts) > 0 || last {
		p.append(b, nil)
	}
}

// lastItem is a position behind all items of a file.
const lastItem = "4"

// closeSteps returns the owner's next steps until the order is closed in the log.
func (p *process) closeSteps(c *checkpoint.CopyState, f *following) (acts []func()) {
	if !f.closed {
		return append(acts, func() {
			next := delegation.Closing(p.bulk.order, f.id, p.lives, delegation.CloseDone, p.now)
			if next == nil && p.o.workersWithout == noSecondWait {
				p.takeBulkMarks(c, f, true)
				return
			}
			if next == nil || p.sendSwap(p.bulk.order, next) {
				f.closed, f.closedAt = true, p.clocks()
			}
		})
	}
	if p.clocks().Since(f.closedAt) < delegation.CloseWait && p.o.workersWithout != noClosingWait {
		return nil
	}
	return append(acts, func() {
		p.reached(orderClosed)
		p.takeBulkMarks(c, f, true)
	})
}

// swap executes a replacement of the order, and reports whether it took place.
func (w *World) swap(s swap) bool {
	have := int64(0)
	if w.bulk.order != nil {
		have = w.bulk.order.Revision
	}
	if w.reachedIf(have != s.old, swapRefused) {
		return false
	}
	w.bulk.order = s.next
	w.logf("order %s, open: %v, revision %d", s.next.ID, s.next.Open(), s.next.Revision)
	return true
}
