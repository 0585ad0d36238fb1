package protocol

import "bytes"

// Job is a change that waits in a lane.
type Job interface {
	Hash() uint64 // of the item's canonical key
	Key() []byte  // of the item, as the change spells it
}

// Grouper groups the changes of a batch by item. It keeps its memory for the next batch.
type Grouper[J Job] struct {
	hashes []uint64
	taken  []bool
	same   []J
}

// EachGroup calls write for each item of a batch with the changes that one write may unite: the
// items in the order of their first change, the changes of an item in the order of the log. It ends
// with the first error.
func EachGroup[T any, J interface {
	*T
	Job
}](g *Grouper[J], batch []T, write func([]J) error) error {
	g.hashes, g.taken = g.hashes[:0], g.taken[:0]
	for i := range batch {
		g.hashes, g.taken = append(g.hashes, J(&batch[i]).Hash()), append(g.taken, false)
	}
	for i, hash := range g.hashes {
		if g.taken[i] {
			continue
		}
		g.same = g.same[:0]
		for k := i; k < len(batch); k++ {
			if g.hashes[k] == hash && !g.taken[k] {
				g.taken[k] = true
				g.same = append(g.same, J(&batch[k]))
			}
		}
		if err := writeSameHash(g.same, write); err != nil {
			return err
		}
	}
	return nil
}

// writeSameHash writes changes with one key hash, in order. Two items may share a hash, and a key
// may be spelled in two ways: only changes with the same key bytes are united.
func writeSameHash[J Job](jobs []J, write func([]J) error) error {
	for len(jobs) > 0 {
		n := countSameItem(jobs)
		if err := write(jobs[:n]); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// countSameItem returns how many of the first jobs are changes of one item.
func countSameItem[J Job](jobs []J) int {
	n := 1
	for n < len(jobs) && bytes.Equal(jobs[n].Key(), jobs[0].Key()) {
		n++
	}
	return n
}
