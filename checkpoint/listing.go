package checkpoint

import (
	"slices"
)

// ListingPartBytes bounds the shards in one entry, roughly, in bytes. A listing of many thousand
// shards is larger than a NATS server's message, so it is stored in parts.
const ListingPartBytes = 256 << 10

// storedSize estimates the bytes of a shard in an entry.
func storedSize(x *ShardSeen) int { return len(x.ID) + len(x.Parent) + 48 }

// SplitStart returns a start in parts of about limit bytes of shards. The stream starts with the
// last part; when one is lost, the writer begins again with the first.
func SplitStart(b *Start, limit int) []*Start {
	var parts []*Start
	for shards := range splitBySize(b.Shards, limit, storedSize) {
		part := *b
		part.Shards, part.Part = shards, len(parts)
		parts = append(parts, &part)
	}
	if len(parts) < 2 {
		return []*Start{b}
	}
	for _, p := range parts {
		p.Parts = len(parts)
	}
	return parts
}

// splitBySize cuts a list where the sizes of its elements add up to a limit.
func splitBySize[T any](all []T, limit int, size func(*T) int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		from, sum := 0, 0
		for i := range all {
			n := size(&all[i])
			if i > from && sum+n > limit {
				if !yield(all[from:i:i]) {
					return
				}
				from, sum = i, 0
			}
			sum += n
		}
		if len(all) > 0 {
			yield(all[from:])
		}
	}
}

// DiffListing returns the entries that store what is new in a listing, none when nothing is. They
// hold only what is new, in entries of at most limit bytes of shards, and the last one records that
// the listing was complete.
func DiffListing(s *State, b *Graph, limit int) []*Graph {
	if !differs(s, b) {
		return nil
	}
	if s.Stream(b.Stream) == nil {
		return []*Graph{b}
	}
	var parts []*Graph
	part := func() *Graph {
		parts = append(parts, &Graph{Stream: b.Stream, Date: b.Date, Delta: true})
		return parts[len(parts)-1]
	}
	id := func(id *string) int { return len(*id) + 3 }
	for all := range splitBySize(changedShards(s, b), limit, storedSize) {
		part().Shards = all
	}
	for all := range splitBySize(b.Gone, limit, id) {
		part().Gone = all
	}
	for all := range splitBySize(newlyAbsent(s, b), limit, id) {
		part().Absent = all
	}
	last := part()
	if n := len(parts); n > 1 {
		parts, last = parts[:n-1], parts[n-2]
	}
	last.Complete, last.Disabled, last.Enabled = b.Complete, b.Disabled, b.Enabled
	return parts
}

// changedShards returns the shards of a listing that differ from the state, parents first.
func changedShards(s *State, b *Graph) []ShardSeen {
	listed := make(map[string]*ShardSeen, len(b.Shards))
	for i := range b.Shards {
		listed[b.Shards[i].ID] = &b.Shards[i]
	}
	var changed []ShardSeen
	added := map[string]bool{}
	var add func(x *ShardSeen)
	add = func(x *ShardSeen) {
		if added[x.ID] || !shardDiffers(s, b, x, listed) {
			return
		}
		added[x.ID] = true
		if p := listed[x.Parent]; p != nil {
			add(p)
		}
		changed = append(changed, *x)
	}
	for i := range b.Shards {
		add(&b.Shards[i])
	}
	return changed
}

// shardDiffers reports whether a listed shard differs from the state.
func shardDiffers(
	s *State, b *Graph, x *ShardSeen, listed map[string]*ShardSeen,
) bool {
	sh := s.Shards[x.ID]
	// A child that was found before its parent closes it, whatever the listing shows of the parent.
	return sh == nil || sh.Stream != b.Stream || sh.AbsentSince != 0 || x.Closed && !sh.Phase.Closed() ||
		sh.RevivedBy(*x, b.Date) || s.Shards[x.Parent] == nil && listed[x.Parent] != nil
}

// newlyAbsent returns the finished shards that this complete listing is the first not to show,
// sorted.
func newlyAbsent(s *State, b *Graph) (ids []string) {
	if !b.Complete {
		return nil
	}
	listed := make(map[string]bool, len(b.Shards))
	for i := range b.Shards {
		listed[b.Shards[i].ID] = true
	}
	for id, sh := range s.Shards {
		if !listed[id] && s.MarksAbsent(sh, b.Date) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// differs reports whether a listing holds anything that the log does not: only then it is stored.
func differs(s *State, b *Graph) bool {
	st := s.Stream(b.Stream)
	if st != nil && st != s.LiveStream() {
		return false
	}
	if st == nil || b.Disabled && !st.Disabled || b.Enabled && st.Disabled || len(b.Gone) > 0 {
		return true
	}
	listed := make(map[string]bool, len(b.Shards))
	for _, x := range b.Shards {
		listed[x.ID] = true
		sh := s.Shards[x.ID]
		if sh == nil || x.Closed && !sh.Phase.Closed() || sh.AbsentSince != 0 || sh.RevivedBy(x, b.Date) {
			return true
		}
	}
	if !b.Complete {
		return false
	}
	for id, sh := range s.Shards {
		forgets := sh.AbsentSince != 0 && sh.Phase == PhaseFinished && sh.Forgettable(b.Date)
		if !listed[id] && (s.MarksAbsent(sh, b.Date) || forgets) {
			return true
		}
	}
	return false
}
