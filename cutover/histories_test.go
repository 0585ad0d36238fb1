package cutover_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/daemon/daemontest"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// world is a replicator with one target, and the cutover of it.
type world struct {
	*daemontest.World
	t *testing.T
	d *daemontest.Daemon
}

// newWorld starts a world with the mapping of Orders, if it is not empty.
func newWorld(t *testing.T, seed uint64, mapping string) *world {
	t.Helper()
	t.Parallel()
	w := &world{World: daemontest.New(t, seed), t: t}
	if mapping == "" {
		w.Configure("{source: Orders, target: orders, backfill: none}")
	} else {
		w.Write("orders.yaml", mapping)
		w.Configure("{source: Orders, target: orders, mapping: orders.yaml, backfill: none}")
	}
	w.Prepare("Orders")
	return w
}

// put writes n items, and waits until they are applied.
func (w *world) put(n int, value string) {
	w.t.Helper()
	for i := range n {
		w.Put("Orders", "hats", fmt.Sprint(i), `"n":{"N":"`+value+`"}`)
	}
	w.d.Settle()
}

// verifyForCutover makes the full comparison that a cutover may use, which must find everything
// equal.
func (w *world) verifyForCutover() {
	w.t.Helper()
	_, s := w.Pair("Orders")
	var found []report.Table
	var err error
	w.While("all items are compared", func() {
		found, err = audit.Full(w.t.Context(), w.Config, s, audit.Options{Along: true})
	})
	if err != nil || report.Worst(found) != report.Equal {
		w.t.Fatalf("verify --for-cutover: %+v, %v", found, err)
	}
}

// trim has everything deleted from the log that is applied.
func (w *world) trim() {
	w.t.Helper()
	w.d.Stop()
	w.Trim("Orders")
	w.d = w.Run()
	w.d.Settle()
}

// whyAll returns why a cutover would compare all items; "" where it would compare only what has
// changed.
func (w *world) whyAll() string {
	w.t.Helper()
	clients, s := w.Pair("Orders")
	c := cutover.New(w.Config, clients, s, cutover.Options{Tables: []string{"Orders"}})
	dir := audit.SavedDir(w.Config.Scratch, w.Config.Pipeline, "orders")
	changed, why, err := cutover.ChangedSince(c, w.t.Context(), dir)
	if err != nil {
		w.t.Fatal(err)
	}
	if changed != nil {
		_ = changed.Close()
	}
	return why
}

// cutover runs a cutover to its end, and returns what it has said.
func (w *world) cutover(o cutover.Options) (*certificate.Certificate, string, error) {
	w.t.Helper()
	clients, s := w.Pair("Orders")
	var mu sync.Mutex
	var said strings.Builder
	if o.Tables == nil {
		o.Tables = []string{"Orders"}
	}
	o.Quiet = time.Second
	hook := o.Say
	o.Say = func(format string, args ...any) {
		mu.Lock()
		fmt.Fprintf(&said, format+"\n", args...)
		mu.Unlock()
		if hook != nil {
			hook(format, args...)
		}
	}
	var cert *certificate.Certificate
	var err error
	w.While("the cutover ends", func() { cert, err = cutover.New(w.Config, clients, s, o).Run(w.t.Context()) })
	return cert, said.String(), err
}

// plant writes a cell into a row as somebody else than the replicator would.
func (w *world) plant(row, column string) {
	w.t.Helper()
	m := cloud.NewMutation()
	m.Set("d", column, cloud.Now(), []byte("planted"))
	w.mutate(row, m)
}

// unplant deletes a row, with its guards, as somebody else than the replicator would.
func (w *world) unplant(row string) {
	w.t.Helper()
	m := cloud.NewMutation()
	m.DeleteRow()
	w.mutate(row, m)
}

func (w *world) mutate(row string, m *cloud.Mutation) {
	w.t.Helper()
	if err := w.client().Open("orders").Apply(w.t.Context(), row, m); err != nil {
		w.t.Fatal(err)
	}
}

// client returns a client of Bigtable until the test ends.
func (w *world) client() *cloud.Client {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local", option.WithEndpoint(w.Bigtable.Addr()),
		option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.Close() })
	return client
}

// refusal returns why a cutover was refused.
func refusal(t *testing.T, err error) string {
	t.Helper()
	refused := (*cutover.Refused)(nil)
	if !errors.As(err, &refused) {
		t.Fatalf("not refused: %v", err)
	}
	return strings.Join(refused.Reasons, "; ")
}

const typed = `families: {d: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: n, to: "d:n", as: int64}]
`

// Attack 44: what happens between verify --for-cutover and the fence. Another owner's changes are
// in the log like any others. What is done to rows beside the log's changes, or is not in the log
// any more, makes the comparison useless, and the cutover says so.
func TestWhatComesBetweenTheComparisonAndTheFence(t *testing.T) {
	w := newWorld(t, 921, typed)
	w.Window = "1h" // else the next owner would trim the log
	w.Configure("{source: Orders, target: orders, mapping: orders.yaml, backfill: none}")
	w.d = w.Run()
	w.put(5, "1")
	if why := w.whyAll(); !strings.Contains(why, "no full comparison") {
		t.Errorf("before the first comparison: %q", why)
	}
	w.verifyForCutover()
	w.put(2, "2")
	w.d.Stop()
	w.d = w.Run()
	w.put(3, "3")
	if why := w.whyAll(); why != "" {
		t.Errorf("another owner: %s", why)
	}

	w.Put("Orders", "hats", "0", `"n":{"S":"many"}`)
	w.d.Settle()
	w.put(1, "4")
	w.Clock.Advance(2 * time.Minute) // so that a retry finds the item cool
	w.d.Settle()
	w.retryLetters()
	if why := w.whyAll(); !strings.Contains(why, "a repair of Orders, or of a retry of its dead letters") {
		t.Errorf("a letter was retried: %q", why)
	}
	w.verifyForCutover()
	if why := w.whyAll(); why != "" {
		t.Errorf("compared behind the retry: %s", why)
	}

	id, err := w.Log("Orders").Resync(t.Context(), "resync", nil)
	if err != nil {
		t.Fatal(err)
	}
	if why := w.whyAll(); !strings.Contains(why, "the last full one began before a resync of Orders (entry ") {
		t.Errorf("a resync is ordered: %q", why)
	}
	clients := w.Clients()
	w.While("the resync ends", func() { _, _, err = control.AwaitResync(t.Context(), clients, "Orders", id) })
	if err != nil {
		t.Fatal(err)
	}
	w.verifyForCutover()
	if why := w.whyAll(); why != "" {
		t.Errorf("compared behind the resync: %s", why)
	}
}

// retryLetters has the dead letters of Orders applied again, of which there must be some.
func (w *world) retryLetters() {
	w.t.Helper()
	ctx, c := w.t.Context(), w.Clients()
	q, err := c.Queue(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := control.OpenLetters(ctx, q, w.Config.Tables)
	if err != nil {
		w.t.Fatal(err)
	}
	var done *control.RetriedLetters
	w.While("the letters are retried", func() {
		done, err = control.RetryLetters(ctx, all, nil, func(table string) *control.Requester {
			return &control.Requester{Table: table, Clients: c, ClaimTTL: 10 * time.Second, By: "test"}
		})
	})
	if err != nil || done.Applied == 0 {
		w.t.Fatalf("retry: %+v, %v", done, err)
	}
}

// Attack 44: a log that was trimmed since the comparison does not name all items that have changed.
// The cutover says so, compares all of them, and finds what the items that have changed would not
// show.
func TestCutoverBehindATrimmedLogComparesAll(t *testing.T) {
	w := newWorld(t, 922, "")
	w.d = w.Run()
	w.put(5, "1")
	w.verifyForCutover()
	w.put(3, "2")
	w.trim()
	cert, said, err := w.cutover(cutover.Options{})
	if err != nil || cert.Verify.How != certificate.HowFull || cert.Verify.Equal != 5 || cert.Format != 1 {
		t.Fatalf("%+v, %v\n%s", cert, err, said)
	}
	if !strings.Contains(said, "Verifying: all items are read and compared with Bigtable, because the log of Orders does "+
		"not reach back") {
		t.Errorf("it said:\n%s", said)
	}
}

// Other tables that write to the target are in no configuration of the command: one of this
// pipeline that was taken out of the configuration, and one of a pipeline whose target was adopted.
// Both are named, before anything is fenced. Those that are fenced write nothing, and rows of other
// targets do not matter.
func TestCutoverNamesWhoElseWritesToTheTarget(t *testing.T) {
	w := newWorld(t, 923, "")
	sink := w.Sink(w.Clients())
	w.d = w.Run()
	w.put(2, "1")
	for _, id := range []bigtable.Identity{
		{Pipeline: "shop", Table: "Former", Target: sink.TargetName("orders")},
		{Pipeline: "old", Table: "Orders", Target: sink.TargetName("orders")},
		{Pipeline: "old", Table: "Fenced", Target: sink.TargetName("orders")},
		{Pipeline: "old", Table: "Users", Target: sink.TargetName("users")},
	} {
		row := &bigtable.State{Identity: id, Life: 1, Issued: true}
		if id.Table == "Fenced" {
			row.Fenced = &bigtable.Fenced{ID: "f1", Time: w.Clock.Now()}
		}
		if err := sink.CreateState(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := w.cutover(cutover.Options{})
	why := refusal(t, err)
	for _, want := range []string{
		"table Former has rows in orders, too, and is not in this configuration",
		`table Orders of pipeline "old" has rows in orders, too`,
	} {
		if !strings.Contains(why, want) {
			t.Errorf("refused for: %s\nwant: %s", why, want)
		}
	}
	if strings.Contains(why, "Users") || strings.Contains(why, "Fenced") {
		t.Errorf("refused for others: %s", why)
	}
	if row, err := sink.LoadState(t.Context(), "shop", "Orders"); err != nil || row.Fenced != nil {
		t.Errorf("it is fenced: %+v, %v", row, err)
	}
}

// unshown is a mapping whose columns do not show to which item of the row they belong, in a family
// whose cells age.
const unshown = `families: {d: {max_versions: 1}, t: {max_versions: 1, max_age: 720h, combine: union}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells:
  - {attr: n, to: "d:{s}/n"}
  - {attr: m, to: "t:{s}/m"}
  - {attrs: all, except: [pk, sk, n, m], to: "d:{s}/{attr}/{type}"}
`

// What is accepted by name: an aged family before the fence, a column that cannot be compared in
// one row behind it. A rule that is spelled wrong is noticed before the writers are stopped. The
// certificate says what was accepted.
func TestCutoverAcceptsByName(t *testing.T) {
	w := newWorld(t, 924, unshown)
	w.d = w.Run()
	w.Put("Orders", "hats", "a", `"n":{"N":"1"},"m":{"N":"1"},"x":{"S":"1"}`)
	w.Put("Orders", "caps", "a", `"n":{"N":"1"},"x":{"S":"1"}`)
	w.d.Settle()
	w.plant("hats", "a/x/N")
	unfenced := func(when string) {
		t.Helper()
		if row, err := w.Sink(w.Clients()).LoadState(t.Context(), "shop", "Orders"); err != nil || row.Fenced != nil {
			t.Errorf("%s: it is fenced: %+v, %v", when, row, err)
		}
	}
	_, _, err := w.cutover(cutover.Options{})
	if why := refusal(t, err); !strings.Contains(why, "Orders: cells of families with max_age") {
		t.Errorf("without --accept-aged: %s", why)
	}
	unfenced("without --accept-aged")
	_, _, err = w.cutover(cutover.Options{AcceptAged: true, Accept: []string{"columns:items/d:a/x/N", "columns:item/d"}})
	if why := refusal(t, err); !strings.Contains(why, "--accept columns:items/d:a/x/N names no column of a rule") ||
		!strings.Contains(why, "--accept columns:item/d names no column") || !strings.Contains(why, "item/d, item/t") {
		t.Errorf("a rule that is not there: %s", why)
	}
	unfenced("a rule that is not there")
	cert, said, err := w.cutover(cutover.Options{AcceptAged: true, Accept: []string{"columns:item/d:a/x/N"}})
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var names []string
	for _, x := range cert.Waivers {
		names = append(names, fmt.Sprintf("%s %d by %t", x.Name, x.Count, x.By != ""))
	}
	if got := strings.Join(names, ", "); got != "columns:item/d:a/x/N 1 by true, aged 0 by true" {
		t.Errorf("waivers: %s", got)
	}
	says := strings.Join(cert.Says, "\n")
	if !strings.Contains(says, "of 1 cell of item/d:a/x/N") || !strings.Contains(says, "families with max_age") ||
		cert.Verify.Unproven != 1 || cert.Verify.Equal != 2 {
		t.Errorf("certificate: %+v\n%s", cert.Verify, says)
	}
}
