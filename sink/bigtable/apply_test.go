package bigtable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

func item(name string) transform.Item {
	it := transform.Item{Pipeline: "shop", Table: "Products", Key: []byte(`{"pk":{"S":"` + name + `"}}`)}
	it.Guard = guard.Qualifier(it.Pipeline, it.Table, it.Key)
	return it
}

// guardOf is how a shared row names an item in meta.
func guardOf(name string) string { g := item(name).Guard; return string(g[:]) }

func cells(pairs ...string) []transform.Cell {
	var out []transform.Cell
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, transform.Cell{Family: "d", Qualifier: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return out
}

func column(q string) transform.Delete {
	return transform.Delete{Family: "d", Qualifier: []byte(q), Versioned: true}
}

// own is a put of an item that has the row to itself; without pairs it is the item's removal.
func own(row string, v int64, pairs ...string) *transform.Write {
	return &transform.Write{Item: item(row), Version: change.Version(at(v)), Rows: []transform.Row{{
		Key: []byte(row), Class: transform.ClassR, Exclusive: true, Left: len(pairs) == 0, Cells: cells(pairs...)}}}
}

// share is a change of an item in a row that others use too: removed columns, then pairs that are
// set.
func share(class transform.Class, name, row string, v int64, removed []string, pairs ...string) *transform.Write {
	r := transform.Row{Key: []byte(row), Class: class, Left: len(pairs) == 0, Cells: cells(pairs...)}
	for _, q := range removed {
		r.Deletes = append(r.Deletes, column(q))
	}
	return &transform.Write{Item: item(name), Version: change.Version(at(v)), Rows: []transform.Row{r}}
}

// abandoned applies w through a call that is still under way when its client has given up.
func abandoned(t *testing.T, c *Client, f *front, w *transform.Write) {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	f.fates(func(int) fate { giveUp(); return park })
	err := c.Apply(ctx, target, w)
	if Classify(err) != failure.Canceled {
		t.Fatalf("apply: %v (%v), want canceled", err, Classify(err))
	}
	f.fates(nil)
}

func TestLatePutLosesToDelete(t *testing.T) {
	for name, put := range map[string]func(v int64, pairs ...string) *transform.Write{
		"R": func(v int64, pairs ...string) *transform.Write { return own("hats", v, pairs...) },
		"D": func(v int64, pairs ...string) *transform.Write {
			return share(transform.ClassD, "hats", "row", v, []string{"price"}, pairs...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := rig(t)
			abandoned(t, c, f, put(5, "price", "12"))
			mustApply(t, c, put(9))
			f.deliver()
			if diff := cmp.Diff(map[string]string{}, plain(t, c)); diff != "" {
				t.Errorf("the deleted item came back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLatePutLosesToLaterPut(t *testing.T) {
	c, f := rig(t)
	abandoned(t, c, f, own("hats", 5, "price", "12", "gone", "x"))
	mustApply(t, c, own("hats", 9, "price", "13"))
	f.deliver()
	want := map[string]string{"hats d:price": "13"}
	if diff := cmp.Diff(want, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLateDeleteLosesToRecreation(t *testing.T) {
	c, f := rig(t)
	mustApply(t, c, own("hats", 1, "price", "11"))
	abandoned(t, c, f, own("hats", 5))
	mustApply(t, c, own("hats", 9, "price", "13"))
	f.deliver()
	if diff := cmp.Diff(map[string]string{"hats d:price": "13"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCallWithALostReplyIsSentAgain(t *testing.T) {
	for _, class := range []transform.Class{transform.ClassK, transform.ClassD} {
		t.Run(class.String(), func(t *testing.T) {
			c, f := rig(t)
			mustApply(t, c, share(class, "a", "row", 1, nil, "x", "1", "y", "1"))
			f.fates(func(n int) fate { return []fate{lose, lose, pass}[n] })
			mustApply(t, c, share(class, "a", "row", 2, []string{"x", "y"}, "x", "2"))
			if f.count() != 3 {
				t.Errorf("%d calls, want 3", f.count())
			}
			if n := skipped(t, c); n != 1 {
				t.Errorf("the row was skipped %v times: the guard does not know the call's own version", n)
			}
			if diff := cmp.Diff(map[string]string{"row d:x": "2"}, plain(t, c)); diff != "" {
				t.Errorf("the second attempt changed what the first had written (-want +got):\n%s", diff)
			}
		})
	}
}

func skipped(t *testing.T, c *Client) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.table(target).metrics.skipped.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestStaleRedeliveryChangesNothing(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		history := []*transform.Write{
			own("hats", 1, "price", "1", "size", "L"), own("hats", 2, "price", "2"), own("hats", 3),
			own("hats", 4, "price", "4"),
		}
		mustApply(t, c, history...)
		data, marks := plain(t, c), meta(t, c)
		for from := range history {
			mustApply(t, c, history[from:]...)
			if diff := cmp.Diff(data, plain(t, c)); diff != "" {
				t.Errorf("replay from %d (-want +got):\n%s", from, diff)
			}
			if diff := cmp.Diff(marks, meta(t, c)); diff != "" {
				t.Errorf("replay from %d: guards (-want +got):\n%s", from, diff)
			}
		}
	})
}

func TestLateV5AfterV9InTheSameMappedCell(t *testing.T) {
	mapped := func(v int64, value string) *transform.Write {
		w := share(transform.ClassK, "a", "row", v, nil, "x", value)
		w.Rows[0].Cells[0].Time, w.Rows[0].Cells[0].Mapped = 1_000_000, true
		w.Rows[0].Deletes = []transform.Delete{{Family: "d", Qualifier: []byte("x"), From: 1_000_000, To: 1_000_001}}
		return w
	}
	for _, class := range []transform.Class{transform.ClassK, transform.ClassD} {
		t.Run(class.String(), func(t *testing.T) {
			c, f := rig(t)
			v5, v9 := mapped(5, "five"), mapped(9, "nine")
			v5.Rows[0].Class, v9.Rows[0].Class = class, class
			abandoned(t, c, f, v5)
			mustApply(t, c, v9)
			f.deliver()
			mustApply(t, c, v5)
			if diff := cmp.Diff(map[string]string{"row d:x": "nine"}, plain(t, c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSiblingsInTheSameColumnSurvive(t *testing.T) {
	comment := func(name string, v, time int64, value string) *transform.Write {
		w := share(transform.ClassK, name, "video", v, nil)
		w.Rows[0].Deletes = []transform.Delete{{Family: "h", Qualifier: []byte("c"), From: time, To: time + 1}}
		if value != "" {
			w.Rows[0].Left = false
			w.Rows[0].Cells = []transform.Cell{{Family: "h", Qualifier: []byte("c"), Value: []byte(value), Time: time,
				Mapped: true}}
		}
		return w
	}
	c, _ := rig(t)
	mustApply(t, c, comment("one", 1, 100, "first"), comment("two", 2, 200, "second"), comment("three", 3, 300, "third"),
		comment("two", 4, 200, "second, edited"), comment("one", 5, 100, ""))
	var got []string
	err := c.Rows(t.Context(), target, "", "", []View{{"h", 0}}, func(r *Row) error {
		for _, cell := range r.Cells {
			got = append(got, string(cell.Value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"third", "second, edited"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTwoItemsInOneRow(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		mustApply(t, c,
			share(transform.ClassD, "a", "row", 5, nil, "a1", "5", "a2", "5"),
			share(transform.ClassD, "b", "row", 2, nil, "b1", "2"), // lower than a's: another item's version says nothing
			share(transform.ClassD, "a", "row", 6, []string{"a1", "a2"}),
			share(transform.ClassD, "b", "row", 3, []string{"b1"}, "b2", "3"),
		)
		if diff := cmp.Diff(map[string]string{"row d:b2": "3"}, plain(t, c)); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
		want := map[string]string{"row _tr_dead:" + guardOf("a") + "@6": "", "row _tr_live:" + guardOf("b") + "@3": ""}
		got := meta(t, c)
		delete(got, "row _tr_live:"+guardOf("b")+"@2") // collected by max_versions, some time
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("guards (-want +got):\n%s", diff)
		}
	})
}

func TestGuardsAreExactForAnyBytes(t *testing.T) {
	c, _ := rig(t)
	names := []string{"\x00\xff", "\n.*", ".*", "a\x00"}
	for i, name := range names {
		w := share(transform.ClassK, name, "row", 5, nil, fmt.Sprint("q", i), "5")
		copy(w.Item.Guard[:], strings.Repeat("\x00", 16))
		copy(w.Item.Guard[:], name)
		mustApply(t, c, w)
	}
	if got := plain(t, c); len(got) != len(names) {
		t.Errorf("one item's guard matched another's: %v", got)
	}
}

func TestRemovalIsDoneBelowALaterVersion(t *testing.T) {
	c, _ := rig(t)
	mustApply(t, c, share(transform.ClassD, "a", "row", 1, nil, "x", "1", "y", "1"))
	mustApply(t, c, share(transform.ClassD, "a", "row", 3, nil, "x", "3"))           // knows nothing of y
	mustApply(t, c, share(transform.ClassD, "a", "row", 2, []string{"y"}, "x", "2")) // arrives late
	if diff := cmp.Diff(map[string]string{"row d:x": "3"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMovingItemIsAlwaysInARow(t *testing.T) {
	c, f := rig(t)
	mustApply(t, c, share(transform.ClassK, "a", "old", 1, nil, "x", "1"))
	move := share(transform.ClassK, "a", "old", 2, []string{"x"})
	move.Rows = append(move.Rows, transform.Row{Key: []byte("new"), Class: transform.ClassK, Cells: cells("x", "2")})
	ctx, stop := context.WithCancel(t.Context())
	f.fates(func(n int) fate {
		if n == 1 {
			stop()
			return refuse
		}
		return pass
	})
	if err := c.Apply(ctx, target, move); Classify(err) != failure.Canceled {
		t.Fatalf("apply: %v", err)
	}
	half := map[string]string{"new d:x": "2", "old d:x": "1"}
	if diff := cmp.Diff(half, plain(t, c)); diff != "" {
		t.Errorf("between the two rows (-want +got):\n%s", diff)
	}
	f.fates(nil)
	mustApply(t, c, move)
	if diff := cmp.Diff(map[string]string{"new d:x": "2"}, plain(t, c)); diff != "" {
		t.Errorf("after the move (-want +got):\n%s", diff)
	}
}

func TestHistoriesSurviveReplacement(t *testing.T) {
	everyServer(t, historiesSurvive)
	t.Run("declared", func(t *testing.T) {
		c, _ := rig(t)
		c.Declare(target, []string{"d", "h"})
		historiesSurvive(t, c)
	})
}

func historiesSurvive(t *testing.T, c *Client) {
	put := func(v int64, price string) *transform.Write {
		w := own("hats", v, "size", fmt.Sprint(v))
		w.Rows[0].KeepHistory = []string{"h"}
		w.Rows[0].Cells = append(w.Rows[0].Cells,
			transform.Cell{Family: "h", Qualifier: []byte("price"), Value: []byte(price)})
		return w
	}
	first := put(1, "10")
	first.Rows[0].Cells = append(first.Rows[0].Cells, cells("old", "x")...)
	mustApply(t, c, first, put(2, "20"), put(2, "20"))
	got := read(t, c, []View{{"d", 0}, {"h", 0}}, true)
	want := map[string]string{"hats d:size@2": "", "hats h:price@2": "", "hats h:price@1": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemovalOfASharedRowLeavesGuards(t *testing.T) {
	c, f := rig(t)
	mustApply(t, c, share(transform.ClassK, "parent", "row", 1, nil, "p", "1"))
	abandoned(t, c, f, share(transform.ClassK, "child", "row", 2, nil, "c", "late"))
	mustApply(t, c, share(transform.ClassK, "child", "row", 3, []string{"c"}),
		share(transform.ClassK, "other", "row", 3, nil, "o", "1"))
	cascade := share(transform.ClassK, "parent", "row", 4, nil)
	cascade.Rows[0].Exclusive = true
	mustApply(t, c, cascade)
	f.deliver()
	if diff := cmp.Diff(map[string]string{}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAggregatesMergeOncePerVersion(t *testing.T) {
	c, f := rig(t)
	best := func(v int64, n byte) *transform.Write {
		w := share(transform.ClassK, "a", "row", v, nil, "x", "1")
		w.Rows[0].Cells = append(w.Rows[0].Cells, transform.Cell{Family: "top", Qualifier: []byte("q"),
			Value: []byte{0, 0, 0, 0, 0, 0, 0, n}, Aggregate: true, Mapped: true})
		return w
	}
	f.fates(func(n int) fate { return []fate{lose, pass}[n%2] })
	mustApply(t, c, best(1, 5), best(2, 7))
	got := read(t, c, []View{{"top", 1}}, false)
	if diff := cmp.Diff(map[string]string{"row top:q": "\x00\x00\x00\x00\x00\x00\x00\x07"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChangeOlderThanItsTombstoneIsRefused(t *testing.T) {
	now := present
	c, _ := rig(t, func(o *Options) { o.Now = func() time.Time { return now } })
	edge := present.Add(-6 * 24 * time.Hour).UnixMilli()
	old := own("hats", 0, "price", "1")
	old.Version = change.Version(edge - 1)
	var rejected *RejectedError
	if err := c.Apply(t.Context(), target, old); !errors.As(err, &rejected) || rejected.Code != CodeTooOld {
		t.Errorf("apply: %v, want it refused as too old", err)
	}
	old.Version = change.Version(edge)
	mustApply(t, c, old)
}

func TestChangeThatGrowsTooOldWhileItIsRetriedIsRefused(t *testing.T) {
	now := present
	c, f := rig(t, func(o *Options) { o.Now = func() time.Time { return now } })
	f.fates(func(n int) fate {
		if n == 3 {
			now = now.Add(8 * 24 * time.Hour) // the caller is waiting for this answer
		}
		return refuse
	})
	var rejected *RejectedError
	if err := c.Apply(t.Context(), target, own("hats", 1, "price", "1")); !errors.As(err, &rejected) ||
		rejected.Code != CodeTooOld {
		t.Errorf("apply: %v, want it refused as too old", err)
	}
}

func TestItemOf400KB(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		big := strings.Repeat("x", 400<<10)
		mustApply(t, c, own("hats", 1, "doc", big))
		var many []string
		for i := range 400 {
			many = append(many, fmt.Sprintf("q%03d", i), big[:1000])
		}
		mustApply(t, c, own("many", 1, many...))
		if got := plain(t, c); got["hats d:doc"] != big || len(got) != 401 {
			t.Errorf("%d cells, doc has %d bytes", len(got), len(got["hats d:doc"]))
		}
	})
}

func TestWriteThatTheServiceWouldRefuseIsRefusedBeforeAnythingIsSent(t *testing.T) {
	long := func(n int) []byte { return make([]byte, n) }
	cell := func(change func(*transform.Cell)) func(*transform.Row) {
		return func(r *transform.Row) { change(&r.Cells[0]) }
	}
	del := func(d transform.Delete) func(*transform.Row) {
		return func(r *transform.Row) { r.Deletes = []transform.Delete{d} }
	}
	for name, test := range map[string]struct {
		code  string
		spoil func(*transform.Row)
	}{
		"no row key":         {CodeRowKey, func(r *transform.Row) { r.Key = nil }},
		"long row key":       {CodeRowKey, func(r *transform.Row) { r.Key = long(4097) }},
		"no family":          {CodeFamily, cell(func(c *transform.Cell) { c.Family = "" })},
		"long qualifier":     {CodeQualifier, cell(func(c *transform.Cell) { c.Qualifier = long(16<<10 + 1) })},
		"large cell":         {CodeCell, cell(func(c *transform.Cell) { c.Value = long(100<<20 + 1) })},
		"negative time":      {CodeTimestamp, cell(func(c *transform.Cell) { c.Time = -1 })},
		"time overflows":     {CodeTimestamp, cell(func(c *transform.Cell) { c.Time = 1 << 60 })},
		"crooked aggregate":  {CodeMalformed, cell(func(c *transform.Cell) { c.Aggregate = true })},
		"empty range":        {CodeTimestamp, del(transform.Delete{Family: "d", Qualifier: []byte("x"), From: 5, To: 5})},
		"family by range":    {CodeMalformed, del(transform.Delete{Family: "d", From: 5, To: 6})},
		"too many mutations": {CodeMutations, func(r *transform.Row) { r.Cells = slices.Repeat(r.Cells, 100_000) }},
		"large request": {CodeRequest, func(r *transform.Row) {
			r.Cells[0].Value = long(90 << 20)
			r.Cells = slices.Repeat(r.Cells, 3)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := rig(t)
			f.fates(nil)
			w := own("good", 1, "x", "1")
			bad := own("bad", 1, "x", "1").Rows[0]
			test.spoil(&bad)
			w.Rows = append(w.Rows, bad)
			err := c.Apply(t.Context(), target, w)
			var rejected *RejectedError
			if !errors.As(err, &rejected) || rejected.Code != test.code || Classify(err) != failure.Rejected {
				t.Errorf("apply: %v, want it rejected with code %s", err, test.code)
			}
			if f.count() != 0 {
				t.Error("the write's other row was sent")
			}
		})
	}
}

func TestRefusedByTheServiceIsAskedOnceMore(t *testing.T) {
	c, f := rig(t)
	f.fates(func(int) fate { return reject })
	err := c.Apply(t.Context(), target, own("hats", 1, "x", "1"))
	var rejected *RejectedError
	if !errors.As(err, &rejected) || rejected.Code != CodeService || f.count() != 2 {
		t.Errorf("apply: %v after %d calls", err, f.count())
	}
}

// TestOneRefusalIsNotBelieved: the service takes the write when it is asked again, at once or after
// an outage.
func TestOneRefusalIsNotBelieved(t *testing.T) {
	for name, fates := range map[string][]fate{
		"taken": {reject, pass}, "away, then taken": {reject, refuse, pass}, "away before": {refuse, reject, pass},
		"lost": {reject, lose, pass},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := rig(t)
			f.fates(func(n int) fate { return fates[min(n, len(fates)-1)] })
			if err := c.Apply(t.Context(), target, own("hats", 1, "x", "1")); err != nil || f.count() != len(fates) {
				t.Errorf("apply: %v after %d calls", err, f.count())
			}
			if got := plain(t, c); len(got) != 1 {
				t.Errorf("the rows hold %v", got)
			}
		})
	}
}

func TestOutageEndsInDurableRows(t *testing.T) {
	c, f := rig(t)
	f.fates(func(n int) fate {
		if n < 50 {
			return []fate{refuse, lose, park}[n%3]
		}
		return pass
	})
	mustApply(t, c, own("hats", 1, "x", "1"), own("hats", 2, "x", "2"), own("caps", 1, "x", "1"))
	f.deliver()
	want := map[string]string{"hats d:x": "2", "caps d:x": "1"}
	if diff := cmp.Diff(want, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManyLanesShareOneClient(t *testing.T) {
	c, f := strict(t)
	f.Faults.Random(sandbox.Odds{Refuse: 0.05, Ambiguous: 0.05, Late: 0.05})
	f.Faults.LateBy(time.Millisecond)
	want := map[string]string{}
	var lanes errgroup.Group
	for lane := range 32 {
		name := fmt.Sprintf("item%02d", lane)
		private, shared := "row-"+name, fmt.Sprintf("shared%d", lane%5)
		want[private+" d:n"] = "9"
		want[shared+" d:"+name] = "9"
		lanes.Go(func() error {
			for v := range int64(10) {
				last := fmt.Sprint(v)
				one := own(private, v, "n", last, "only"+last, last)
				two := share(transform.ClassD, name, shared, v, []string{fmt.Sprint(name, "/", v-1)}, name, last,
					fmt.Sprint(name, "/", v), last)
				if v == 9 {
					one.Rows[0].Cells, two.Rows[0].Cells = one.Rows[0].Cells[:1], two.Rows[0].Cells[:1]
				}
				for _, w := range []*transform.Write{one, two} {
					if err := c.Apply(t.Context(), target, w); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := lanes.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// endingBackOff calls end when the first try has failed.
type endingBackOff struct {
	backoff.ZeroBackOff
	end func()
}

func (b *endingBackOff) NextBackOff() time.Duration {
	b.end()
	return time.Hour
}

func TestServerThatIsNotThereYet(t *testing.T) {
	addr := "127.0.0.1:1" // nothing listens
	c := open(t, addr)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c.newBackOff = func() backoff.BackOff {
		return &endingBackOff{end: func() { cancel(errors.New("shutting down")) }}
	}
	err := c.Apply(ctx, target, own("hats", 1, "x", "1"))
	if Classify(err) != failure.Canceled || !strings.Contains(err.Error(), "shutting down") ||
		!strings.Contains(err.Error(), "Unavailable") {
		t.Errorf("apply: %v (%v)", err, Classify(err))
	}
}

func TestRefusalWithoutAReasonIsNotRepeatedForEver(t *testing.T) {
	c, f := rig(t)
	f.fates(func(int) fate { return unsay })
	err := c.Apply(t.Context(), target, own("hats", 1, "x", "1"))
	if Classify(err) != failure.Fatal || f.count() != maxVagueTries {
		t.Errorf("apply: %v (%v) after %d calls", err, Classify(err), f.count())
	}
}

func TestMissingTableMakesNoDeadLetter(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		err := c.Apply(t.Context(), "nowhere", own("hats", 1, "x", "1"))
		if Classify(err) != failure.Missing {
			t.Errorf("apply: %v (%v)", err, Classify(err))
		}
	})
}

// Rule 13: one answer that a table is not there is asked for again.
func TestOneNotFoundIsNoMissingTable(t *testing.T) {
	c, f := rig(t)
	f.fates(func(n int) fate { return []fate{lack, pass}[min(n, 1)] })
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Errorf("after one answer: %v", err)
	}
	f.fates(func(int) fate { return lack })
	next := *s
	next.Issued = true
	if err := c.CompareAndSet(t.Context(), s, &next); Classify(err) != failure.Missing || f.count() != 2 {
		t.Errorf("after %d answers: %v", f.count(), err)
	}
}

// Rule 13: so is one such answer to a read, of rows as of the pipeline's own.
func TestOneNotFoundOfAReadIsNoMissingTable(t *testing.T) {
	c, f := rig(t)
	if err := c.CreateState(t.Context(), firstState()); err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, own("row", 1, "x", "1"))
	want := firstState()
	var rows int
	for name, read := range map[string]func() error{
		"state": func() error {
			_, err := c.LoadState(t.Context(), want.Identity.Pipeline, want.Identity.Table)
			return err
		},
		"held": func() error {
			held, err := c.HeldRows(t.Context(), target, item("row"), []transform.RowRead{
				{Key: []byte("row"), Class: transform.ClassR},
			})
			rows = len(held)
			return err
		},
		"rows": func() error {
			rows = 0
			return c.Rows(t.Context(), target, "", "", []View{{"d", 0}}, func(*Row) error { rows++; return nil })
		},
	} {
		rows = 1
		f.mu.Lock()
		f.lacks = 1
		f.mu.Unlock()
		if err := read(); err != nil || rows != 1 {
			t.Errorf("%s after one answer: %v, %d rows", name, err, rows)
		}
		f.mu.Lock()
		f.lacks = 2
		f.mu.Unlock()
		if err := read(); Classify(err) != failure.Missing {
			t.Errorf("%s after two answers: %v", name, err)
		}
	}
}

// TestReadThatBreaksOffGivesNoRowTwice: what was taken of a read is not read again within the same
// call.
func TestReadThatBreaksOffGivesNoRowTwice(t *testing.T) {
	c, f := rig(t)
	mustApply(t, c, own("row", 1, "x", "1"))
	f.mu.Lock()
	f.breaks = 1
	f.mu.Unlock()
	rows := 0
	err := c.Rows(t.Context(), target, "", "", []View{{"d", 0}}, func(*Row) error { rows++; return nil })
	if Classify(err) != failure.Missing || rows != 1 {
		t.Errorf("%v, %d rows", err, rows)
	}
}
