package replay

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform/access"
	"github.com/tailrace-cdc/replicator/verify"
)

// The kinds of mismatches that need no proof. The others are the kinds of package verify.
const (
	Outside = "not in the range" // the read does not return the item's row
	Order   = "order"            // the rows do not come in the order of the items
)

// replay replays the reads of a request.
func (r *Replayer) replay(ctx context.Context, x *read) {
	text, err := x.exchange.Answer.Text()
	if err != nil {
		why := Unreadable
		if errors.Is(err, exchange.ErrNotWhole) {
			why = Large
		}
		r.skipAll(x.request, why)
		return
	}
	answers, err := r.answersOf(&x.request, text)
	if err != nil {
		r.skipAll(x.request, Unreadable)
		return
	}
	for i := range x.request.Asked {
		r.compare(ctx, &x.request.Asked[i], &answers[i])
	}
}

// unfit returns why a read cannot be replayed; "" if it can.
func unfit(t *Table, f *access.Finder, p *pattern.Pattern, got *answered) pattern.Reason {
	switch {
	case t == nil || f == nil:
		return NoMapping
	case f.Verdict.Grade == access.NoRead:
		return NoRead
	case !f.Finds():
		return Declared
	case p.Projection, p.Count, p.Index != "" && !t.Whole[p.Index]: // or one that is not known
		return Projection
	case got.left:
		return Busy
	}
	return ""
}

// compare makes one read in Bigtable, and compares its rows with the items of the answer.
func (r *Replayer) compare(ctx context.Context, a *pattern.Asked, got *answered) {
	t, f := r.tables[a.Pattern.Table], r.finder(&a.Pattern)
	if why := unfit(t, f, &a.Pattern, got); why != "" {
		r.skip(a, why)
		return
	}
	place, err := f.Place(a.Tests)
	if err != nil {
		r.skip(a, NoKey)
		return
	}
	x := &asked{Asked: a, table: t, finder: f, place: place, part: got.part}
	if err := x.find(got.items); err != nil {
		r.skip(a, Unreadable)
		return
	}
	if place.Row {
		place.End = place.Start + "\x00"
	}
	seen := make([]verify.Seen, len(got.items))
	for i, item := range got.items {
		seen[i] = verify.Seen{Table: t.Number, Item: item}
	}
	var took time.Duration
	shown, err := t.Side.Looking.InRange(ctx, verify.RangeRead{
		Start: place.Start, End: place.End, Part: got.part, Limit: maxRows,
		Rows: func(start, end string) (verify.Target, error) {
			began := time.Now()
			err := t.Side.Read(ctx, start, end, f.Verdict.Read.Families, maxRows)
			took = time.Since(began)
			return t.Side.Rows(start, end), err
		},
	}, seen)
	switch {
	case errors.Is(err, verify.ErrManyRows):
		r.skip(a, Large)
		return
	case err != nil:
		why := Ended
		if ctx.Err() == nil {
			r.o.Warn("a read is not replayed: %v", err)
			why = Bigtable
		}
		r.skip(a, why)
		return
	}
	r.o.Counts.Replay(&a.Of, func(c *pattern.Replay) {
		c.Replayed++
		c.Rows.Add(int64(shown.Rows))
		if took > 0 {
			c.Micros.Add(took.Microseconds())
		}
	})
	r.judge(x, shown)
}

// asked is one read that was made in Bigtable.
type asked struct {
	*pattern.Asked
	table  *Table
	finder *access.Finder
	place  access.Place
	part   bool // the read may have more items
	items  []found
}

// found is an item of the answer.
type found struct {
	row  string        // by which the read finds it; "" if it has none
	sort *change.Value // the first attribute that sorts the items of a partition; nil if it has none
}

// find notes by which rows the read finds the items of the answer.
func (a *asked) find(items [][]byte) error {
	for _, item := range items {
		var d change.Decoder
		image, err := d.Image(item)
		if err != nil {
			return fmt.Errorf("decode item: %w", err)
		}
		x := found{sort: image.Get(a.finder.Sort())}
		x.row, _ = a.finder.RowOf(image)
		a.items = append(a.items, x)
	}
	return nil
}

// outside reports whether the read does not return the row by which it finds an item.
func (a *asked) outside(i int, x *verify.ShownItem) bool {
	row := a.items[i].row
	return len(x.Rows) == 0 || row != "" && !a.place.Holds(row)
}

// judge counts what the rows show, and has wait what needs a proof.
func (r *Replayer) judge(a *asked, shown *verify.Shown) {
	for i := range shown.Items {
		x := &shown.Items[i]
		switch {
		case x.Refused || x.All == 0: // the mapping does not take it, or leaves it out on purpose
			r.differed(a, func(c *pattern.Replay) { c.Leave(Refused, 1) })
		case a.outside(i, x):
			r.wrong(a, &x.Candidate, Outside)
		case !x.Equal:
			r.wait(a, x.Candidate)
		}
	}
	for i := range shown.Others {
		if a.mayMiss(&shown.Others[i]) {
			r.wait(a, shown.Others[i])
		}
	}
	if i := a.disordered(shown); i >= 0 {
		r.wrong(a, &shown.Items[i].Candidate, Order)
	}
}

func (r *Replayer) differed(a *asked, f func(*pattern.Replay)) {
	r.o.Counts.Replay(&a.Of, func(c *pattern.Replay) {
		c.Differed++
		f(c)
	})
}

// wrong counts a mismatch that no change can alter, once a minute for each pattern.
func (r *Replayer) wrong(a *asked, x *verify.Candidate, kind string) {
	if !a.table.Side.waiting.news(x, kind, a.Of.ID()) {
		return
	}
	r.differed(a, func(c *pattern.Replay) { c.Wrongly(kind, 1) })
	r.show(Mismatch{
		Pattern: a.Of.Text(), Table: a.table.Name, Key: x.Key, Kinds: []string{kind}, Rows: x.Rows,
	})
}

// wait has an item wait until it is settled.
func (r *Replayer) wait(a *asked, x verify.Candidate) {
	if !a.table.Side.waiting.add(x, a.Of) {
		r.differed(a, func(c *pattern.Replay) { c.Leave(Busy, 1) })
		return
	}
	r.differed(a, func(*pattern.Replay) {})
}

// mayMiss reports whether the answer should have had an item of which the range has a row.
func (a *asked) mayMiss(x *verify.Candidate) bool {
	p := &a.Pattern
	switch {
	case p.Filter || x.Table != a.table.Number:
		return false
	case a.part && a.finder.Row(): // the row has the items of the other pages too
		return false
	case p.Index != "":
		return a.finder.Verdict.Grade != access.WiderRange // the key of the item shows nothing of the index
	}
	var d change.Decoder
	keys, err := d.Image([]byte(x.Key))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(a.Tests, func(t access.Test) bool { return !meets(&t, keys.Get(t.Attr)) })
}

// meets reports whether a value of a key meets a test, as DynamoDB compares values.
func meets(t *access.Test, v *change.Value) bool {
	if v == nil || v.Kind != t.Values[0].Kind {
		return false
	}
	order := compareKeys(v, &t.Values[0])
	switch t.Op {
	case access.Equal:
		return order == 0
	case access.BeginsWith:
		return bytes.HasPrefix(bytesOf(v), bytesOf(&t.Values[0]))
	case access.Less:
		return order < 0
	case access.LessEqual:
		return order <= 0
	case access.More:
		return order > 0
	case access.MoreEqual:
		return order >= 0
	}
	return order >= 0 && compareKeys(v, &t.Values[1]) <= 0
}

func compareKeys(a, b *change.Value) int {
	if a.Kind == change.KindNumber {
		return attr.CompareNumbers(a.S, b.S)
	}
	return bytes.Compare(bytesOf(a), bytesOf(b))
}

// bytesOf returns the bytes by which DynamoDB sorts a text or a binary value.
func bytesOf(v *change.Value) []byte {
	if v.Kind != change.KindBinary {
		return []byte(v.S)
	}
	b, _ := base64.StdEncoding.DecodeString(v.S) // it was decoded before
	return b
}

// disordered returns an item whose row stands before the row of one that the answer has before it;
// -1 if there is none, or the order was not promised. Items of an index with the same sort key have
// no order.
func (a *asked) disordered(shown *verify.Shown) int {
	f := a.finder
	if a.Pattern.Operation != "Query" || f.Verdict.Grade != access.Served || f.Row() || f.Sort() == "" {
		return -1
	}
	last := -1
	for i := range a.items {
		x := &a.items[i]
		if x.row == "" || x.sort == nil || a.outside(i, &shown.Items[i]) {
			continue
		}
		if last >= 0 && x.row < a.items[last].row && compareKeys(x.sort, a.items[last].sort) != 0 {
			return i
		}
		last = i
	}
	return -1
}
