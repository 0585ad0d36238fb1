package apply

import (
	"maps"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// letteredItem are the dead letters of an item; of several, if they share a key hash.
type letteredItem struct {
	letters []letterRef
	dirty   change.Version // the lowest version of the dead letters that make the item dirty; 0: none does
}

// letterRef is a dead letter without its content.
type letterRef struct {
	id      string
	sink    string
	code    string // why it was refused
	version change.Version
	// dirty is set while the rows of the item do not hold what the change would have made of them.
	// A letter of a copy does not make its item dirty: the item's next change replaces what the
	// copy did not write.
	dirty  bool
	copied bool // it is a copy's
}

func refOf(l *deadletter.Letter) letterRef {
	return letterRef{
		id: l.ID, sink: l.Sink, code: l.Code, version: l.Version,
		dirty:  l.Sink == checkpoint.SinkBigtable && l.Copy == "" && l.Resynced == 0,
		copied: l.Copy != "",
	}
}

// addLetter notes a dead letter of an item.
func addLetter(items map[uint64]*letteredItem, hash uint64, ref letterRef) {
	x := items[hash]
	if x == nil {
		x = &letteredItem{}
		items[hash] = x
	}
	x.letters = append(x.letters, ref)
	x.noteDirty(ref)
}

func (x *letteredItem) noteDirty(ref letterRef) {
	if ref.dirty && (x.dirty == 0 || ref.version < x.dirty) {
		x.dirty = ref.version
	}
}

// Codes returns how many dead letters there are of each code; nil without one, and for a nil
// *DeadLetters. It is called with each frame, so it must not cost more, the more letters there are.
func (l *DeadLetters) Codes() map[string]int {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.codes) == 0 {
		return nil
	}
	return maps.Clone(l.codes)
}
