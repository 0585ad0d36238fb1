package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/verify"
)

// rowItem is an item of the row on its way to a verdict.
type rowItem struct {
	facts
	at      int // in the items of the row
	history *history
}

// settle decides about the items of the row.
func (x *explainedRow) settle(ctx context.Context) error {
	if len(x.items) == 0 {
		return nil
	}
	all, err := x.look(ctx)
	if err != nil {
		return err
	}
	if err := x.openLogs(ctx); err != nil {
		return err
	}
	if err := x.readLogs(ctx, all); err != nil {
		return err
	}
	caughtUp, err := x.wait(ctx, all)
	if err != nil {
		return err
	}
	if caughtUp {
		err = x.lookAgain(ctx, all)
	}
	if err == nil {
		err = x.prove(ctx, all)
	}
	for _, it := range all {
		one := &x.out.Items[it.at]
		one.Absent = it.absent
		one.Verdict = it.verdict()
		if x.ShowData {
			one.Verdict.Cells = it.seen.Cells
		}
	}
	return err
}

// explainByKey adds the items that the row's key names and of which the row holds nothing. A class
// R row can hold one item of a table. What follows from the row's key is no data.
func (x *explainedRow) explainByKey(ctx context.Context) error {
	for _, t := range x.pair.Tables {
		key := t.Program.KeyOfRow(x.out.RowBase64)
		hash := change.HashText(change.HashKey(key))
		listed := func(it RowItem) bool { return it.Table == t.Source && it.KeyHash == hash }
		if key == nil || slices.ContainsFunc(x.out.Items, listed) {
			continue
		}
		of := *x.Explainer
		of.Table = t
		found, err := of.item(ctx, key)
		if err != nil {
			return err
		}
		if x.row != nil && found.Absent && found.Verdict.Status == Equal {
			continue
		}
		x.out.Items = append(x.out.Items, RowItem{Table: t.Source, Key: key, KeyHash: hash, Verdict: found.Verdict,
			ByKey: true, Absent: found.Absent})
	}
	return nil
}

func (x *explainedRow) settling() *settling {
	return &settling{pair: x.pair, data: x.ShowData, say: x.Say}
}

// look compares the items with the row at once.
func (x *explainedRow) look(ctx context.Context) ([]*rowItem, error) {
	seen, err := x.settling().look(ctx, x.items)
	if err != nil {
		return nil, err
	}
	given := map[string]string{string(x.out.RowBase64): string(x.out.RowBase64)}
	all := make([]*rowItem, len(seen))
	for i := range seen {
		all[i] = &rowItem{at: i, facts: facts{names: &names{data: x.ShowData, rows: given}, seen: &seen[i],
			absent: seen[i].Absent, table: x.out.Items[i].Table, key: string(x.out.Items[i].Key)}}
	}
	return all, nil
}

// open returns the items that the rows do not settle, and for which nothing is pending, as
// candidates.
func (x *explainedRow) open(all []*rowItem) (some []*rowItem, items []verify.Candidate) {
	for _, it := range all {
		if !it.seen.Certain() && it.pending == 0 {
			some, items = append(some, it), append(items, x.items[it.at])
		}
	}
	return some, items
}

// lookAgain compares the open items once more.
func (x *explainedRow) lookAgain(ctx context.Context, all []*rowItem) error {
	some, items := x.open(all)
	seen, err := x.settling().look(ctx, items)
	for i := range seen {
		some[i].seen, some[i].absent = &seen[i], seen[i].Absent
	}
	return err
}

// openLogs opens the logs of the tables in the row. Without them, there are verdicts all the same.
func (x *explainedRow) openLogs(ctx context.Context) error {
	q, err := x.Clients.Queue(ctx)
	var logs []*tableLog
	for _, t := range x.pair.Tables {
		var log *control.Log
		if err == nil {
			log, err = control.Open(ctx, q, t.Source)
		}
		logs = append(logs, &tableLog{log, t.Info.Schema})
	}
	if err != nil {
		x.out.Unknown = append(x.out.Unknown, fmt.Sprintf("the log, dead letters and requests: %v", err))
		return ctx.Err()
	}
	x.logs = logs
	return nil
}

// readLogs reads what the logs hold of items of the row, with one walk for each table.
func (x *explainedRow) readLogs(ctx context.Context, all []*rowItem) error {
	for i, log := range x.logs {
		var of []*history
		for _, it := range all {
			if c := &x.items[it.at]; c.Table == i {
				it.history = &history{of: log, key: []byte(c.Key), image: func([]byte) {}}
				of = append(of, it.history)
			}
		}
		if len(of) == 0 {
			continue
		}
		if err := log.read(ctx, of); err != nil {
			return err
		}
		blocked, fenced := x.obstacle(ctx, x.pair, log), log.log.State.Fence != nil
		for _, it := range all {
			if it.history == nil || it.history.of != log {
				continue
			}
			it.beside(it.history)
			it.obstacle, it.fenced = blocked, fenced
			if !it.seen.Certain() {
				in := &x.out.Items[it.at]
				it.pending, _ = it.history.pending(max(in.Guard, in.Deleted))
			}
		}
	}
	return nil
}

// wait estimates when the pending changes are applied, once for each table. It reports whether some
// were applied meanwhile.
func (x *explainedRow) wait(ctx context.Context, all []*rowItem) (caughtUp bool, err error) {
	for _, log := range x.logs {
		var pending []*rowItem
		newest := uint64(0)
		for _, it := range all {
			if it.history != nil && it.history.of == log && it.pending > 0 && it.obstacle.why == "" {
				pending, newest = append(pending, it), max(newest, it.history.latest.seq)
			}
		}
		if len(pending) == 0 {
			continue
		}
		var eta time.Duration
		var moving bool
		if eta, moving, err = log.eta(ctx, newest); err != nil {
			return false, err
		}
		for _, it := range pending {
			if it.eta, it.moving = eta, moving; moving && eta == 0 {
				it.pending, caughtUp = 0, true
			}
		}
	}
	return caughtUp, nil
}

// prove settles the open items behind a proof.
func (x *explainedRow) prove(ctx context.Context, all []*rowItem) error {
	some, items := x.open(all)
	if len(some) == 0 {
		return nil
	}
	proven, unproven, err := x.settling().prove(ctx, items)
	if err != nil {
		return err
	}
	differing := some[:0]
	for i, it := range some {
		it.why, it.next = unproven.why, unproven.next
		if unproven.why == "" {
			it.seen, it.proven = &proven[i], true
			if !it.seen.Certain() {
				differing = append(differing, it)
			}
		}
	}
	return x.lookBehindFence(ctx, differing)
}

// lookBehindFence reads the logs again where tables are fenced, for items that differ behind a
// proof: that shows everything to be in the log, and behind a fence not to be in Bigtable.
func (x *explainedRow) lookBehindFence(ctx context.Context, differing []*rowItem) error {
	if len(differing) == 0 {
		return nil
	}
	fenced := false
	for _, log := range x.logs {
		if err := log.log.Refresh(ctx); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		fenced = fenced || log.log.State.Fence != nil
	}
	if !fenced {
		return nil
	}
	return x.readLogs(ctx, differing)
}
