package test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestHealedGapStaysNamedForItsArchive: the rows of a gap are healed by command, and what the archive lacks is listed
// until it is waived. The stream is enabled again five seconds after a change (attack 55). gaps heal
// does not wait, repair --gaps does.
func TestHealedGapStaysNamedForItsArchive(t *testing.T) {
	long(t, "8 s")
	t.Parallel()
	t.Run("gaps heal", func(t *testing.T) {
		healsGap(t, func(w *world, d *daemon, gap string) {
			w.refused(2, "no gap", "gaps", "heal", "another")
			if out := w.ok("gaps", "heal"); !strings.Contains(out, "Gap "+gap+" of Orders is being healed") {
				t.Error(out)
			}
			d.until("it heals", func() bool { return d.table("Orders").State == "healing" })
		})
	})
	t.Run("repair --gaps", func(t *testing.T) {
		healsGap(t, func(w *world, d *daemon, gap string) {
			w.refused(2, "no gap", "repair", "--gaps", "another")
			w.explains(w.command("repair", "--gaps", "--dry-run"), 0, "Orders: the whole table would be compared with orders",
				"and that heals "+gap, "Nothing was changed")
			if g := w.gap(); g.State != "open" {
				t.Errorf("after a look: %+v", g)
			}
			var asked struct{ ID, Resync string }
			if err := json.Unmarshal([]byte(w.ok("repair", "--gaps", gap, "--no-wait", "--json")), &asked); err != nil ||
				asked.ID != gap || asked.Resync == "" {
				t.Errorf("%v: %+v", err, asked)
			}
			r := d.hastened("repair", "--gaps") // of the pending order, or there is nothing left to do
			if r.code != 0 || strings.Contains(r.out, asked.Resync) {
				t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
			}
		})
	})
}

// healsGap makes a gap, has it healed, and waives what the archive lacks.
func healsGap(t *testing.T, heal func(w *world, d *daemon, gap string)) {
	t.Helper()
	w := newWorld(t, 551)
	w.archive = "{file: ./archive, roll: 1s}"
	w.tables = []string{"{source: Orders, target: orders, on_ttl_expiry: archive, backfill: none}"}
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "hats", "fedora", `"n":{"N":"1"}`)
	w.Put("Orders", "hats", "beret", `"n":{"N":"1"}`)
	d.settle("Orders")
	w.Clock.Advance(5 * time.Second)
	w.Call("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
	w.Put("Orders", "hats", "beret", `"n":{"N":"2"}`)
	w.Delete("Orders", "hats", "fedora")
	w.Call("UpdateTable", `{"TableName":"Orders",
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
	d.until("the new stream is a gap", func() bool { return d.table("Orders").Gaps == 1 })
	gap := w.gap()
	if gap.State != "open" || gap.Sinks["bigtable"] != "differs" || gap.Sinks["archive"] != "differs" {
		t.Errorf("%+v", gap)
	}
	w.refused(3, "is open", "gaps", "clear", gap.ID, "--sink", "archive", "--yes")
	heal(w, d, gap.ID)
	d.until("its rows are healed", func() bool {
		d.hasten(2 * time.Second)
		return d.table("Orders").State == "gap"
	})
	if out := w.ok("gaps", "list"); !strings.Contains(out, "archive incomplete since") {
		t.Error(out)
	}
	w.refused(2, "items that expired between", "gaps", "clear", gap.ID, "--sink", "archive")
	w.refused(2, "lacks nothing", "gaps", "clear", gap.ID, "--sink", "elsewhere", "--yes")
	if s, ok := d.status(); !ok || s.Ready {
		t.Error("ready although the archive is incomplete")
	}
	if out := w.ok("gaps", "clear", gap.ID, "--sink", "archive", "--yes"); !strings.Contains(out, "waived for archive") {
		t.Error(out)
	}
	if gap = w.gap(); gap.State != "healed" || gap.Sinks["archive"] != "waived" {
		t.Errorf("%+v", gap)
	}
	d.until("it is ready", func() bool { s, ok := d.status(); return ok && s.Ready })
	for _, args := range [][]string{{"gaps", "heal"}, {"repair", "--gaps"}} {
		if out := w.ok(args...); !strings.Contains(out, "No gaps to heal") {
			t.Errorf("%v: %s", args, out)
		}
	}
	d.settle("Orders")
	d.stop()
	w.Equal("Orders")
}

// listed is a gap as `gaps list --json` prints it.
type listed struct {
	ID, State string
	Sinks     map[string]string
}

// gap returns the only gap.
func (w *world) gap() (g listed) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.ok("gaps", "list", "--json")), &g); err != nil {
		w.t.Fatal(err)
	}
	return g
}
