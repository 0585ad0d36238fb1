package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// recent is how many changes of an item are listed.
const recent = 20

// history is what the log of a table and the streams beside it hold of one item.
type history struct {
	of    *tableLog
	key   []byte
	image func([]byte) // receives every image of the item that is found

	result   *History
	latest   *latest
	above    []position // of the changes above the mark of Bigtable
	letters  []*deadletter.Letter
	requests []Request
}

// tableLog is the log of one table.
type tableLog struct {
	log    *control.Log
	schema change.KeySchema
}

// latest is the newest change of the item in the log.
type latest struct {
	seq   uint64
	after []byte // the item after it, canonical; nil without one
}

// position is where a change of the item stands.
type position struct {
	seq     uint64
	version change.Version
}

// read reads what the log holds of items: all of it, in one walk.
func (t *tableLog) read(ctx context.Context, items []*history) error {
	if err := t.readLog(ctx, items); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if err := t.readLetters(ctx, items); err != nil {
		return fmt.Errorf("read dead letters: %w", err)
	}
	if err := t.readRequests(ctx, items); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	return nil
}

// walkTries is how often a log is walked that is trimmed meanwhile.
const walkTries = 3

func (t *tableLog) readLog(ctx context.Context, items []*history) (err error) {
	for range walkTries {
		if err = t.walk(ctx, items); !errors.Is(err, queue.ErrTrimmed) {
			return err
		}
	}
	return err
}

func (t *tableLog) walk(ctx context.Context, items []*history) error {
	info, err := t.log.Log.Info(ctx)
	if err != nil {
		return err
	}
	keys := make([][]byte, len(items))
	for i, h := range items {
		keys[i] = h.key
		h.begin(info)
	}
	w := queue.Walk{Log: t.log.Log}
	_, err = w.ChangesOf(ctx, t.schema, keys, func(i int, c *queue.WalkedChange) error { return items[i].add(c) })
	return err
}

// begin forgets what was read before.
func (h *history) begin(info queue.Info) {
	h.latest, h.above = nil, nil
	h.result = &History{First: info.First, Last: info.Last, Trimmed: info.Trimmed(), Entries: []Change{},
		Marks: map[string]uint64{}}
	if !info.Oldest.IsZero() {
		oldest := info.Oldest.UTC()
		h.result.Oldest = &oldest
	}
	for sink, mark := range h.of.log.State.Marks {
		h.result.Marks[sink] = mark.Seq
	}
}

// add adds a change of the item.
func (h *history) add(c *queue.WalkedChange) error {
	r := h.result
	if r.Changes++; len(r.Entries) == recent {
		r.Entries = slices.Delete(r.Entries, 0, 1)
	}
	one := Change{
		Seq: c.Entry.Seq, Op: c.Op.String(), TTL: c.TTL, Version: c.Version, Created: c.Created.Time().UTC(),
		Shard: c.Feed.Shard, Applied: []string{},
	}
	for _, sink := range slices.Sorted(maps.Keys(r.Marks)) {
		if r.Marks[sink] >= one.Seq {
			one.Applied = append(one.Applied, sink)
		}
	}
	if fence := h.of.log.State.Fence; fence != nil {
		one.BehindFence = one.Seq > fence.Seq
	}
	r.Entries = append(r.Entries, one)
	if one.Seq > h.mark() {
		h.above = append(h.above, position{one.Seq, one.Version})
	}
	h.latest = &latest{seq: one.Seq}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw != nil {
			h.image(raw)
		}
	}
	if c.New == nil {
		return nil
	}
	after, err := canonical(c.New)
	h.latest.after = after
	return err
}

// canonical returns an item in the form in which equal items have equal bytes.
func canonical(raw []byte) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	var d change.Decoder
	img, err := d.Image(raw)
	if err != nil {
		return nil, err
	}
	return img.AppendJSON(nil), nil
}

func (t *tableLog) readLetters(ctx context.Context, items []*history) error {
	byHash := map[uint64][]*history{}
	for _, h := range items {
		h.letters = nil
		hash := change.HashKey(h.key)
		byHash[hash] = append(byHash[hash], h)
	}
	store, err := t.log.Log.ExistingDeadLetters(ctx)
	if err != nil || store == nil {
		return err
	}
	for l, err := range store.All(ctx) {
		if err != nil {
			return err
		}
		for _, h := range byHash[l.KeyHash] {
			h.addLetter(l)
		}
	}
	for _, h := range items {
		h.markRefused()
	}
	return nil
}

// addLetter adds a letter with the hash of the item's key, if it is of the item.
func (h *history) addLetter(l *deadletter.Letter) {
	if !h.isOf(l) {
		return
	}
	h.letters = append(h.letters, l)
	c, err := l.Change()
	if err != nil {
		return
	}
	for _, raw := range [][]byte{c.Old, c.New} {
		if raw != nil {
			h.image(raw)
		}
	}
}

// isOf reports whether a letter with the hash of the item's key is of the item. One that cannot be
// read is taken for one: its reason may explain the row.
func (h *history) isOf(l *deadletter.Letter) bool {
	img, err := keyImage(l.ItemKeys())
	if err != nil {
		return true
	}
	key, err := h.of.schema.Canonical(nil, img)
	return err != nil || bytes.Equal(key, h.key)
}

func (t *tableLog) readRequests(ctx context.Context, items []*history) error {
	byKey := map[string]*history{}
	for _, h := range items {
		h.requests, byKey[string(h.key)] = nil, h
	}
	store, err := t.log.Log.ExistingRequests(ctx)
	if err != nil || store == nil {
		return err
	}
	chunks, err := store.Pending(ctx)
	for _, c := range chunks {
		for i := range c.Items {
			if h := byKey[string(c.Items[i].Key)]; h != nil {
				h.requests = append(h.requests, Request{ID: c.ID, What: c.What, By: c.By, Asked: c.Asked.UTC()})
			}
		}
	}
	return err
}

// markRefused moves the sinks of open dead letters from Applied to Refused of their changes. A mark
// passes a change that is stored as a letter, so it does not show whether the change was applied.
func (h *history) markRefused() {
	for i := range h.result.Entries {
		c := &h.result.Entries[i]
		for _, l := range h.letters {
			if at := slices.Index(c.Applied, l.Sink); at >= 0 && l.Copy == "" && l.Version == c.Version {
				c.Applied = slices.Delete(c.Applied, at, at+1)
				c.Refused = append(c.Refused, l.Sink)
			}
		}
	}
}

// lacks notes the first change of the item that a differing row lacks because it was refused.
func (r *StoredRow) lacks(letters []*deadletter.Letter) {
	if !r.differs {
		return
	}
	for _, l := range letters {
		newer := l.Sink == checkpoint.SinkBigtable && l.Version > max(r.Guard, r.Deleted)
		if newer && (r.Refused == nil || l.Version < r.Refused.Version) {
			r.Refused = &RefusedChange{Letter: l.ID, Version: l.Version, Reason: l.Reason}
		}
	}
}

// lettersShown returns the letters as they are printed.
func (h *history) lettersShown(data bool) []deadletter.Summary {
	out := []deadletter.Summary{}
	for _, l := range h.letters {
		out = append(out, l.Summary(data))
	}
	return out
}

// pending returns how many changes of the item Bigtable has not applied: the mark is behind them,
// and the guards do not say that the rows have their version or a later one. The mark follows
// within a second.
func (h *history) pending(applied change.Version) (n int, last uint64) {
	for _, c := range h.above {
		if c.version > applied {
			n, last = n+1, c.seq
		}
	}
	return n, last
}

func (h *history) mark() uint64 { return h.of.mark() }

func (t *tableLog) mark() uint64 { return t.log.State.Marks[checkpoint.SinkBigtable].Seq }

// obstacle is why nothing is applied at the moment, and what ends that; zero while changes are
// applied.
type obstacle struct{ why, next string }

// obstacle returns what keeps the changes of the log from being applied.
func (e *Explainer) obstacle(ctx context.Context, p *pair.Pair, t *tableLog) obstacle {
	s := t.log.State
	if halt := s.AllHalts()[checkpoint.SinkBigtable]; halt != nil {
		return obstacle{fmt.Sprintf("table %s is halted: %s", t.log.Table, halt.Reason),
			"mend the cause; `replicator status` says what to do"}
	}
	if s.StandsAtFence() {
		return obstacle{fmt.Sprintf("table %s is fenced for a cutover", t.log.Table),
			"`replicator status` says how the cutover stands; only `replicator cutover --undo` takes the fence away"}
	}
	signs := control.Signs{
		Silent: control.OwnerSilence(s, p.Now().Time()), TTL: time.Duration(e.Config.Protocol.ClaimTTL),
		Closed: e.Clients.StoreWasClosed(),
	}
	if err := control.CheckOwner(t.log.Table, s, signs); err != nil {
		err = control.WhyNotOwned(ctx, e.Config, err)
		_, next := failure.Of(err)
		return obstacle{err.Error(), next}
	}
	return obstacle{}
}

const (
	etaLooks  = 3
	etaPeriod = time.Second // marks are stored once a second
)

// eta waits a little, and estimates from the progress of the mark when an entry will be applied; 0:
// it is applied already. moving reports whether the mark moves at all.
func (t *tableLog) eta(ctx context.Context, entry uint64) (d time.Duration, moving bool, err error) {
	began, first := time.Now(), t.mark()
	for range etaLooks {
		if err := failure.Pause(ctx, etaPeriod); err != nil {
			return 0, false, err
		}
		if err := t.log.Refresh(ctx); err != nil {
			return 0, false, err
		}
		if t.mark() >= entry {
			return 0, true, nil
		}
	}
	done := t.mark() - first
	if done == 0 {
		return 0, false, nil
	}
	each := time.Since(began) / time.Duration(done)
	return max(time.Second, (each * time.Duration(entry-t.mark())).Round(time.Second)), true, nil
}
