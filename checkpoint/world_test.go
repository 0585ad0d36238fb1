package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// world is DynamoDB as far as the fold can tell: streams of one table, whose shards split and
// rotate, are listed late, are trimmed and vanish, and the clock of the service.
type world struct {
	*rand.Rand
	now     change.Millis // unix ms
	streams []*worldStream
	shards  []*worldShard
	commits int // numbers the records, and thereby the sequence numbers
	names   int
	history [items][]worldCommit
	orders  int // of operators
	target  target
}

type worldStream struct {
	arn      string
	disabled bool
	ended    change.Millis // when it was disabled
}

type worldShard struct {
	id, parent, stream string
	items              []int // of the table, that live in this partition
	recs               []worldRec
	closed             bool
	visible            change.Millis // when listings begin to show it
	born, ended        change.Millis
}

type worldRec struct {
	N, Item int
	Created change.Millis
}

const items = 18

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), now: 1_700_000_000_000}
	for item := range items { // the table is older than its stream
		w.change(item, w.now-change.Millis(w.Int64N(40*retention)))
	}
	w.enable()
	return w
}

func sequenceNumber(n int) change.SequenceNumber {
	return change.SequenceNumber(fmt.Sprintf("1%020d", n))
}

func (w *world) enable() {
	st := &worldStream{arn: fmt.Sprintf("arn-%d", len(w.streams))}
	w.streams = append(w.streams, st)
	all := make([]int, items)
	for i := range all {
		all[i] = i
	}
	n := 1 + w.IntN(items-1)
	w.shard("", st.arn, all[:n])
	w.shard("", st.arn, all[n:])
}

func (w *world) live() *worldStream { return w.streams[len(w.streams)-1] }

func (w *world) disable() {
	w.live().disabled, w.live().ended = true, w.now
	for _, sh := range w.shards {
		w.end(sh)
	}
}

func (w *world) end(sh *worldShard) {
	if !sh.closed {
		sh.closed, sh.ended = true, w.now
	}
}

func (w *world) shard(parent, arn string, items []int) {
	w.names++
	late := change.Millis(0)
	if parent != "" && w.IntN(3) == 0 {
		late = change.Millis(w.Int64N(5000))
	}
	w.shards = append(w.shards, &worldShard{
		id: fmt.Sprintf("shard-%03d", w.names), parent: parent, stream: arn, items: items, visible: w.now + late, born: w.now,
	})
}

// split closes an open shard. Its items go to one child, or to two.
func (w *world) split() {
	sh := w.pick(func(sh *worldShard) bool { return !sh.closed })
	if sh == nil {
		return
	}
	w.end(sh)
	if n := len(sh.items); n > 1 && w.IntN(2) == 0 {
		cut := 1 + w.IntN(n-1)
		w.shard(sh.id, sh.stream, sh.items[:cut])
		w.shard(sh.id, sh.stream, sh.items[cut:])
		return
	}
	w.shard(sh.id, sh.stream, sh.items)
}

func (w *world) pick(ok func(*worldShard) bool) *worldShard {
	var fit []*worldShard
	for _, sh := range w.shards {
		if ok(sh) {
			fit = append(fit, sh)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.IntN(len(fit))]
}

// commit changes an item, some much more often than others. While the stream is disabled no stream
// has the change.
func (w *world) commit() {
	item := w.IntN(items)
	if w.IntN(2) == 0 {
		item %= 3
	}
	w.change(item, w.now)
	sh := w.pick(func(sh *worldShard) bool { return !sh.closed && slices.Contains(sh.items, item) })
	if sh != nil {
		sh.recs = append(sh.recs, worldRec{w.commits, item, w.now - w.now%1000})
	}
}

// change puts or deletes an item of the table.
func (w *world) change(item int, at change.Millis) {
	w.commits++
	w.history[item] = append(w.history[item], worldCommit{n: w.commits, at: at, gone: w.IntN(5) == 0})
}

// gone says whether the service does not know a shard any more; trimmed whether it has lost records
// of it.
func (w *world) gone(sh *worldShard) bool { return sh.closed && w.now-sh.ended > retention }

func (w *world) find(id string) *worldShard {
	for _, sh := range w.shards {
		if sh.id == id && !w.gone(sh) {
			return sh
		}
	}
	return nil
}

// list answers a listing: complete, or only a part of it.
func (w *world) list(arn string, complete bool) *Graph {
	g := &Graph{Stream: arn, Date: w.now, Complete: complete}
	for _, sh := range w.shards {
		if sh.stream != arn || w.gone(sh) || sh.visible > w.now || !complete && w.IntN(3) == 0 {
			continue
		}
		g.Shards = append(g.Shards, ShardSeen{ID: sh.id, Parent: sh.parent, Closed: sh.closed &&
			(w.now-sh.ended > visibilityDelay || w.IntN(2) == 0)})
	}
	w.Shuffle(len(g.Shards), func(i, j int) { g.Shards[i], g.Shards[j] = g.Shards[j], g.Shards[i] })
	for _, st := range w.streams {
		g.Disabled = g.Disabled || st.arn == arn && st.disabled
	}
	return g
}

// read answers GetRecords: what follows the position, whether records in between were trimmed, and
// whether the shard ends there.
func (w *world) read(sh *worldShard, after change.SequenceNumber, at change.Millis, limit int) (recs []worldRec,
	trimmed, done bool) {
	for i, r := range sh.recs {
		switch {
		case after != "" && sequenceNumber(r.N) <= after, after == "" && r.Created < at-at%1000:
			continue
		case w.now-r.Created > retention:
			if after != "" {
				return nil, true, false
			}
			continue // trimmed: the service does not say so
		case len(recs) == limit:
			return recs, false, false
		}
		recs = append(recs, sh.recs[i])
	}
	return recs, false, sh.closed && (len(recs) > 0 || w.IntN(3) > 0)
}
