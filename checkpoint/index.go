package checkpoint

import (
	"container/heap"
	"slices"
)

// index answers questions about all shards of a table without scanning them. The write loop asks them at the end of
// every shard, and ten thousand shards that rotate every four hours leave more than a hundred thousand in the state.
// It is derived from the rest of the state: snapshots do not hold it, Restore builds it anew.
type index struct {
	children map[string][]*Shard // by the parent's ID, also of parents that the log has never seen
	open     shardHeap           // open shards by Through
	others   shardHeap           // waiting and finished shards that hold Through back, by how far
	counts   [numRoles]int
	top      int64          // highest clock that any shard ever had
	missing  map[string]int // waiting shards by the parent that the log has never seen
	left     map[string]int // shards by stream that are not finished
	gapped   map[string]*Shard
	absent   map[string]*Shard
	ended    []*Shard // finished shards that may hold Through back, in the order of Ended
	turned   []*Shard // became readable, or not any more, since TakeReadabilityChanges was called
}

// role is a property that a shard may have; the index counts the shards with each.
type role uint

const (
	roleOpen role = iota
	roleClosed
	roleWaiting
	roleDone
	roleOrphan // waits for a parent that the log has never seen
	roleBarren // has ended, and no child of it is known
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
	turned bool
	parent bool // children of it are known
}

func newIndex() index {
	return index{
		children: map[string][]*Shard{}, missing: map[string]int{}, left: map[string]int{},
		gapped: map[string]*Shard{}, absent: map[string]*Shard{},
	}
}

// Reindex rebuilds the index. Only code that changes the shards of a state directly has to call it.
func (s *State) Reindex() {
	turned := s.index.turned
	s.index = newIndex()
	s.index.turned, s.index.top = turned, s.DroppedVersion
	for _, sh := range s.Shards {
		sh.place = place{turned: sh.place.turned}
		s.link(sh)
		if sh.Phase.Finished() {
			s.index.ended = append(s.index.ended, sh)
		}
	}
	slices.SortFunc(s.index.ended, func(a, b *Shard) int { return int(min(max(a.FinishedAt-b.FinishedAt, -1), 1)) })
	for _, sh := range s.Shards {
		s.update(sh)
	}
	s.expire()
}

func (s *State) link(sh *Shard) {
	if sh.Parent != "" {
		s.index.children[sh.Parent] = append(s.index.children[sh.Parent], sh)
	}
}

// add takes a new shard in.
func (s *State) add(sh *Shard) {
	if old := s.Shards[sh.ID]; old != nil {
		s.remove(old)
	}
	s.Shards[sh.ID] = sh
	s.link(sh)
	s.changed(sh)
	s.parentOf(sh, s.update)
}

// remove forgets a shard that is finished, or whose ID another stream has as well: no child waits for it.
func (s *State) remove(sh *Shard) {
	delete(s.Shards, sh.ID)
	if all := slices.DeleteFunc(s.index.children[sh.Parent], func(c *Shard) bool { return c == sh }); len(all) > 0 {
		s.index.children[sh.Parent] = all
	} else {
		delete(s.index.children, sh.Parent)
	}
	sh.place.gone = true
	s.update(sh)
	s.parentOf(sh, s.update)
}

func (s *State) parentOf(sh *Shard, f func(*Shard)) {
	if p := s.Shards[sh.Parent]; p != nil {
		f(p)
	}
}

// changed brings the index up to date after a change of a shard, of its children too: what a waiting shard holds
// back depends on its parent.
func (s *State) changed(sh *Shard) {
	s.update(sh)
	for _, child := range s.index.children[sh.ID] {
		s.update(child)
	}
}

func (s *State) update(sh *Shard) {
	x := &s.index
	x.top = max(x.top, sh.Clock)
	sh.place.parent = len(x.children[sh.ID]) > 0
	now := s.roles(sh)
	for r, is := range now {
		if is != sh.place.roles[r] {
			x.turn(sh, role(r), is)
		}
	}
	sh.place.roles = now
	h, key := s.heapOf(sh)
	x.move(sh, h, key)
}

func (s *State) roles(sh *Shard) (is [numRoles]bool) {
	if sh.place.gone {
		return is
	}
	is[roleDone], is[roleWaiting] = sh.Phase.Finished(), sh.Phase.Waiting()
	is[roleClosed], is[roleOpen] = sh.Phase == PhaseClosed, sh.Phase == PhaseOpen
	is[roleOrphan] = sh.Phase.Waiting() && s.Shards[sh.Parent] == nil
	is[roleBarren] = sh.Phase.Finished() && sh.AbsentSince == 0 && s.mayHaveChildren(sh)
	is[roleGapped], is[roleAbsent], is[roleReadable] = sh.Loss.Pending, sh.AbsentSince != 0, s.Readable(sh)
	return is
}

// mayHaveChildren says whether children of a finished shard may come that no listing has shown yet.
func (s *State) mayHaveChildren(sh *Shard) bool {
	live := s.LiveStream()
	return live != nil && !live.Disabled && sh.Stream == live.ARN && !sh.place.parent
}

// turn counts a shard that has got or lost a role.
func (x *index) turn(sh *Shard, r role, is bool) {
	n := 1
	if !is {
		n = -1
	}
	x.counts[r] += n
	switch r {
	case roleOrphan:
		add(x.missing, sh.Parent, n)
	case roleOpen, roleClosed, roleWaiting:
		add(x.left, sh.Stream, n)
	case roleGapped:
		put(x.gapped, sh, is)
	case roleAbsent:
		put(x.absent, sh, is)
	case roleReadable:
		if !sh.place.turned {
			sh.place.turned = true
			x.turned = append(x.turned, sh)
		}
	}
}

func add(m map[string]int, key string, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

func put(m map[string]*Shard, sh *Shard, in bool) {
	if in {
		m[sh.ID] = sh
	} else if m[sh.ID] == sh {
		delete(m, sh.ID)
	}
}

// heapOf says how far a shard lets Through go, and in which heap that stands; nil when it does not matter.
func (s *State) heapOf(sh *Shard) (*shardHeap, int64) {
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
	case sh.Phase == PhaseEarly || !s.mayHaveChildren(sh) || s.Listed >= sh.FinishedAt+childrenLate:
		return nil, 0
	}
	return &x.others, sh.LastAlive // Rule 10: its children may exist and not be listed yet
}

// listed takes note of a complete listing: finished shards whose children it must have shown hold nothing back.
func (s *State) listed(date int64) {
	if date > s.Listed {
		s.Listed = date
		s.expire()
	}
}

func (s *State) expire() {
	x := &s.index
	for len(x.ended) > 0 && s.Listed >= x.ended[0].FinishedAt+childrenLate {
		s.update(x.ended[0])
		x.ended = x.ended[1:]
	}
}

// TakeReadabilityChanges returns the shards that became readable, or stopped being so, since its previous call; the
// first call returns all readable ones. Ask Readable for what a shard is now. The list has one consumer.
func (s *State) TakeReadabilityChanges() []*Shard {
	all := s.index.turned
	s.index.turned = nil
	for _, sh := range all {
		sh.place.turned = false
	}
	return all
}

// AwaitsChildren reports whether a shard of the live stream has ended and no child of it is known yet.
func (s *State) AwaitsChildren() bool { return s.index.counts[roleBarren] > 0 }

// GappedShards returns the shards of the live stream that stand before a gap which nobody has accepted.
func (s *State) GappedShards() (ids []string) {
	live := s.LiveStream()
	for id, sh := range s.index.gapped {
		if live != nil && sh.Stream == live.ARN {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// bound is a shard in a heap. The key is beside it, so that most comparisons need not look at the shard.
type bound struct {
	key int64
	sh  *Shard
}

// shardHeap has the smallest key first.
type shardHeap struct{ all []bound }

func (h *shardHeap) Len() int           { return len(h.all) }
func (h *shardHeap) Less(i, j int) bool { return h.all[i].key < h.all[j].key }

func (h *shardHeap) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].sh.place.at, h.all[j].sh.place.at = i, j
}

func (h *shardHeap) Push(e any) {
	b := e.(bound)
	b.sh.place.at = len(h.all)
	h.all = append(h.all, b)
}

func (h *shardHeap) Pop() any {
	last := len(h.all) - 1
	b := h.all[last]
	h.all[last] = bound{}
	h.all = h.all[:last]
	return b
}

// move puts a shard into a heap, out of it, or to another place in it.
func (x *index) move(sh *Shard, to *shardHeap, key int64) {
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
		heap.Push(to, bound{key, sh})
	}
}

// raiseOpen lets f change the open shards, which may only raise what is below a limit up to it: such a change leaves
// the heap in order.
func (x *index) raiseOpen(f func(*Shard)) {
	for i := range x.open.all {
		b := &x.open.all[i]
		f(b.sh)
		b.key = b.sh.Watermark
	}
}
