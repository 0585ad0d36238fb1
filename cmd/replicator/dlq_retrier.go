package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Codes of letters that only retry gives.
const (
	codeCascade = "cascade" // it would delete what was written later
)

// retrier applies dead letters.
type retrier struct {
	app  *app
	cfg  *config.Config
	src  *source.Source
	sink *bigtable.Client
	arch archiveSink   // opened for the first letter of the archive
	only *queue.Letter // nil: all letters

	dec   change.Decoder
	write transform.Write

	applied, refused, left int
	why                    []string
}

func (r *retrier) close() {
	if r.arch != nil {
		_ = r.arch.Close()
	}
}

// box applies the letters of one table, item by item. The error is one that keeps the next items from being tried.
func (r *retrier) box(ctx context.Context, box letterBox, c *carried) error {
	items, err := r.items(ctx, box)
	if err != nil || len(items) == 0 {
		return err
	}
	if err := r.identical(ctx, box, c); err != nil {
		return err
	}
	for _, ids := range items {
		x := item{retrier: r, box: box, program: c.program}
		if err := x.apply(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// items returns the ids of the letters, by item and in version order; items in the order in which they were first
// refused. Records stay in the store: all of them may be more than fits in memory.
func (r *retrier) items(ctx context.Context, box letterBox) (items [][]string, err error) {
	type key struct {
		sink string
		hash uint64
	}
	letters := map[key][]*queue.Letter{}
	var order []key
	for l, err := range box.letters.All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list dead letters of %s: %w", box.table.Source, err)
		}
		k := key{l.Sink, l.KeyHash}
		if r.only != nil && k != (key{r.only.Sink, r.only.KeyHash}) {
			continue
		}
		if l.Code == queue.CodeUnreadable {
			r.refused++
			r.why = append(r.why, fmt.Sprintf("%s: %s (%s)", l.ID, l.Reason, l.Code))
			continue
		}
		if letters[k] == nil {
			order = append(order, k)
		}
		l.Raw = nil
		letters[k] = append(letters[k], l)
	}
	for _, k := range order {
		slices.SortFunc(letters[k], func(a, b *queue.Letter) int { return cmp.Compare(a.Version, b.Version) })
		var ids []string
		for _, l := range letters[k] {
			ids = append(ids, l.ID)
		}
		items = append(items, ids)
	}
	return items, nil
}

// identical refuses what run refuses: another mapping's rows would lie beside those of this one for ever.
func (r *retrier) identical(ctx context.Context, box letterBox, c *carried) error {
	row, err := r.sink.LoadState(ctx, r.cfg.Pipeline, box.table.Source)
	if err != nil {
		return exit.Bigtable(fmt.Errorf("retry dead letters of %s: %w", box.table.Source, err))
	}
	hash := c.program.Hash()
	refused := pipeline.CheckIdentity(row, bigtable.Identity{
		Pipeline: r.cfg.Pipeline, Table: box.table.Source, TableID: c.info.ID, LogCreated: box.created.UTC(), MappingHash: hex.EncodeToString(hash[:]),
		Target: r.sink.TargetName(box.table.Target),
	})
	if refused != nil {
		return exit.Environment(fmt.Errorf("retry dead letters of %s: %w", box.table.Source, refused), refused.Hint)
	}
	return nil
}

// item is the letters of one item for one sink.
type item struct {
	*retrier
	box     letterBox
	program *transform.Program
	last    *change.Change // the one before, applied by us
}

// apply applies the letters in version order, up to the first that is refused.
//
// Rule 5: changes of one item reach a sink in version order or not at all. A later letter may be a difference from
// what an earlier one leaves, so letters are deleted only when no more can be applied, and newest first: wherever
// that ends, what is left is the first of them, and applying those again changes nothing.
func (x *item) apply(ctx context.Context, ids []string) error {
	var done []string
	for i, id := range ids {
		letter, err := x.box.letters.Get(ctx, id)
		if errors.Is(err, queue.ErrNoLetter) { // somebody dropped it meanwhile
			x.last = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("read dead letter %s: %w", id, err)
		}
		err = x.one(ctx, letter)
		out := outcome.OfChange(err)
		switch out.Action {
		case outcome.Proceed:
			done = append(done, id)
			continue
		case outcome.Escalate:
			return fmt.Errorf("apply dead letter %s: %w", id, err)
		}
		x.refused++
		x.why = append(x.why, fmt.Sprintf("%s: %s (%s)", id, out.Reason, out.Code))
		behind := out.Code == outcome.CodeDirty || isBehind(letter) && x.last == nil
		if err := x.box.letters.RecordRetry(ctx, id, out.Code, out.Reason, behind, serviceTime(x.src).Truncate(time.Millisecond)); err != nil {
			return fmt.Errorf("note outcome of dead letter %s: %w", id, err)
		}
		if letter.Sink == "bigtable" {
			x.left += len(ids) - i - 1
			break
		}
	}
	for _, id := range slices.Backward(done) {
		if err := x.box.letters.Drop(ctx, id); err != nil && !errors.Is(err, queue.ErrNoLetter) {
			return fmt.Errorf("delete applied dead letter %s: %w", id, err)
		}
		x.applied++
	}
	return nil
}

// one applies a letter to its sink.
func (x *item) one(ctx context.Context, letter *queue.Letter) error {
	c, err := letter.Change()
	if err != nil {
		return fmt.Errorf("%w: %w", change.ErrMalformed, err)
	}
	x.dec.Reset()
	if letter.Sink != "bigtable" {
		return x.archive(ctx, c)
	}
	if err := x.program.Change(&x.dec, c, &x.write); err != nil {
		return err
	}
	if err := x.wrong(letter, c); err != nil {
		return err
	}
	if err := x.sink.Apply(ctx, x.box.table.Target, &x.write); err != nil {
		if outcome.OfChange(err).Action == outcome.DeadLetter {
			return err
		}
		return exit.Bigtable(err)
	}
	x.last = c
	return nil
}

// wrong says why a write cannot be right, although Bigtable would take it.
func (x *item) wrong(letter *queue.Letter, c *change.Change) error {
	for i := range x.write.Rows {
		if row := &x.write.Rows[i]; row.Exclusive && row.Class != transform.ClassR {
			return &transform.Refusal{Code: codeCascade, What: "the removal takes its whole row along, with what other items wrote there later; " +
				"delete by hand what of the row is not wanted, then drop the letter"}
		}
	}
	if x.write.Heals || x.last == nil && !isBehind(letter) || x.last != nil && sameImage(x.last.New, c.Old) {
		return nil
	}
	return &transform.Refusal{Code: outcome.CodeDirty, What: "the change before it was never applied, and what that leaves in Bigtable is not known; " +
		"the item wants a resync, or a new row by hand"}
}

// isBehind says whether the change before the letter's was a dead letter; letters of older versions say it by their
// code only.
func isBehind(l *queue.Letter) bool { return l.Behind || l.Code == outcome.CodeDirty }

// sameImage compares two images of an item, the absent one included. Sets have no order, so that equal ones may
// differ here; then the letter stays.
func sameImage(a, b []byte) bool {
	if a == nil || b == nil || bytes.Equal(a, b) {
		return (a == nil) == (b == nil)
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// archive writes the event of a change. Events have ids of their own, so none waits for another.
func (x *item) archive(ctx context.Context, c *change.Change) error {
	event, err := x.program.Archive(&x.dec, c)
	if err != nil || event == nil {
		return err
	}
	if x.arch == nil {
		log := x.app.logger(zapcore.WarnLevel)
		if x.arch, err = openArchive(ctx, x.cfg, x.box.queue, log, prometheus.NewRegistry()); err != nil {
			return err
		}
	}
	if x.arch == nil {
		return &transform.Refusal{Code: "archive", What: "the configuration has no archive"}
	}
	return x.arch.Write(ctx, []*transform.Event{event})
}
