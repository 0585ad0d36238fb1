package cutover_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/explain"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// sharedWorld has two tables in one target, whose rows begin with o and x.
type sharedWorld struct {
	*daemontest.World
	t *testing.T
}

const (
	orders = "{source: Orders, target: shared, mapping: o.yaml, backfill: none}"
	other  = "{source: Other, target: shared, mapping: x.yaml, backfill: none}"
)

func newSharedWorld(t *testing.T, seed uint64) *sharedWorld {
	t.Helper()
	t.Parallel()
	w := &sharedWorld{daemontest.New(t, seed), t}
	for _, letter := range []string{"o", "x"} {
		w.Write(letter+".yaml", fmt.Sprintf(`families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "%s#{p}#{s}"
  cells: [{attr: n, to: "d:n", as: int64}]
`, letter))
	}
	w.Configure(orders, other)
	w.Prepare("Orders", "Other")
	return w
}

// replicate writes items to both tables, of which one of Orders is refused, and stops when they are
// applied.
func (w *sharedWorld) replicate() {
	w.t.Helper()
	d := w.Run()
	for i := range 3 {
		w.Put("Orders", "p", fmt.Sprint(i), `"n":{"N":"1"}`)
		w.Put("Other", "p", fmt.Sprint(i), `"n":{"N":"1"}`)
	}
	w.Put("Orders", "p", "bad", `"n":{"S":"many"}`)
	d.Settle()
	d.Stop()
}

// retire retires Orders with the configuration of this moment, and returns what was kept of it.
func (w *sharedWorld) retire(o cutover.RetireOptions) (cutover.Kept, error) {
	w.t.Helper()
	clients := w.Clients()
	q, err := clients.Queue(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	o.Table, o.Now, o.Say = "Orders", w.Clock.Now, func(string, ...any) {}
	r, err := cutover.PlanRetirement(w.t.Context(), w.Config, q, w.Sink(clients), w.Sink(clients), o)
	if err != nil {
		return cutover.Kept{}, err
	}
	return r.Kept, r.Run(w.t.Context())
}

// verify compares all of the target of a table.
func (w *sharedWorld) verify(table string) report.Table {
	w.t.Helper()
	_, s := w.Pair(table)
	var found []report.Table
	var err error
	w.While("all items are compared", func() {
		found, err = audit.Full(w.t.Context(), w.Config, s, audit.Options{})
	})
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%d tables: %v", len(found), err)
	}
	return found[0]
}

// plant writes a cell as the application would, an hour ago.
func (w *sharedWorld) plant(row, column string) {
	w.t.Helper()
	m := cloud.NewMutation()
	m.Set("d", column, cloud.Time(w.Clock.Now().Add(-time.Hour)), []byte("of the application"))
	w.edit(func(table *cloud.Table) error { return table.Apply(w.t.Context(), row, m) })
}

// edit changes rows of the target as another program would.
func (w *sharedWorld) edit(change func(*cloud.Table) error) {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local", option.WithEndpoint(w.Bigtable.Addr()),
		option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	if err := change(client.Open("shared")); err != nil {
		w.t.Fatal(err)
	}
}

// Guards that a retired table has left are found and deleted later, although its row and its log
// are gone and it is not configured any more. Those of the other table in the target stay.
func TestGuardsOfARetiredTableAreDroppedLater(t *testing.T) {
	w := newSharedWorld(t, 944)
	w.replicate()
	w.Configure(other)
	kept, err := w.retire(cutover.RetireOptions{DropLetters: true})
	if err != nil || !kept.Row || kept.Retired != nil {
		t.Fatalf("%+v, %v", kept, err)
	}
	later, err := w.retire(cutover.RetireOptions{})
	if err != nil || !later.Nothing() || later.Target != "shared" || later.Retired == nil || later.Guards != nil {
		t.Errorf("without --drop-guards: %v, %+v", err, later)
	}
	kept, err = w.retire(cutover.RetireOptions{DropGuards: true})
	if err != nil || kept.Target != "shared" || kept.Retired == nil || kept.Guards == nil || kept.Guards.Cells != 3 ||
		kept.Guards.Others != 3 {
		t.Errorf("%+v, %+v, %v", kept, kept.Guards, err)
	}
	again, err := w.retire(cutover.RetireOptions{DropGuards: true})
	if err != nil || !again.Nothing() || again.Guards == nil || again.Guards.Others != 3 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// A table that is not configured any more is retired without a cutover, with letters that were
// never applied only if they are waived, also with its guards. Then the rows of the other table in
// the target are compared as before: what Orders has left, and what the application adds to it, is
// no difference and is never deleted as foreign cells; and people are told so. What nobody but the
// other table could have written is foreign as ever.
func TestTargetOfARetiredTableIsComparedForTheOthers(t *testing.T) {
	w := newSharedWorld(t, 941)
	w.replicate()
	_, err := w.retire(cutover.RetireOptions{DropGuards: true, DropLetters: true})
	if err == nil || !strings.Contains(err.Error(), "configured and not fenced") {
		t.Errorf("still configured: %v", err)
	}
	w.Configure(other)
	_, err = w.retire(cutover.RetireOptions{DropGuards: true})
	if err == nil || !strings.Contains(err.Error(), "1 dead letter") {
		t.Errorf("with a letter: %v", err)
	}
	kept, err := w.retire(cutover.RetireOptions{DropGuards: true, DropLetters: true})
	if err != nil || kept.Letters != 1 || kept.Guards == nil || kept.Guards.Cells != 3 || kept.Fence != "" {
		t.Fatalf("%+v, %v", kept, err)
	}
	if again, err := w.retire(cutover.RetireOptions{DropGuards: true}); err != nil || !again.Nothing() {
		t.Errorf("once more: %+v, %v", again, err)
	}
	w.plant("o#p#0", "n")
	w.plant("o#p#new", "n")

	d := w.Run()
	d.Settle()
	x := w.verify("Other")
	if x.Verdict != report.Equal || x.Items != 3 || x.Foreign != 0 {
		t.Errorf("the other table: %+v", x)
	}
	if text := x.Sentence(); !strings.Contains(text, "Other and shared are equal") ||
		!strings.Contains(text, "the replication of Orders into shared has ended") {
		t.Errorf("it says: %s", text)
	}
	found := w.explain("o#p#new")
	if found.Verdict.Status != explain.Equal || !slices.ContainsFunc(found.Cells, func(c explain.OwnedCell) bool {
		return strings.Contains(c.Why, "may have written it: Orders")
	}) {
		t.Errorf("explain says: %+v", found)
	}
	w.plant("x#p#9", "n")
	w.plant("x#p#1", "m")
	if x := w.verify("Other"); x.Verdict != report.Different || x.Foreign != 1 {
		t.Errorf("a row that only the other table may have: %+v", x)
	}
	if got := w.deleteForeign("o#p#new", "o#p#0", "x#p#9"); got != "owned owned deleted 1" {
		t.Errorf("repair --delete-foreign: %s", got)
	}

	// Configured again it is refused, and with --adopt the operator takes the rows back: they are
	// left out no more. Those of another retired table are not taken back with them.
	sink := w.Sink(w.Clients())
	err = sink.Retire(t.Context(), "shop", "shared", "Former", bigtable.Retired{At: w.Clock.Now(), Floor: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.Stop()
	w.Configure(orders, other)
	d = w.Run()
	w.Until("Orders is refused", func() bool {
		return strings.Contains(d.Table("Orders").Halt, "was retired at") &&
			strings.Contains(d.Table("Orders").Halt, "run --adopt")
	})
	d.Stop()
	w.Delete("Orders", "p", "bad")
	w.Adopt = true
	d = w.Run()
	w.Until("Orders is replicated again", func() bool { return d.Table("Orders").State == "running" })
	retired, err := sink.Retired(t.Context(), "shared")
	if _, ok := retired["Former"]; !ok || len(retired) != 1 || err != nil {
		t.Errorf("retired: %v, %v", retired, err)
	}
}

// A pipeline that adopts a target in which another one has retired a table may replicate a table of
// that name.
func TestRetiredTableOfAnotherPipelineIsAdopted(t *testing.T) {
	w := newSharedWorld(t, 945)
	w.Configure(orders)
	sink := w.Sink(w.Clients())
	if _, err := sink.ClaimTarget(t.Context(), "shop", "shared"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Orders", "Former"} {
		err := sink.Retire(t.Context(), "shop", "shared", name, bigtable.Retired{At: w.Clock.Now(), Floor: 1})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Config.Pipeline, w.Adopt = "new", true
	d := w.Run()
	w.Until("Orders is replicated", func() bool { return d.Table("Orders").State == "running" })
	owner, err := sink.ClaimTarget(t.Context(), "third", "shared")
	if err != nil || owner != "new" {
		t.Errorf("the target belongs to %q, %v", owner, err)
	}
	retired, err := sink.Retired(t.Context(), "shared")
	if _, ok := retired["Former"]; !ok || len(retired) != 1 || err != nil {
		t.Errorf("retired: %v, %v", retired, err)
	}
}

// explain explains a row of the target.
func (w *sharedWorld) explain(row string) *explain.Row {
	w.t.Helper()
	clients, _ := w.Pair("Other")
	tables := w.Catalog(clients)
	by := &explain.Explainer{Config: w.Config, Clients: clients, Catalog: tables, Table: tables.Table("Other"),
		Say: func(string) {}}
	var found *explain.Row
	var err error
	w.While("the row is explained", func() { found, err = by.Row(w.t.Context(), []byte(row)) })
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// deleteForeign has the column d:n of rows deleted as the owner of the table would, and returns
// what became of them.
func (w *sharedWorld) deleteForeign(rows ...string) string {
	w.t.Helper()
	_, s := w.Pair("Other")
	x := &resync.ForeignDeleter{
		Life: &life.Life{
			Target: "shared", Now: func() change.Millis { return change.MillisOf(w.Clock.Now()) },
			Prove: func(context.Context, change.Millis) error { return nil },
		},
		Client: s.Sink(), MayDelete: func(context.Context) error { return nil },
		Programs: func() ([]*transform.Program, error) { return s.Programs(), nil },
	}
	var asked []request.Item
	for _, row := range rows {
		column := request.Column{Row: []byte(row), Family: "d", Qualifier: []byte("n")}
		asked = append(asked, request.Item{Columns: []request.Column{column}})
	}
	done, err := x.Delete(w.t.Context(), asked)
	if err != nil {
		w.t.Fatal(err)
	}
	var codes []string
	for _, n := range done.Notes {
		codes = append(codes, n.Code)
	}
	return fmt.Sprintf("%s deleted %d", strings.Join(codes, " "), done.Deleted)
}
