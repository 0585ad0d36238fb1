package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	log    *control.Log
	schema change.KeySchema
	key    []byte
	image  func([]byte) // receives every image of the item that is found

	result   *History
	latest   *latest
	above    []position // of the changes above the mark of Bigtable
	letters  []*deadletter.Letter
	requests []Request
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

// read reads all of it.
func (h *history) read(ctx context.Context) error {
	if err := h.readLog(ctx); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if err := h.readLetters(ctx); err != nil {
		return fmt.Errorf("read dead letters: %w", err)
	}
	h.markRefused()
	if err := h.readRequests(ctx); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	return nil
}

// walkTries is how often a log is walked that is trimmed meanwhile.
const walkTries = 3

func (h *history) readLog(ctx context.Context) (err error) {
	for range walkTries {
		if err = h.walk(ctx); !errors.Is(err, queue.ErrTrimmed) {
			return err
		}
	}
	return err
}

func (h *history) walk(ctx context.Context) error {
	info, err := h.log.Log.Info(ctx)
	if err != nil {
		return err
	}
	h.latest, h.above = nil, nil
	h.result = &History{First: info.First, Last: info.Last, Trimmed: info.Trimmed(), Entries: []Change{},
		Marks: map[string]uint64{}}
	if !info.Oldest.IsZero() {
		oldest := info.Oldest.UTC()
		h.result.Oldest = &oldest
	}
	for sink, mark := range h.log.State.Marks {
		h.result.Marks[sink] = mark.Seq
	}
	w := queue.Walk{Log: h.log.Log}
	_, err = w.ChangesOf(ctx, h.schema, [][]byte{h.key}, func(_ int, c *queue.WalkedChange) error {
		return h.add(c)
	})
	return err
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

func (h *history) readLetters(ctx context.Context) error {
	store, err := h.log.Log.ExistingDeadLetters(ctx)
	if err != nil || store == nil {
		return err
	}
	hash := change.HashKey(h.key)
	for l, err := range store.All(ctx) {
		if err != nil {
			return err
		}
		if l.KeyHash != hash || !h.isOf(l) {
			continue
		}
		h.letters = append(h.letters, l)
		if c, err := l.Change(); err == nil {
			for _, raw := range [][]byte{c.Old, c.New} {
				if raw != nil {
					h.image(raw)
				}
			}
		}
	}
	return nil
}

// isOf reports whether a letter with the hash of the item's key is of the item. One that cannot be
// read is taken for one: its reason may explain the row.
func (h *history) isOf(l *deadletter.Letter) bool {
	keys := []byte(l.Keys)
	if c, err := l.Change(); err == nil {
		keys = c.Keys
	}
	img, err := keyImage(keys)
	if err != nil {
		return true
	}
	key, err := h.schema.Canonical(nil, img)
	return err != nil || bytes.Equal(key, h.key)
}

func (h *history) readRequests(ctx context.Context) error {
	store, err := h.log.Log.ExistingRequests(ctx)
	if err != nil || store == nil {
		return err
	}
	chunks, err := store.Pending(ctx)
	for _, c := range chunks {
		for i := range c.Items {
			if bytes.Equal(c.Items[i].Key, h.key) {
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

func (h *history) mark() uint64 { return h.log.State.Marks[checkpoint.SinkBigtable].Seq }

// blocked returns why nothing is applied at the moment; "" while it is.
func (h *history) blocked(signs control.Signs) string {
	s := h.log.State
	for _, sink := range []string{checkpoint.SinkBigtable, checkpoint.SinkPipeline} {
		if halt := s.AllHalts()[sink]; halt != nil {
			return fmt.Sprintf("table %s is halted: %s", h.log.Table, halt.Reason)
		}
	}
	switch err := control.CheckOwner(h.log.Table, s, signs); {
	case err != nil:
		return err.Error()
	case s.Fence != nil:
		return fmt.Sprintf("table %s is fenced for a cutover", h.log.Table)
	}
	return ""
}

const (
	etaLooks  = 3
	etaPeriod = time.Second // marks are stored once a second
)

// eta waits a little, and estimates from the progress of the mark when an entry will be applied; 0:
// it is applied already. moving reports whether the mark moves at all.
func (h *history) eta(ctx context.Context, entry uint64) (d time.Duration, moving bool, err error) {
	began, first := time.Now(), h.mark()
	for range etaLooks {
		if err := failure.Pause(ctx, etaPeriod); err != nil {
			return 0, false, err
		}
		if err := h.log.Refresh(ctx); err != nil {
			return 0, false, err
		}
		if h.mark() >= entry {
			return 0, true, nil
		}
	}
	done := h.mark() - first
	if done == 0 {
		return 0, false, nil
	}
	each := time.Since(began) / time.Duration(done)
	return max(time.Second, (each * time.Duration(entry-h.mark())).Round(time.Second)), true, nil
}
