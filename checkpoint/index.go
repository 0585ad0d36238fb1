package checkpoint

import (
	"container/heap"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// index answers questions about all shards of a table without scanning them. The write loop asks them at the end of
// every shard, and ten thousand shards that rotate every four hours leave more than a hundred thousand in the state.
// It is derived from the rest of the state: snapshots do not hold it, Restore builds it anew.
type index struct {
	children       map[string][]*Shard // by the parent's ID, also of parents that the log has never seen
	open           shardHeap           // open shards by Through
	others         shardHeap           // waiting and finished shards that hold Through back, by how far
	counts         [numRoles]int
	top            change.Version // highest clock that any shard ever had
	missingParents map[string]int // waiting shards by the parent that the log has never seen
	unfinished     map[string]int // shards by stream that are not finished
	beforeGap      map[string]*Shard
	absent         map[string]*Shard
	finished       []*Shard // finished shards that may hold Through back, in the order of Ended
	readability    []*Shard // became readable, or not any more, since TakeReadabilityChanges was called
}

// role is a property that a shard may have; the index counts the shards with each.
type role uint

const (
	roleOpen role = iota
	roleClosed
	roleWaiting
	roleDone
	roleOrphan    // waits for a parent that the log has never seen
	roleChildless // has ended, and no child of it is known
	roleGapped
	roleAbsent
	roleReadable
	numRoles
)

// place is what the index knows about one shard.
type place struct {
	roles  [numRoles]bool
	heap   *shardHeap // nil: in none
	at     int        // in the heap
	gone   bool       // deleted from the state
	listed bool
	parent bool // children of it are known
}

func newIndex() index {
	return index{
		children: map[string][]*Shard{}, missingParents: map[string]int{}, unfinished: map[string]int{},
		beforeGap: map[string]*Shard{}, absent: map[string]*Shard{},
	}
}

// Reindex rebuilds the index. Only code that changes the shards of a state directly has to call it.
func (s *State) Reindex() {
	turned := s.index.readability
	s.index = newIndex()
	s.index.readability, s.index.top = turned, s.DroppedVersion
	for _, sh := range s.Shards {
		sh.place = place{listed: sh.place.listed}
		s.linkToParent(sh)
		if sh.Phase.Finished() {
			s.index.finished = append(s.index.finished, sh)
		}
	}
	slices.SortFunc(s.index.finished, func(a, b *Shard) int { return int(min(max(a.FinishedAt-b.FinishedAt, -1), 1)) })
	for _, sh := range s.Shards {
		s.reindexShard(sh)
	}
	s.dropExpired()
}

func (s *State) linkToParent(sh *Shard) {
	if sh.Parent != "" {
		s.index.children[sh.Parent] = append(s.index.children[sh.Parent], sh)
	}
}

// add takes a new shard in.
func (s *State) addShard(sh *Shard) {
	if old := s.Shards[sh.ID]; old != nil {
		s.removeShard(old)
	}
	s.Shards[sh.ID] = sh
	s.linkToParent(sh)
	s.reindexWithChildren(sh)
	s.withParent(sh, s.reindexShard)
}

// remove forgets a shard that is finished, or whose ID another stream has as well: no child waits for it.
func (s *State) removeShard(sh *Shard) {
	delete(s.Shards, sh.ID)
	if all := slices.DeleteFunc(s.index.children[sh.Parent], func(c *Shard) bool { return c == sh }); len(all) > 0 {
		s.index.children[sh.Parent] = all
	} else {
		delete(s.index.children, sh.Parent)
	}
	sh.place.gone = true
	s.reindexShard(sh)
	s.withParent(sh, s.reindexShard)
}

func (s *State) withParent(sh *Shard, f func(*Shard)) {
	if p := s.Shards[sh.Parent]; p != nil {
		f(p)
	}
}

// changed brings the index up to date after a change of a shard, of its children too: what a waiting shard holds
// back depends on its parent.
func (s *State) reindexWithChildren(sh *Shard) {
	s.reindexShard(sh)
	for _, child := range s.index.children[sh.ID] {
		s.reindexShard(child)
	}
}

func (s *State) reindexShard(sh *Shard) {
	x := &s.index
	x.top = max(x.top, sh.Clock)
	sh.place.parent = len(x.children[sh.ID]) > 0
	now := s.roles(sh)
	for r, is := range now {
		if is != sh.place.roles[r] {
			x.setRole(sh, role(r), is)
		}
	}
	sh.place.roles = now
	h, key := s.watermarkBound(sh)
	x.moveInHeap(sh, h, key)
}

func (s *State) roles(sh *Shard) (is [numRoles]bool) {
	if sh.place.gone {
		return is
	}
	is[roleDone], is[roleWaiting] = sh.Phase.Finished(), sh.Phase.Waiting()
	is[roleClosed], is[roleOpen] = sh.Phase == PhaseClosed, sh.Phase == PhaseOpen
	is[roleOrphan] = sh.Phase.Waiting() && s.Shards[sh.Parent] == nil
	is[roleChildless] = sh.Phase.Finished() && sh.AbsentSince == 0 && s.mayGetChildren(sh)
	is[roleGapped], is[roleAbsent], is[roleReadable] = sh.Loss.Pending, sh.AbsentSince != 0, s.Readable(sh)
	return is
}

// mayHaveChildren says whether children of a finished shard may come that no listing has shown yet.
func (s *State) mayGetChildren(sh *Shard) bool {
	live := s.LiveStream()
	return live != nil && !live.Disabled && sh.Stream == live.ARN && !sh.place.parent
}

// turn counts a shard that has got or lost a role.
func (x *index) setRole(sh *Shard, r role, is bool) {
	n := 1
	if !is {
		n = -1
	}
	x.counts[r] += n
	switch r {
	case roleOrphan:
		addCount(x.missingParents, sh.Parent, n)
	case roleOpen, roleClosed, roleWaiting:
		addCount(x.unfinished, sh.Stream, n)
	case roleGapped:
		setMember(x.beforeGap, sh, is)
	case roleAbsent:
		setMember(x.absent, sh, is)
	case roleReadable:
		if !sh.place.listed {
			sh.place.listed = true
			x.readability = append(x.readability, sh)
		}
	}
}

func addCount(m map[string]int, key string, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

func setMember(m map[string]*Shard, sh *Shard, in bool) {
	if in {
		m[sh.ID] = sh
	} else if m[sh.ID] == sh {
		delete(m, sh.ID)
	}
}

// heapOf says how far a shard lets Through go, and in which heap that stands; nil when it does not matter.
func (s *State) watermarkBound(sh *Shard) (*shardHeap, change.Millis) {
	x := &s.index
	switch {
	case sh.place.gone:
		return nil, 0
	case sh.Phase.Reading():
		return &x.open, sh.Watermark
	case sh.Phase.Waiting():
		// Its changes are newer than all of its parent's. What the parent's empty reads prove says nothing about it.
		p := s.Shards[sh.Parent]
		if p == nil {
			return &x.others, sh.Watermark
		}
		if p.Phase.Waiting() {
			return nil, 0
		}
		return &x.others, max(sh.Watermark, p.LastAlive)
	case sh.Phase == PhaseEarly || !s.mayGetChildren(sh) || s.Listed >= sh.FinishedAt+childListingDelay:
		return nil, 0
	}
	return &x.others, sh.LastAlive // Rule 10: its children may exist and not be listed yet
}

// listed takes note of a complete listing: finished shards whose children it must have shown hold nothing back.
func (s *State) noteListing(date change.Millis) {
	if date > s.Listed {
		s.Listed = date
		s.dropExpired()
	}
}

func (s *State) dropExpired() {
	x := &s.index
	for len(x.finished) > 0 && s.Listed >= x.finished[0].FinishedAt+childListingDelay {
		s.reindexShard(x.finished[0])
		x.finished = x.finished[1:]
	}
}

// TakeReadabilityChanges returns the shards that became readable, or stopped being so, since its previous call; the
// first call returns all readable ones. Ask Readable for what a shard is now. The list has one consumer.
func (s *State) TakeReadabilityChanges() []*Shard {
	all := s.index.readability
	s.index.readability = nil
	for _, sh := range all {
		sh.place.listed = false
	}
	return all
}

// AwaitsChildren reports whether a shard of the live stream has ended and no child of it is known yet.
func (s *State) AwaitsChildren() bool { return s.index.counts[roleChildless] > 0 }

// GappedShards returns the shards of the live stream that stand before a gap which nobody has accepted.
func (s *State) GappedShards() (ids []string) {
	live := s.LiveStream()
	for id, sh := range s.index.beforeGap {
		if live != nil && sh.Stream == live.ARN {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// bound is a shard in a heap. The key is beside it, so that most comparisons need not look at the shard.
type heapEntry struct {
	key change.Millis
	sh  *Shard
}

// shardHeap has the smallest key first.
type shardHeap struct{ all []heapEntry }

func (h *shardHeap) Len() int           { return len(h.all) }
func (h *shardHeap) Less(i, j int) bool { return h.all[i].key < h.all[j].key }

func (h *shardHeap) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].sh.place.at, h.all[j].sh.place.at = i, j
}

func (h *shardHeap) Push(e any) {
	b := e.(heapEntry)
	b.sh.place.at = len(h.all)
	h.all = append(h.all, b)
}

func (h *shardHeap) Pop() any {
	last := len(h.all) - 1
	b := h.all[last]
	h.all[last] = heapEntry{}
	h.all = h.all[:last]
	return b
}

// move puts a shard into a heap, out of it, or to another place in it.
func (x *index) moveInHeap(sh *Shard, to *shardHeap, key change.Millis) {
	p := &sh.place
	if p.heap == to {
		if to != nil && to.all[p.at].key != key {
			to.all[p.at].key = key
			heap.Fix(to, p.at)
		}
		return
	}
	if p.heap != nil {
		heap.Remove(p.heap, p.at)
	}
	if p.heap = to; to != nil {
		heap.Push(to, heapEntry{key, sh})
	}
}

// raiseOpen lets f change the open shards, which may only raise what is below a limit up to it: such a change leaves
// the heap in order.
func (x *index) updateOpen(f func(*Shard)) {
	for i := range x.open.all {
		b := &x.open.all[i]
		f(b.sh)
		b.key = b.sh.Watermark
	}
}
