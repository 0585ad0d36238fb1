package pipeline_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

const otherRows = "families: {d: {max_versions: 1}}\nrules:\n- name: all\n  match: {pk: \"{p}\", sk: \"{s}\"}\n" +
	"  row: \"{s}#{p}\"\n  cells: [{attrs: all, except: [pk, sk], to: \"d:{attr}\"}]\n"

// When the process starts again, the stored state of Orders is refused. Users is new to the
// pipeline, or unchanged.
func TestRefusedTableLeavesOthersRunning(t *testing.T) {
	for name, c := range map[string]struct {
		first  []string           // the tables of the first run
		change func(*world, *run) // while it runs
		says   string
	}{
		"created anew": {[]string{"Orders", "Users"}, func(w *world, _ *run) {
			w.post("DeleteTable", `{"TableName":"Orders"}`)
			w.createTable("Orders")
		}, "deleted and created again"},
		"lost log": {[]string{"Orders", "Users"}, func(_ *world, r *run) { r.deleteStream("Orders") },
			"empty or not there"},
		"other start": {[]string{"Orders"}, func(w *world, _ *run) {
			w.opts = func(o *pipeline.Options) { o.Start.Latest = true }
		}, "source.start"},
		"other mapping": {[]string{"Orders", "Users"}, func(w *world, _ *run) {
			other := *w
			other.mapping = otherRows
			w.opts = func(o *pipeline.Options) { o.Tables[0].Compile = other.compile("Orders") }
		}, "mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			w.createTable("Users")
			r := w.start(c.first...)
			w.changeItems("Orders", 90, 20)
			r.settle()
			c.change(w, r)
			r.cancel()
			r.close()
			r = w.start("Orders", "Users")
			r.until("the table is halted", func() bool { return r.table("Orders").State == "halted" })
			r.until("the other one is started", func() bool { return r.table("Users").State == "running" })
			w.put("Users", "p", "s", `"v":{"N":"1"}`)
			r.until("the other one is applied", func() bool { return len(r.stored("Users")) == 1 })
			st := r.table("Orders")
			code := "log_refused"
			switch name {
			case "other mapping":
				code = outcome.CodeMapping
			case "lost log":
				code = outcome.CodeLogLost
			}
			if !strings.Contains(st.Halt, c.says) || st.Code != code {
				t.Errorf("code %q, want %s; %q, want it to say %q", st.Code, code, st.Halt, c.says)
			}
			r.until("a rollout would go on", func() bool { return r.p.Started() == nil })
			if err := r.stop(); err != nil {
				t.Errorf("the process ended with %v", err)
			}
		})
	}
}

// TestMappingThatIsPutBackEndsItsHalt: without a restart, because its file is read again at each
// try.
func TestMappingThatIsPutBackEndsItsHalt(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	w.createTable("Users")
	r := w.start("Orders", "Users")
	w.changeItems("Orders", 90, 20)
	r.settle()
	r.cancel()
	r.close()

	other, back := *w, atomic.Bool{}
	other.mapping = otherRows
	w.opts = func(o *pipeline.Options) {
		right, wrong := o.Tables[0].Compile, other.compile("Orders")
		o.Tables[0].Compile = func(info source.TableInfo) (*transform.Program, error) {
			if back.Load() {
				return right(info)
			}
			return wrong(info)
		}
	}
	r = w.start("Orders", "Users")
	r.until("the table is halted", func() bool { return r.table("Orders").Code == outcome.CodeMapping })
	back.Store(true)
	w.changeItems("Orders", 91, 20)
	r.settle()
	r.equal()
}

func TestNoTableThatCanRunEndsTheProcess(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Orders")
	w.createTable("Users")
	r := w.start("Orders", "Users")
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.mapping = otherRows
	r = w.start("Orders", "Users")
	err := r.end()
	refused := (*pipeline.RefusedError)(nil)
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "table Orders") ||
		!strings.Contains(err.Error(), "table Users") {
		t.Errorf("ended with %v, want the refusals of both tables", err)
	}
}
