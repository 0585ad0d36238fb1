package pipeline_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// editLog changes the settings of the stream that is the log of Orders.
func (r *run) editLog(edit func(*jetstream.StreamConfig)) {
	r.t.Helper()
	_, js := r.js()
	for info := range js.ListStreams(r.t.Context()).Info() {
		name := info.Config.Name
		if strings.HasSuffix(name, "_letters") || strings.HasSuffix(name, "_requests") {
			continue
		}
		edit(&info.Config)
		if _, err := js.UpdateStream(r.t.Context(), info.Config); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	r.t.Fatal("the log has no stream")
}

// TestSettingThatMayLoseEntriesStopsWriting, Rule 15: while the log's stream may drop what it has
// acknowledged, its table is halted, the reason names the command that sets it right, and the table
// goes on once it is right.
func TestSettingThatMayLoseEntriesStopsWriting(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	r.editLog(func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld })
	r.until("the table is halted", func() bool {
		st := r.table("Orders")
		return st.State == "halted" && st.Code == "premise" && strings.Contains(st.Halt, "--discard=new")
	})
	if _, reasons := r.p.Ready(); strings.Count(strings.Join(reasons, "\n"), "--discard=new") != 1 {
		t.Errorf("the setting is not named once: %q", reasons)
	}
	w.changeItems("Orders", 2, 20)
	r.editLog(func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew })
	r.until("the table goes on", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
}

// TestSettingThatIsWrongMakesTheTableRed: what loses nothing is shown with its remedy, and the
// table goes on.
func TestSettingThatIsWrongMakesTheTableRed(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	shown := func() bool {
		return strings.Contains(strings.Join(r.table("Orders").Reasons, "\n"), "--max-msgs=-1")
	}
	r.editLog(func(c *jetstream.StreamConfig) { c.MaxMsgs = 1_000_000 })
	r.until("the setting is shown", shown)
	if ready, _ := r.p.Ready(); ready {
		t.Error("ready beside a limit of messages")
	}
	w.changeItems("Orders", 1, 20)
	r.until("what was written is applied", func() bool { return r.table("Orders").Changes > 0 })
	r.editLog(func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	r.until("the setting is not shown any more", func() bool { return !shown() })
	r.settle()
	r.equal()
}
