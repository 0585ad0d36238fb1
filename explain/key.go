package explain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Explainer explains items and rows of one source table and its target.
type Explainer struct {
	Config   *config.Config
	Clients  *clients.Clients
	Catalog  *catalog.Catalog
	Table    *catalog.Table
	ShowData bool         // with values, and with keys that were not asked for
	Say      func(string) // receives what takes time, for people
}

// Key explains the item with a key, in a form of control.KeyForms. What cannot be
// looked at is named in the result; only an item that cannot be read is an error.
func (e *Explainer) Key(ctx context.Context, typed string) (*Item, error) {
	key, err := control.ReadKey([]string{typed}, e.Table.Info.Schema)
	if err != nil {
		return nil, failure.Usagef("the key of "+e.Table.Source+" is like "+likeKey(e.Table.Info.Schema), "read key: %w", err)
	}
	return e.item(ctx, key)
}

// item explains the item with a canonical key.
func (e *Explainer) item(ctx context.Context, key []byte) (*Item, error) {
	x := &explained{Explainer: e, key: key, rows: map[string]bool{}}
	if err := x.readItem(ctx); err != nil {
		return nil, err
	}
	if err := x.open(ctx); err != nil {
		return nil, err
	}
	if err := x.compare(ctx); err != nil {
		return nil, err
	}
	x.fill()
	return &x.out, nil
}

// likeKey returns a key with the attributes of a schema.
func likeKey(k change.KeySchema) string {
	values := map[byte]string{'S': `"text"`, 'N': "12", 'B': `"YmFzZTY0"`}
	like := fmt.Sprintf("{%q:%s", k.Partition.Name, values[k.Partition.Type])
	if k.Sort != nil {
		like += fmt.Sprintf(",%q:%s", k.Sort.Name, values[k.Sort.Type])
	}
	return like + "}"
}

// explained is one item on its way to an explanation.
type explained struct {
	*Explainer
	key   []byte // canonical
	raw   []byte // the item, nil without one
	names *names
	out   Item

	pair    *pair.Pair // nil: Bigtable cannot be looked at
	index   int        // of the table in pair
	history *history   // nil: there is no log
	rows    map[string]bool
	applied change.Version // up to which the changes of the item are in its rows, as its guards say

	facts facts
}

// readItem reads the item strongly, and takes the steps of the mapping.
func (x *explained) readItem(ctx context.Context) error {
	src, err := x.Clients.Source(ctx)
	if err != nil {
		return err
	}
	batch, err := src.ReadItems(ctx, x.Table.Source, [][]byte{x.key})
	if err != nil {
		return source.Explain(fmt.Errorf("read item: %w", err))
	}
	x.raw = batch.Items[0]
	x.out = Item{
		Table: x.Table.Source, Target: x.Table.Target, Key: x.key, KeyHash: change.HashText(change.HashKey(x.key)),
		Read: batch.Answered.Time().UTC(), Absent: x.raw == nil, Attributes: []Attribute{}, Steps: &transform.Steps{},
		Stored: []StoredRow{}, Letters: []deadletter.Summary{}, Requests: []Request{}, Unknown: []string{},
	}
	if x.raw == nil {
		x.names = newNames(x.Table.Program, x.ShowData, nil, nil)
		return nil
	}
	var d change.Decoder
	img, err := d.Image(x.raw)
	if err != nil {
		return fmt.Errorf("read item: %w", err)
	}
	x.out.Attributes = attributesOf(img)
	x.out.Steps = x.Table.Program.Explain(img)
	full := x.Table.Program.Explain(img)
	if x.ShowData {
		x.out.Image = img.AppendJSON(nil)
	} else {
		x.Table.Program.Hide(x.out.Steps, img)
	}
	x.names = newNames(x.Table.Program, x.ShowData, full, x.out.Steps)
	return nil
}

// open opens Bigtable and the log, as far as they are there.
func (x *explained) open(ctx context.Context) error {
	s, err := pair.Open(ctx, x.Config, x.Clients, x.Catalog, x.Table.Source)
	switch {
	case errors.Is(err, pair.ErrNeverReplicated):
		x.facts.notStarted = true
		return nil
	case errors.Is(err, pair.ErrRetired):
		x.facts.retired = err.Error()
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		x.unknown("the rows in Bigtable", err)
	default:
		x.pair, x.index = s, s.Index(x.Table.Source)
	}
	q, err := x.Clients.Queue(ctx)
	if err == nil {
		var log *control.Log
		if log, err = control.Open(ctx, q, x.Table.Source); err == nil {
			x.history = &history{of: &tableLog{log, x.Table.Info.Schema}, key: x.key, image: func([]byte) {}}
			return nil
		}
	}
	x.unknown("the log, dead letters and requests", err)
	return ctx.Err()
}

// unknown notes what cannot be looked at.
func (x *explained) unknown(what string, err error) {
	x.out.Unknown = append(x.out.Unknown, fmt.Sprintf("%s: %v", what, err))
	if x.facts.why == "" {
		x.facts.why = err.Error()
		_, x.facts.next = failure.Of(err)
	}
}

// compare finds out what is true. A change that is applied while it looks is looked at once more.
func (x *explained) compare(ctx context.Context) error {
	f := &x.facts
	f.absent, f.names = x.raw == nil, x.names
	f.table, f.key = x.Table.Source, string(x.key)
	if x.out.Code != "" {
		f.refused = fmt.Sprintf("%s (%s)", x.out.Refused, x.out.Code)
		if x.out.Rule != "" {
			f.rule = "rule " + x.out.Rule
		}
	}
	if err := x.look(ctx); err != nil {
		return err
	}
	if x.history != nil && x.pair != nil {
		caughtUp, err := x.wait(ctx)
		if err == nil && caughtUp {
			err = x.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return x.prove(ctx)
}

// look reads the log and the rows, and compares them with the item at once.
func (x *explained) look(ctx context.Context) error {
	var at *stored
	if x.pair != nil {
		at = newStored(x.pair, x.names, guarded.Item{Table: x.index, Key: string(x.key)})
		for _, row := range rowsByKey(x.Table.Program, x.key) {
			x.rows[row] = true
		}
	}
	if x.history != nil {
		if at != nil {
			x.history.image = func(image []byte) { at.rowsOf(image, x.rows) }
		}
		if err := x.history.of.read(ctx, []*history{x.history}); err != nil {
			return err
		}
	}
	if at == nil {
		return nil
	}
	if x.raw != nil {
		if err := at.want(x.raw); err != nil {
			return err
		}
	}
	for row := range at.wanted {
		x.rows[row] = true
	}
	keys := slices.Sorted(maps.Keys(x.rows))
	var err error
	if x.out.Stored, err = at.read(ctx, keys); err != nil {
		return bigtable.Explain(fmt.Errorf("read rows: %w", err))
	}
	x.applied = appliedIn(x.out.Stored)
	seen, err := x.settling().look(ctx, x.candidate())
	if err != nil {
		return err
	}
	x.facts.seen = &seen[0]
	return nil
}

// candidate returns the item with all rows that it may be in.
func (x *explained) candidate() []verify.Candidate {
	c := verify.Candidate{Table: x.index, Key: string(x.key)}
	for _, row := range slices.Sorted(maps.Keys(x.rows)) {
		c.Rows = append(c.Rows, []byte(row))
	}
	return []verify.Candidate{c}
}

func (x *explained) settling() *settling {
	return &settling{pair: x.pair, data: x.ShowData, say: x.Say}
}

// wait estimates when changes are applied that are in the log. It reports whether they were applied
// meanwhile.
func (x *explained) wait(ctx context.Context) (caughtUp bool, err error) {
	f, log := &x.facts, x.history.of
	n, last := x.history.pending(x.applied)
	f.pending, f.obstacle, f.fenced = n, x.obstacle(ctx, x.pair, log), log.log.State.Fence != nil
	if n == 0 || f.obstacle.why != "" || f.seen.Certain() {
		return false, nil
	}
	f.eta, f.moving, err = log.eta(ctx, last)
	if err == nil && f.moving && f.eta == 0 {
		f.pending = 0
		return true, nil
	}
	return false, err
}

// prove settles an item that differs and for which nothing is pending.
func (x *explained) prove(ctx context.Context) error {
	f := &x.facts
	if x.history != nil && x.pair != nil {
		f.beside(x.history)
		if err := x.compareWithLog(ctx); err != nil {
			return err
		}
	}
	if f.seen == nil || f.seen.Certain() || f.pending > 0 {
		return nil
	}
	v, unproven, err := x.settling().prove(ctx, x.candidate())
	if err != nil {
		return err
	}
	f.why, f.next = unproven.why, unproven.next
	if unproven.why == "" {
		f.seen, f.proven = &v[0], true
		return x.lookBehindFence(ctx)
	}
	return nil
}

// lookBehindFence reads the log again where the table is fenced. A proof shows that everything is
// in the log; behind a fence that does not mean that it is in Bigtable.
func (x *explained) lookBehindFence(ctx context.Context) error {
	f, h := &x.facts, x.history
	if h == nil || f.seen.Certain() {
		return nil
	}
	if err := h.of.log.Refresh(ctx); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if f.fenced = h.of.log.State.Fence != nil; !f.fenced {
		return nil
	}
	if err := h.of.read(ctx, []*history{h}); err != nil {
		return err
	}
	f.pending, _ = h.pending(x.applied)
	f.obstacle = x.obstacle(ctx, x.pair, h.of)
	return nil
}

// compareWithLog finds out whether item and rows are as the newest change of the item in the log
// left them.
func (x *explained) compareWithLog(ctx context.Context) error {
	l := x.history.latest
	if l == nil || x.facts.seen.Certain() {
		return nil
	}
	now, err := canonical(x.raw)
	if err != nil {
		return err
	}
	x.facts.logged, x.facts.asLogged = true, string(now) == string(l.after)
	at := newStored(x.pair, x.names, guarded.Item{Table: x.index, Key: string(x.key)})
	if l.after != nil {
		if err := at.want(l.after); err != nil {
			return err
		}
	}
	rows, err := at.read(ctx, slices.Sorted(maps.Keys(x.rows)))
	if err != nil {
		return bigtable.Explain(fmt.Errorf("read rows: %w", err))
	}
	x.facts.rowsAsLogged = !slices.ContainsFunc(rows, func(r StoredRow) bool { return r.differs })
	return nil
}

// fill completes the result.
func (x *explained) fill() {
	out := &x.out
	if h := x.history; h != nil {
		out.Log, out.Letters = h.result, h.lettersShown(x.ShowData)
		out.Requests = append(out.Requests, h.requests...)
		for i := range out.Stored {
			out.Stored[i].lacks(h.letters)
		}
	}
	out.Cells, out.Deletes = []transform.StepCell{}, []transform.StepDelete{}
	for i := range out.Rows {
		if r := &out.Rows[i]; r.Cells == nil {
			r.Cells = []transform.StepCell{} // in JSON [], not null
		}
	}
	if len(out.Rows) > 0 {
		first := out.Rows[0]
		out.Row, out.Class, out.Cells = first.Row, first.Class, first.Cells
		out.Deletes = append(out.Deletes, first.Deletes...)
	}
	out.Verdict = x.facts.verdict()
	if x.ShowData && x.facts.seen != nil {
		out.Verdict.Cells = x.facts.seen.Cells
	}
}
