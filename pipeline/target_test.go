package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

// another makes the next pipelines of the world ones of another name, with a queue of their own.
func (w *world) another(name string) {
	dir := w.t.TempDir()
	w.opts = func(o *pipeline.Options) { o.Name = name }
	w.qopts = func(o *queue.Options) { o.Pipeline, o.Dir = name, dir }
}

// taken fails unless Run ended because the target belongs to another pipeline.
func (r *run) taken(owner string) {
	r.t.Helper()
	err := r.end()
	var refused *pipeline.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.What, "orders belongs to pipeline \""+owner+"\"") ||
		!strings.Contains(refused.Hint,
			"cbt deleterow tailrace_state '#target#projects/local/instances/local/tables/orders'") {
		r.t.Errorf("the second pipeline ended with %v", err)
	}
}

func TestSecondPipelineIntoATargetIsRefused(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 90, 50)
	r.settle()
	w.another("other")
	w.start("Orders").taken("shop")
	if _, err := r.sink.LoadState(t.Context(), "other", "Orders"); !errors.Is(err, bigtable.ErrNoState) {
		t.Errorf("the refused pipeline has a row: %v", err)
	}
	w.changeItems("Orders", 91, 50)
	r.settle()
	r.equal()
}

func TestOfPipelinesThatBeginAtOnceOneHasTheTarget(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	w.another("one")
	one := w.open("Orders")
	w.another("two")
	two := w.open("Orders")
	one.begin()
	two.begin()
	first, second, owner := one, two, "one"
	one.wait("one of the pipelines ends", func() bool {
		var err error
		if one.hasEnded(&err) {
			first, second, owner = two, one, "two"
			return true
		}
		return two.hasEnded(&err)
	})
	second.taken(owner)
	w.changeItems("Orders", 92, 50)
	first.settle()
	first.equal()
}

func TestTablesOfOnePipelineShareATarget(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("ORDERS") // target is the name in small letters
	r := w.start("Orders", "ORDERS")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	w.put("ORDERS", "b", "1", `"v":{"N":"2"}`)
	r.until("both are there", func() bool { return len(r.stored("Orders")) == 2 })
}

func TestChangedTargetIsRefused(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	w.createTable("Elsewhere")
	r := w.start("Orders")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.opts = func(o *pipeline.Options) { o.Tables[0].Target = "elsewhere" }
	r = w.open("Orders")
	r.ensure(t.Context(), "Elsewhere")
	r.begin()
	err := r.end()
	var refused *pipeline.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.What, "/tables/orders since the pipeline started, not in ") {
		t.Errorf("ended with %v", err)
	}
}

func TestMappingIsKeptBesideItsHash(t *testing.T) {
	w := newWorld(t)
	w.mapping = `
# comments are not kept
families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}]
`
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	row, err := r.sink.LoadState(t.Context(), "shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.sink.LoadMapping(t.Context(), "shop", "Orders", row.Identity.MappingHash)
	if err != nil || strings.Contains(string(text), "comments") {
		t.Fatalf("%s, %v", text, err)
	}
	var kept transform.Kept
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	info, err := r.src.Table(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	tab := transform.Table{Pipeline: "shop", Source: "Orders", Target: "orders", Schema: info.Schema, View: info.View}
	if err := kept.Apply(&tab); err != nil {
		t.Fatal(err)
	}
	p, problems := transform.Compile(tab)
	if p == nil {
		t.Fatal(problems)
	}
	if want, err := r.compile("Orders")(info); err != nil || p.Hash() != want.Hash() {
		t.Errorf("the kept mapping is another one: %s", text)
	}
}

// states calls f with the state table of the pipelines.
func (w *world) states(f func(*cloud.Table) error) {
	w.t.Helper()
	client, err := cloud.NewClient(w.t.Context(), "local", "local", option.WithEndpoint(w.front.Addr()),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	if err := f(client.Open(tableschema.StateTable)); err != nil {
		w.t.Fatal(err)
	}
}

// oldFormat makes the format of the pipeline an older one, whatever it was; 0: unknown.
func (w *world) oldFormat(format int) {
	w.t.Helper()
	w.states(func(table *cloud.Table) error {
		m := cloud.NewMutation()
		m.DeleteRow()
		if format > 0 {
			m.Set("s", "format", 0, fmt.Appendf(nil, `{"format":1,"log":%d}`, format))
		}
		return table.Apply(w.t.Context(), "#format#shop", m)
	})
}

// The target may have been adopted by another pipeline while this one reads on without Bigtable.
func TestTargetTakenDuringAnOutageIsNotWritten(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "x", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	other := w.open("Orders")
	if err := other.sink.AdoptTarget(t.Context(), "other", "orders", "shop", 0); err != nil {
		t.Fatal(err)
	}
	other.ended <- nil
	other.close()
	w.front.Faults.Outage(0)
	w.put("Orders", "b", "x", `"v":{"N":"1"}`)
	r = w.restart("Orders")
	r.until("what was written is in the log", func() bool { return r.table("Orders").Changes == 2 })
	w.front.Faults.Recover()
	r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
	if why := r.table("Orders").Halts["pipeline"]; !strings.Contains(why, `belongs to pipeline "other"`) {
		t.Errorf("halted because %s", why)
	}
	if rows := len(r.stored("Orders")); rows != 1 {
		t.Errorf("%d rows in Bigtable, want the one from before", rows)
	}
}

// TestAdoptedTargetHasOnlyTheNewPipelinesState: the new pipeline begins above every guard of the
// old one, or the rows would skip its writes (attack 47).
func TestAdoptedTargetHasOnlyTheNewPipelinesState(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 92, 50)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.changeItems("Orders", 93, 50) // that nobody has read
	looking := w.openAs(false, "Orders")
	highest, _, err := looking.sink.HighestGuard(t.Context(), "orders")
	if err != nil || highest == 0 {
		t.Fatal(highest, err)
	}
	looking.fenceRow("Orders", "f1")
	w.backfill.From = "scan"
	w.another("other")
	name := w.opts
	w.opts = func(o *pipeline.Options) { name(o); o.Adopt = true }
	r = w.start("Orders")
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.What, "cutover f1 has fenced it") {
		t.Errorf("a fenced target is adopted: %v", err)
	}
	r.kill()
	looking.fenceRow("Orders", "")
	looking.ended <- nil
	looking.close()
	r = w.restart("Orders")
	r.hastenUntil("the copy is complete", func() bool { ready, _ := r.p.Ready(); return ready })
	w.changeItems("Orders", 94, 50)
	r.settle()
	r.equal()
	row, err := r.sink.LoadState(t.Context(), "other", "Orders")
	if err != nil || row.Floor < highest || row.Lead < time.Minute {
		t.Errorf("%+v, %v: guards reach %d", row, err, highest)
	}
}
