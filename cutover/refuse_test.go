package cutover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// columnOf is a cell whose owner cannot be told, which some rules may have written.
func columnOf(rules, column string) *verify.Open {
	return &verify.Open{Kind: verify.Unowned, Rules: strings.Fields(rules), Family: "d", Qualifier: []byte(column)}
}

// TestNothingUnequalIsCertified: only what was accepted by its name does not forbid the
// certificate, and is in it.
func TestNothingUnequalIsCertified(t *testing.T) {
	foreign, sealed := &verify.Open{Kind: verify.Foreign}, &verify.Open{Kind: verify.Sealed}
	column := columnOf("a b", "x")
	both := []string{"columns:a/d:x", "columns:b/d:x"}
	for _, c := range []struct {
		name    string
		status  verify.Status
		cell    *verify.Open
		options Options
		refused string
		waived  []string
	}{
		{name: "equal", status: verify.Equal},
		{name: "equal by the log", status: verify.EqualByLog},
		{name: "kept", status: verify.Kept},
		{name: "different", status: verify.Different, refused: "1 item differs"},
		{name: "refused", status: verify.Refused, refused: "1 item is refused"},
		{name: "unproven", status: verify.Unproven, refused: "1 item or cell is unproven"},
		{name: "all is accepted and an item differs", status: verify.Different,
			options: Options{AcceptForeign: true, AcceptAged: true, Accept: both}, refused: "1 item differs"},
		{name: "foreign", cell: foreign, refused: "1 cell is foreign"},
		{name: "accepted foreign", cell: foreign, options: Options{AcceptForeign: true}, waived: []string{"foreign"}},
		{name: "sealed", cell: sealed, options: Options{AcceptForeign: true, Accept: both}, refused: "is unproven"},
		{name: "sealed in a column that is accepted", options: Options{Accept: both}, refused: "is unproven",
			cell: &verify.Open{Kind: verify.Sealed, Rules: []string{"a"}, Family: "d", Qualifier: []byte("x")}},
		{name: "column", cell: column, options: Options{AcceptForeign: true}, refused: "1 item or cell is unproven"},
		{name: "column of one of two rules", cell: column, options: Options{Accept: both[:1]}, refused: "is unproven"},
		{name: "another column", cell: columnOf("a", "y"), options: Options{Accept: both}, refused: "is unproven"},
		{name: "column of unknown rules", cell: columnOf("", "x"), refused: "is unproven",
			options: Options{Accept: []string{"columns:/d:x"}}},
		{name: "accepted column", cell: column, options: Options{Accept: both}, waived: both},
	} {
		x := &Cutover{Options: c.options}
		tally, v := &tally{c: x, accepted: map[string]int64{}}, &verified{}
		if c.status != "" {
			if err := tally.item(&verify.Verdict{Status: c.status}); err != nil {
				t.Fatal(err)
			}
		}
		if c.cell != nil {
			if err := tally.cell(c.cell); err != nil {
				t.Fatal(err)
			}
		}
		reasons := x.unequal(v, tally)
		if (c.refused != "") != (len(reasons) == 1) || !strings.Contains(joined(reasons), c.refused) {
			t.Errorf("%s: refused because %q, want %q", c.name, reasons, c.refused)
		}
		var waivers []certificate.Waiver
		for _, name := range c.waived {
			waivers = append(waivers, certificate.Waiver{Name: name, Count: 1})
		}
		if diff := cmp.Diff(waivers, v.waivers); diff != "" {
			t.Errorf("%s: waivers (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestComparisonThatDoesNotShowTheRestIsNotUsed: then all items are compared behind the fence.
func TestComparisonThatDoesNotShowTheRestIsNotUsed(t *testing.T) {
	good := audit.Saved{Strong: true, Followed: true}
	for want, alter := range map[string]func(r *audit.Saved){
		"made without --for-cutover":     func(r *audit.Saved) { r.Strong = false },
		"was made without --for-cutover": func(r *audit.Saved) { r.Followed = false },
		"2 items that were not equal":    func(r *audit.Saved) { r.OpenItems = 2 },
		"3 cells without a known owner":  func(r *audit.Saved) { r.OpenCells = 3 },
		"than it lists":                  func(r *audit.Saved) { r.OpenCells = 1 << 40 },
	} {
		r := good
		alter(&r)
		why, err := (&Cutover{}).unusable(t.Context(), &audit.Changed{Result: &r})
		if err != nil || !strings.Contains(why, want) {
			t.Errorf("%q, %v, want %q", why, err, want)
		}
	}
}

// TestFamiliesThatAgeNeedAWaiver: Bigtable may have dropped what an item still has.
func TestFamiliesThatAgeNeedAWaiver(t *testing.T) {
	w := newWorld(t)
	for mapping, want := range map[string][]string{
		"{d: {max_versions: 1}}": nil, "{d: {max_versions: 1}, e: {max_age: 1h}}": {"Orders"},
	} {
		m, problems := transform.ParseMapping("test.yaml", []byte(`families: `+mapping+`
rules:
- {name: any, match: {pk: "{p}"}, row: "{p}", cells: [{attrs: all, except: [pk, a], to: "d:{attr}"}]}
`))
		if m == nil {
			t.Fatal(problems)
		}
		p, problems := transform.Compile(transform.Table{Pipeline: "shop", Source: "Orders", Target: "orders", Mapping: m,
			Schema: w.cutover.pair.Tables[0].Info.Schema, View: "NEW_AND_OLD_IMAGES"})
		if p == nil {
			t.Fatal(problems)
		}
		w.cutover.pair.Tables[0].Program = p
		if got := w.cutover.ages(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mapping, got, want)
		}
	}
}

// TestOpenRequestIsSeen: a repair that waits would be done when the fence is taken away, and the
// rows are not what it makes of them.
func TestOpenRequestIsSeen(t *testing.T) {
	w := newWorld(t)
	logs, err := w.folded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := func() bool {
		t.Helper()
		open, err := openRequest(t.Context(), logs[0])
		if err != nil {
			t.Fatal(err)
		}
		return open
	}
	if open() {
		t.Error("without requests: open")
	}
	store, err := w.log.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cutter := request.Cutter{What: request.Resync}
	cutter.Add(request.Item{Key: []byte(`{"pk":{"S":"a"}}`)}, time.Now())
	chunk := cutter.Rest()
	if err := store.Ask(t.Context(), chunk); err != nil {
		t.Fatal(err)
	}
	if !open() {
		t.Error("a request that waits: not open")
	}
	if err := store.Finish(t.Context(), chunk, &request.Outcome{Done: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if open() {
		t.Error("a request that is done: open")
	}
}

// TestCutoverDoesNotWaitForTheOwnerBehindAFenceThatIsGone: no entry of an owner would ever be
// behind it.
func TestCutoverDoesNotWaitForTheOwnerBehindAFenceThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.cutover.id = "f1"
	w.fence("f1", false)
	w.fence("f1", true)
	w.refused(w.cutover.awaitOwners(t.Context()), "the fence of Orders was taken away meanwhile")
	w.fence("f2", false)
	w.refused(w.cutover.awaitOwners(t.Context()), "the fence of Orders was taken away meanwhile")
}

// TestCutoverDoesNotWaitForEverForAnOwner: with an external queue the logs can be read when no
// replicator runs.
func TestCutoverDoesNotWaitForEverForAnOwner(t *testing.T) {
	const ttl = 15 * time.Second
	nobody := errors.New("no replicator owns table Orders")
	synctest.Test(t, func(t *testing.T) {
		away := true
		c := &Cutover{
			cfg:      &config.Config{Protocol: config.Protocol{ClaimTTL: config.Duration(ttl)}},
			logs:     func(context.Context) ([]*control.Log, error) { return nil, nil },
			obstacle: func([]*control.Log) error { return map[bool]error{true: nobody}[away] },
		}
		began := time.Now()
		err := c.poll(t.Context(), func([]*control.Log) bool { return false })
		if !errors.Is(err, nobody) {
			t.Errorf("nobody comes: %v", err)
		}
		if waited := time.Since(began); waited < 3*ttl || waited > 3*ttl+2*protocol.Restart {
			t.Errorf("it waited for %s", waited)
		}
		began = time.Now()
		err = c.poll(t.Context(), func([]*control.Log) bool { // another owner comes and goes, as often as it likes
			waited := time.Since(began)
			away = waited%time.Minute < 40*time.Second
			return waited > time.Hour
		})
		if err != nil {
			t.Errorf("somebody comes: %v", err)
		}
	})
}

// TestOwnerMustKnowOfTheFence: no entry of an owner that does not know of a fence is behind it, and
// what it was writing when the fence was raised ends before its next entry.
func TestOwnerMustKnowOfTheFence(t *testing.T) {
	for _, applied := range []bool{false, true} {
		w := newWorld(t)
		w.write("a", begin+1000)
		apply := func() {
			last := checkpoint.Mark{Seq: w.owner.State().LastFrame, Hash: w.owner.State().Hash}
			w.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: last}}, nil)
		}
		want := 3
		if applied {
			apply()
			want = 2
		}
		w.fence("f1", false)
		w.cutover.id = "f1"
		looks := 0
		w.cutover.logs = func(ctx context.Context) ([]*control.Log, error) {
			switch looks++; looks {
			case 2:
				w.append(&checkpoint.Beat{Date: begin + 2000, Listed: begin + 2000, Watermark: begin + 2000}, nil)
			case 3:
				apply()
			}
			return w.folded(ctx)
		}
		if err := w.cutover.awaitOwners(t.Context()); err != nil {
			t.Fatal(err)
		}
		if looks != want {
			t.Errorf("everything before it is applied: %t: it waited for %d looks, want %d", applied, looks, want)
		}
	}
}

// TestDeletionsByTTLAreNoWriters: behind the fence their items are read as they were, and a change
// of anybody else forbids the certificate.
func TestDeletionsByTTLAreNoWriters(t *testing.T) {
	w := newWorld(t)
	w.fence("f1", false)
	c := w.cutover
	c.id = "f1"
	w.expire("a", begin+1000)
	if _, err := c.lookBehind(t.Context()); err != nil || c.expired() != 1 {
		t.Errorf("a deletion by TTL: %d items, %v", c.expired(), err)
	}
	for key, old := range c.behind[0].expired {
		if key != `{"pk":{"S":"a"}}` || string(old) != `{"pk":{"S":"a"}}` {
			t.Errorf("%s as it was: %s", key, old)
		}
	}
	w.write("b", begin+2000)
	_, err := c.lookBehind(t.Context())
	w.refused(err, "1 change that neither TTL nor a heartbeat made")
}

// TestRowThatSaysSomethingElseForbidsTheCertificate: the fence was undone, or another mapping
// accepted, by a command elsewhere.
func TestRowThatSaysSomethingElseForbidsTheCertificate(t *testing.T) {
	c := &Cutover{id: "f1"}
	row := func(fence, mapping string) *bigtable.State {
		s := &bigtable.State{Identity: bigtable.Identity{Table: "Orders", MappingHash: mapping}}
		if fence != "" {
			s.Fenced = &bigtable.Fenced{ID: fence}
		}
		return s
	}
	if err := c.checkRow(row("f1", "m"), "m"); err != nil {
		t.Error(err)
	}
	w := &world{T: t}
	w.refused(c.checkRow(row("", "m"), "m"), "the fence of Orders was taken away meanwhile")
	w.refused(c.checkRow(row("f2", "m"), "m"), "the fence of Orders was taken away meanwhile")
	w.refused(c.checkRow(row("f1", "other"), "m"), "the mapping of Orders was changed meanwhile")
}

// TestWayOutBehindTheFence: behind a certificate the undo may write over what the application has
// written.
func TestWayOutBehindTheFence(t *testing.T) {
	for _, c := range []struct {
		name  string
		fence *checkpoint.Fence
		want  string
	}{
		{"before the certificate", &checkpoint.Fence{ID: "a"}, stopWriters},
		{"behind the certificate", &checkpoint.Fence{ID: "a", Certified: 1}, carryOver},
	} {
		if got := wayOut(&checkpoint.State{Fence: c.fence}); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	before, then := strings.Index(carryOver, "carry these changes over"), strings.Index(carryOver, "--undo")
	if before < 0 || then < before {
		t.Errorf("the undo is not the last resort: %s", carryOver)
	}
}
