package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/explain"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// world is a table whose items share rows, and whose columns do not show to which item they belong.
type world struct {
	*daemontest.World
	t *testing.T
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	t.Parallel()
	w := &world{daemontest.New(t, seed), t}
	w.Write("orders.yaml", `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}/{type}"}]
`)
	w.Configure("{source: Orders, target: orders, mapping: orders.yaml, backfill: none}")
	w.Prepare("Orders")
	w.Put("Orders", "hats", "a", `"x":{"S":"1"}`)
	w.Put("Orders", "hats", "b", `"x":{"S":"1"}`)
	return w
}

func (w *world) explainer() *explain.Explainer {
	w.t.Helper()
	clients := w.Clients()
	tables := w.Catalog(clients)
	return &explain.Explainer{Config: w.Config, Clients: clients, Catalog: tables, Table: tables.Table("Orders"),
		Say: func(string) {}}
}

// orders opens the target.
func (w *world) orders() *cloud.Table {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local", option.WithEndpoint(w.Bigtable.Addr()),
		option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	return client.Open("orders")
}

// A burst of changes may have the daemon raise how far versions may be ahead, while a command waits
// for the proof. What it writes then has no guard in the future.
func TestLeadThatIsRaisedWhileTheProofIsAwaited(t *testing.T) {
	w := newWorld(t, 953)
	w.Run().Settle()
	row, err := w.orders().ReadRow(t.Context(), "hats")
	if err != nil {
		t.Fatal(err)
	}
	m := cloud.NewMutation()
	for _, c := range row[transform.LiveFamily] {
		ahead := cloud.Time(w.Clock.Now().Add(30 * time.Minute)).TruncateToMilliseconds()
		m.Set(transform.LiveFamily, strings.TrimPrefix(c.Column, transform.LiveFamily+":"), ahead, c.Value)
	}
	if err := w.orders().Apply(t.Context(), "hats", m); err != nil {
		t.Fatal(err)
	}
	by := w.explainer()
	by.Say = func(string) { w.EditRow("Orders", func(s *bigtable.State) { s.Lead = time.Hour }) }
	var found *explain.Item
	w.While("the item is explained", func() { found, err = by.Key(t.Context(), `{"pk":"hats","sk":"a"}`) })
	if err != nil {
		t.Fatal(err)
	}
	if found.Verdict.Status != explain.Equal {
		t.Errorf("%+v", found.Verdict)
	}
}

// A cell in such a column belongs to the item that should have it as it is. One that no item should
// have may be a ghost of any of them: its owner is not known, and the row is unproven.
func TestCellWhoseColumnDoesNotShowItsItem(t *testing.T) {
	w := newWorld(t, 951)
	d := w.Run()
	d.Settle()
	row := func() (found *explain.Row) {
		t.Helper()
		by := w.explainer()
		var err error
		w.While("the row is explained", func() { found, err = by.Row(t.Context(), []byte("hats")) })
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	found := row()
	if found.Verdict.Status != explain.Equal || len(found.Cells) != 2 || found.Cells[0].Owner != "item" ||
		found.Cells[1].Owner != "item" || found.Cells[0].Item == found.Cells[1].Item {
		t.Errorf("both items: %+v", found)
	}
	m := cloud.NewMutation()
	m.Set("d", "a/x/N", cloud.Now(), []byte("1"))
	if err := w.orders().Apply(t.Context(), "hats", m); err != nil {
		t.Fatal(err)
	}
	found = row()
	if found.Verdict.Status != explain.Unproven || len(found.Cells) != 3 ||
		found.Verdict.Sentence != "unproven: 1 cell is of an unknown owner, and 2 items are equal." ||
		!slices.ContainsFunc(found.Cells, func(c explain.OwnedCell) bool {
			return c.Owner == explain.OwnedMaybe &&
				c.Why == "its column does not show to which item of the row it belongs"
		}) {
		t.Errorf("a ghost: %+v", found)
	}
}

// A request that waits for its item is named with the verdict; those for other items are not.
func TestRequestThatWaitsIsNamed(t *testing.T) {
	w := newWorld(t, 952)
	d := w.Run()
	d.Settle()
	d.Stop()
	store, err := w.Log("Orders").Log.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &request.Chunk{ID: "r1-0", What: request.Resync, By: "ann@laptop", Asked: w.Clock.Now(),
		Items: []request.Item{{Key: []byte(`{"pk":{"S":"hats"},"sk":{"S":"a"}}`)}}}
	if err := store.Ask(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for sk, waits := range map[string]bool{"a": true, "b": false} {
		by := w.explainer()
		var found *explain.Item
		w.While("the item is explained", func() { found, err = by.Key(t.Context(), `{"pk":"hats","sk":"`+sk+`"}`) })
		if err != nil {
			t.Fatal(err)
		}
		if (len(found.Requests) == 1) != waits || waits && found.Requests[0].By != "ann@laptop" ||
			strings.Contains(found.Verdict.Sentence, "1 request for it is waiting") != waits ||
			found.Verdict.Status != explain.Equal {
			t.Errorf("item %s: %+v, %+v", sk, found.Requests, found.Verdict)
		}
	}
}
