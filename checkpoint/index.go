package checkpoint

import (
	"container/heap"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// index answers questions about all shards of a table without a scan. The write loop needs the
// answers at the end of every shard, and with ten thousand shards that rotate every four hours the
// state holds more than a hundred thousand. The index is derived from the rest of the state:
// snapshots do not hold it, Restore rebuilds it.
type index struct {
	children       map[string][]*Shard // by the parent's ID, also of parents that no listing has shown
	open           shardHeap           // open shards by Watermark
	others         shardHeap           // waiting and finished shards that hold the read watermark back, by its bound
	counts         [numRoles]int
	top            change.Version // highest clock of any shard so far
	missingParents map[string]int // number of waiting shards by a parent that no listing has shown
	unfinished     map[string]int // number of shards that are not finished, by stream
	beforeGap      map[string]*Shard
	unreadOpen     map[string]*Shard
	absent         map[string]*Shard
	finished       []*Shard // finished shards that may hold the read watermark back, by FinishedAt
	readability    []*Shard // shards that became readable, or unreadable, since TakeReadabilityChanges
}

// role is a property that a shard may have; the index counts the shards with each.
type role uint

const (
	roleOpen role = iota
	roleClosed
	roleWaiting
	roleDone
	roleOrphan    // waits for a parent that no listing has shown
	roleChildless // finished, and no child of it is known
	roleGapped
	roleUnreadOpen // not read, and the newest listing shows no end of it
	roleAbsent
	roleReadable
	numRoles
)

// indexState is the entry of one shard in the index.
type indexState struct {
	roles  [numRoles]bool
	heap   *shardHeap // nil: in none
	at     int        // in the heap
	gone   bool       // deleted from the state
	listed bool       // in the index's readability list
	parent bool       // children of it are known
}

func newIndex() index {
	return index{
		children: map[string][]*Shard{}, missingParents: map[string]int{}, unfinished: map[string]int{},
		beforeGap: map[string]*Shard{}, unreadOpen: map[string]*Shard{}, absent: map[string]*Shard{},
	}
}

// Reindex rebuilds the index. Only code that changes the shards of a state directly must call it.
func (s *State) Reindex() {
	changed := s.index.readability
	s.index = newIndex()
	s.index.readability, s.index.top = changed, s.DroppedVersion
	for _, sh := range s.Shards {
		sh.inIndex = indexState{listed: sh.inIndex.listed}
		s.linkToParent(sh)
		if sh.Phase.Finished() {
			s.index.finished = append(s.index.finished, sh)
		}
	}
	slices.SortFunc(s.index.finished, func(a, b *Shard) int { return int(min(max(a.FinishedAt-b.FinishedAt, -1), 1)) })
	for _, sh := range s.Shards {
		s.reindexShard(sh)
	}
	s.releaseFinished()
}

// linkToParent adds a shard to the children of its parent.
func (s *State) linkToParent(sh *Shard) {
	if sh.Parent != "" {
		s.index.children[sh.Parent] = append(s.index.children[sh.Parent], sh)
	}
}

// addShard adds a new shard. It replaces one of another stream with the same ID.
func (s *State) addShard(sh *Shard) {
	if old := s.Shards[sh.ID]; old != nil {
		s.dropShard(old)
	}
	s.Shards[sh.ID] = sh
	s.linkToParent(sh)
	s.reindexWithChildren(sh)
	s.withParent(sh, s.reindexShard)
}

// removeShard removes a shard for which no child waits: it is finished, or another stream has a
// shard of this ID.
func (s *State) removeShard(sh *Shard) {
	delete(s.Shards, sh.ID)
	if all := slices.DeleteFunc(s.index.children[sh.Parent], func(c *Shard) bool { return c == sh }); len(all) > 0 {
		s.index.children[sh.Parent] = all
	} else {
		delete(s.index.children, sh.Parent)
	}
	sh.inIndex.gone = true
	s.reindexShard(sh)
	s.withParent(sh, s.reindexShard)
}

// withParent calls f with the parent of a shard, if the state has it.
func (s *State) withParent(sh *Shard, f func(*Shard)) {
	if p := s.Shards[sh.Parent]; p != nil {
		f(p)
	}
}

// reindexWithChildren updates the index after a change of a shard. It updates the children too,
// since the bound that a waiting shard puts on the read watermark depends on its parent.
func (s *State) reindexWithChildren(sh *Shard) {
	s.reindexShard(sh)
	for _, child := range s.index.children[sh.ID] {
		s.reindexShard(child)
	}
}

// reindexShard updates the roles of a shard and its position in the heaps.
func (s *State) reindexShard(sh *Shard) {
	x := &s.index
	x.top = max(x.top, sh.Clock)
	sh.inIndex.parent = len(x.children[sh.ID]) > 0
	now := s.roles(sh)
	for r, is := range now {
		if is != sh.inIndex.roles[r] {
			x.setRole(sh, role(r), is)
		}
	}
	sh.inIndex.roles = now
	h, key := s.watermarkBound(sh)
	x.moveInHeap(sh, h, key)
}

// roles returns which roles a shard has now.
func (s *State) roles(sh *Shard) (is [numRoles]bool) {
	if sh.inIndex.gone {
		return is
	}
	is[roleDone], is[roleWaiting] = sh.Phase.Finished(), sh.Phase.Waiting()
	is[roleClosed], is[roleOpen] = sh.Phase == PhaseClosed, sh.Phase == PhaseOpen
	is[roleOrphan] = sh.Phase.Waiting() && s.Shards[sh.Parent] == nil
	is[roleChildless] = sh.Phase.Finished() && sh.AbsentSince == 0 && s.mayGetChildren(sh)
	is[roleGapped], is[roleAbsent], is[roleReadable] = sh.Loss.Pending, sh.AbsentSince != 0, s.Readable(sh)
	is[roleUnreadOpen] = sh.SeenOpen || sh.Loss.Pending && !sh.Phase.Closed()
	return is
}

// mayGetChildren reports whether a finished shard may have children that no listing has shown yet.
func (s *State) mayGetChildren(sh *Shard) bool {
	live := s.LiveStream()
	return live != nil && !live.Disabled && sh.Stream == live.ARN && !sh.inIndex.parent
}

// setRole counts a shard that gained or lost a role.
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
	case roleUnreadOpen:
		setMember(x.unreadOpen, sh, is)
	case roleAbsent:
		setMember(x.absent, sh, is)
	case roleReadable:
		if !sh.inIndex.listed {
			sh.inIndex.listed = true
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

// watermarkBound returns the time at which a shard holds the read watermark, and the heap for that
// bound; nil when the shard does not hold it back.
func (s *State) watermarkBound(sh *Shard) (*shardHeap, change.Millis) {
	x := &s.index
	switch {
	case sh.inIndex.gone:
		return nil, 0
	case sh.Phase.Reading():
		return &x.open, sh.Watermark
	case sh.Phase.Waiting():
		// Its changes are newer than all of its parent's. Empty reads of the parent prove nothing
		// about it.
		p := s.Shards[sh.Parent]
		if p == nil {
			return &x.others, sh.Watermark
		}
		if p.Phase.Waiting() {
			return nil, 0
		}
		return &x.others, max(sh.Watermark, p.LastAlive)
	case sh.SeenOpen:
		return &x.others, sh.Watermark // Rules 10 and 13: it may live, and nothing behind that is read
	case sh.Phase == PhaseEarly || !s.mayGetChildren(sh) || s.Listed >= sh.FinishedAt+childListingDelay:
		return nil, 0
	}
	return &x.others, sh.LastAlive // Rule 10: its children may exist and not be listed yet
}

// noteListing notes the date of a complete listing. Finished shards no longer hold the read
// watermark back if the listing must have shown their children.
func (s *State) noteListing(date change.Millis) {
	if date > s.Listed {
		s.Listed = date
		s.releaseFinished()
	}
}

// releaseFinished updates the finished shards with children that the newest complete listing must
// have shown.
func (s *State) releaseFinished() {
	x := &s.index
	for len(x.finished) > 0 && s.Listed >= x.finished[0].FinishedAt+childListingDelay {
		s.reindexShard(x.finished[0])
		x.finished = x.finished[1:]
	}
}

// TakeReadabilityChanges returns the shards that became readable, or stopped being so, since its
// previous call; the first call returns all readable ones. Ask Readable for what a shard is now.
// The list has one consumer.
func (s *State) TakeReadabilityChanges() []*Shard {
	all := s.index.readability
	s.index.readability = nil
	for _, sh := range all {
		sh.inIndex.listed = false
	}
	return all
}

// AwaitsChildren reports whether a shard of the live stream has ended and no child of it is known
// yet.
func (s *State) AwaitsChildren() bool { return s.index.counts[roleChildless] > 0 }

// GappedShards returns the shards of the live stream that stand before a gap that is not accepted.
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

// heapEntry is a shard in a heap, stored with its key, so that comparisons do not follow the
// pointer.
type heapEntry struct {
	key change.Millis
	sh  *Shard
}

// shardHeap is a heap of shards with the smallest key first.
type shardHeap struct{ all []heapEntry }

func (h *shardHeap) Len() int           { return len(h.all) }
func (h *shardHeap) Less(i, j int) bool { return h.all[i].key < h.all[j].key }

func (h *shardHeap) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.all[i].sh.inIndex.at, h.all[j].sh.inIndex.at = i, j
}

func (h *shardHeap) Push(e any) {
	b := e.(heapEntry)
	b.sh.inIndex.at = len(h.all)
	h.all = append(h.all, b)
}

func (h *shardHeap) Pop() any {
	last := len(h.all) - 1
	b := h.all[last]
	h.all[last] = heapEntry{}
	h.all = h.all[:last]
	return b
}

// moveInHeap puts a shard into a heap, takes it out, or moves it according to a new key.
func (x *index) moveInHeap(sh *Shard, to *shardHeap, key change.Millis) {
	p := &sh.inIndex
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

// updateOpen calls f with every open shard. The order of the heap is restored afterwards only where
// shards stand before a gap. So of the others f may only raise all watermarks below some limit to
// that limit, which keeps the order.
func (x *index) updateOpen(f func(*Shard)) {
	for i := range x.open.all {
		b := &x.open.all[i]
		f(b.sh)
		b.key = b.sh.Watermark
	}
	if len(x.beforeGap) > 0 {
		heap.Init(&x.open)
	}
}
