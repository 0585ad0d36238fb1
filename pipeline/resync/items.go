package resync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/source"
)

// Wanted is one item to be resynced.
type Wanted struct {
	Key     []byte   // canonical
	Rows    [][]byte // further rows that may hold the item
	Letters bool     // its dead letters are tried first
	// Future is a guard in the future, which only this write may replace; 0: none is known. A
	// resync that meets one replaces it, too.
	Future change.Version

	passed int // how often it was skipped for another request's reading
}

// Items resyncs single items: for requests, and for the differences of a whole table.
type Items struct {
	o    *Options
	hand *itemHand

	// Of a call of Resync that failed; the next call for the same items goes on with those that are
	// open.
	list []Wanted
	out  []apply.ResyncOutcome
	open []int // indices in list

	mu    sync.Mutex // covers what follows, which is about one call of Resync
	doing string
	left  int // items that are not written yet
}

// NewItems returns the Items of a table for one life.
func NewItems(o Options) *Items { return &Items{o: &o, hand: newItemHand()} }

const (
	itemsPerRead = 100 // keys of one BatchGetItem
	itemWriters  = 64  // items written at once
	// unitsPerItem is the expected cost of reading an item, until a reply shows the real one.
	unitsPerItem = 1
)

// read is an item that was read and waits for the proof.
type read struct {
	at   int // index in the caller's list
	item *apply.ResyncItem
}

func (r *read) size() int { return len(r.item.Item) + len(r.item.Keys) }

// What a resync does, for note.
const (
	doingRead  = "it is being read"
	doingProof = "what was written before the reading is not in Bigtable yet"
	doingWrite = "Bigtable neither takes nor refuses the rows of %d of its items"
)

// note notes what is being done, and to how many items.
func (x *Items) note(doing string, left int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doing, x.left = doing, left
}

// wrote notes that one item less is left.
func (x *Items) wrote() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left--
}

// waitsFor returns what is being done, in words.
func (x *Items) waitsFor() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.doing == doingWrite:
		return fmt.Sprintf(doingWrite, x.left)
	case x.doing == doingProof && x.o.Unproven != nil && x.o.Unproven() != "":
		return x.o.Unproven()
	}
	return x.doing
}

// Resync reads the items strongly, waits until the stream has been applied past the readings, and
// writes each in its lane. It returns the outcome of each, in the order of list. It reads an item
// again if the reading became too old. It reads an item with a guard in the future once more to
// replace the guard, and once more after that. After an error it can be called again with the same
// items: it goes on with the items that are left.
func (x *Items) Resync(ctx context.Context, list []Wanted) ([]apply.ResyncOutcome, error) {
	if x.list == nil {
		x.out, x.list, x.open = make([]apply.ResyncOutcome, len(list)), slices.Clone(list), make([]int, len(list))
		for i := range x.open {
			x.open[i] = i
		}
	}
	for len(x.open) > 0 {
		group, rest, proof, err := x.readGroup(ctx, x.list, x.open)
		if err != nil {
			return nil, err
		}
		x.note(doingProof, len(group))
		if err := x.o.Prove(ctx, proof); err != nil {
			x.drop(group)
			return nil, err
		}
		x.note(doingWrite, len(group))
		again, err := x.write(ctx, x.list, group, x.out)
		x.open = append(again, rest...)
		if err != nil {
			return nil, err
		}
	}
	out := x.out
	x.list, x.out = nil, nil
	return out, nil
}

// readGroup reads open items until enough are in hand for one proof. It returns the items that it
// did not read, and the time up to which everything must be applied before the others are written.
func (x *Items) readGroup(
	ctx context.Context, list []Wanted, open []int,
) (group []read, rest []int, proof change.Millis, err error) {
	x.note(doingRead, len(open))
	var began time.Time
	for len(open) > 0 {
		if more, err := x.hand.Enter(ctx, began); err != nil {
			x.drop(group)
			return nil, nil, 0, err
		} else if !more {
			break
		}
		n, size := min(len(open), itemsPerRead), 0
		b, err := x.readBatch(ctx, list, open[:n])
		if err != nil {
			x.hand.Leave(0, 0)
			x.drop(group)
			return nil, nil, 0, err
		}
		for k, i := range open[:n] {
			w := &list[i]
			group = append(group, read{i, &apply.ResyncItem{
				Keys: w.Key, Hash: change.HashKey(w.Key), Item: b.Items[k], Version: x.o.versionOf(b.Requested),
				Requested: b.Requested, ReadAt: b.At, Rows: w.Rows, Letters: w.Letters, Future: w.Future, Lead: x.o.Lead(),
			}})
			size += group[len(group)-1].size()
		}
		x.hand.Leave(n, size)
		if began.IsZero() {
			began = b.At
		}
		proof = max(proof, b.Answered+answerMargin)
		open = open[n:]
	}
	return group, open, proof, nil
}

// drop gives the room of items back that are not written.
func (x *Items) drop(group []read) {
	for i := range group {
		x.hand.Drop(group[i].size())
	}
}

// readBatch reads open items of the list, as readKeys does.
func (x *Items) readBatch(ctx context.Context, list []Wanted, open []int) (*source.ItemBatch, error) {
	keys := make([][]byte, len(open))
	for k, i := range open {
		keys[k] = list[i].Key
	}
	return x.readKeys(ctx, keys)
}

// readKeys reads items by their canonical keys within the table's read budget, again and again
// while the service does not answer.
func (x *Items) readKeys(ctx context.Context, keys [][]byte) (*source.ItemBatch, error) {
	for tries := 1; ; tries++ {
		taken := float64(len(keys) * unitsPerItem)
		if err := x.o.Budget.Take(ctx, taken); err != nil {
			return nil, err
		}
		b, err := x.o.Reader.ReadItems(ctx, x.o.Source, keys)
		if err == nil {
			x.o.Budget.Settle(taken, b.Units)
			return b, nil
		}
		x.o.Budget.Settle(taken, 0)
		if class := source.Classify(err); class != failure.Transient && class != failure.Throttled {
			return nil, err
		}
		if err := failure.Pause(ctx, failure.Backoff(tries)); err != nil {
			return nil, err
		}
	}
}

// write writes items in their lanes, many at once. It returns those that must be read again: their
// reading was too old, they have a guard in the future, or a change of theirs that came since may
// have lost to one, which is gone now, or a newer reading of theirs was written before. With an
// error it returns those that were not written, too.
func (x *Items) write(
	ctx context.Context, list []Wanted, group []read, out []apply.ResyncOutcome,
) (again []int, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(itemWriters)
	open := make([]bool, len(group))
	for k := range group {
		g.Go(func() (err error) {
			done, err := x.o.write(ctx, group[k].item)
			stale := errors.Is(err, apply.ErrStale)
			x.hand.Written(group[k].size(), stale)
			x.wrote()
			if stale || err == nil {
				met := err == nil && x.meetsFuture(&list[group[k].at], &done)
				open[k] = stale || done.Replaced || met || x.passed(&list[group[k].at], &done)
				addOutcome(&out[group[k].at], done)
				return nil
			}
			open[k] = true
			return err
		})
	}
	err = g.Wait()
	for k := range group {
		if open[k] {
			again = append(again, group[k].at)
		}
	}
	return again, err
}

// passed reports whether an item was skipped for what is old enough by now that another reading is
// above it: another request for the item, or a change from before the proof.
func (x *Items) passed(w *Wanted, o *apply.ResyncOutcome) bool {
	if o.Skipped == 0 || o.Refused != nil || len(o.LettersLeft) > 0 || o.Hot >= x.o.Now() {
		return false
	}
	w.passed++
	return w.passed <= maxInWork // of so many requests for the item each may be the last one
}

// meetsFuture reports whether a row of an item has a guard in the future that was not known, and
// notes it. No change has such a version, and every change of the item would lose to it.
func (x *Items) meetsFuture(w *Wanted, o *apply.ResyncOutcome) bool {
	guard := o.Hot - apply.ResyncMargin // the highest one
	if guard <= x.o.Now()+change.Millis(x.o.Lead().Milliseconds()) || change.Version(guard) == w.Future {
		return false
	}
	w.Future = change.Version(guard)
	return true
}

// addOutcome adds what another resync of the same item found. What it wrote and which letters it
// applied adds up.
func addOutcome(sum *apply.ResyncOutcome, o apply.ResyncOutcome) {
	o.Written += sum.Written
	o.Left = max(o.Left, sum.Left)
	o.LettersApplied += sum.LettersApplied
	*sum = o
}

// canonicalKey returns the canonical form of a key in any notation.
func canonicalKey(schema change.KeySchema, key json.RawMessage) ([]byte, error) {
	var d change.Decoder
	img, err := d.Image(key)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return schema.Canonical(nil, img)
}
