package pipeline_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
)

// classes are mappings of each kind that a resync treats in its own way.
var classes = map[string]string{
	"own rows":          "", // R
	"rows by attribute": movingRows,
	"named columns": ` # K
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  segments: escape
  cells: [{attr: a, to: "d:{s}/a"}, {attr: b, to: "d:{s}/b"}, {attr: v, to: "d:{s}/v"}]
`,
	"shared rows": sharedRows, // D
	"index rows": `
families: {d: {max_versions: 1}, x: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
  index:
  - {name: by_v, row: "v#{v}#{p}#{s}", cells: [{const: "0x01", to: "x:k"}]}
`,
	"histories": `
families: {d: {max_versions: 3}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  segments: escape
  cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]
`,
}

// losses are ways in which changes are lost before they are read. Each calls lose between.
var losses = map[string]func(r *run, lose func()) *run{
	"trimmed": func(r *run, lose func()) *run {
		r.kill()
		lose()
		r.clock.Advance(26 * time.Hour)
		r.streams.Trim(r.clock.Now().Add(-24 * time.Hour))
		return r.restart("Orders")
	},
	"shard gone": func(r *run, lose func()) *run {
		r.kill()
		lose()
		r.streams.Rotate("Orders")
		r.streams.Rotate("Orders")
		r.clock.Advance(49 * time.Hour)
		r.streams.Sweep()
		return r.restart("Orders")
	},
	// Attack 55: the clocks of the lost changes are as high as those of the new stream.
	"stream enabled again": func(r *run, lose func()) *run {
		r.clock.Advance(5 * time.Second)
		r.post("UpdateTable", `{"TableName":"Orders","StreamSpecification":{"StreamEnabled":false}}`)
		lose()
		r.post("UpdateTable",
			`{"TableName":"Orders","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`)
		return r
	},
}

// kill ends the pipeline without a drain.
func (r *run) kill() {
	r.t.Helper()
	_ = r.stop()
}

// pause is the pace of a test's load, and of its readers: up to a second when they outrun the
// pipeline.
func (w *world) pause(ctx context.Context, pace time.Duration) {
	began := time.Now()
	for waits := true; waits; waits = w.load.outruns(w.clock.Now()) && time.Since(began) < 800*time.Millisecond {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
	}
}

// load is what a test does beside a pipeline, in turns. On a busy machine one of a fixed pace would
// leave the pipeline no time to catch up, ever.
type load struct {
	mu    sync.Mutex
	run   *run        // the newest one
	turns []time.Time // the newest ones, on the service's clock
}

// outruns reports whether so many turns are not applied yet that the next one should wait; if not,
// it is taken. Behind a gap nothing counts as applied.
func (x *load) outruns(now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.turns) == 100 && x.run != nil {
		through, ok := x.run.p.AppliedThrough()
		if ok && !through.After(x.turns[0]) && now.Sub(through) < time.Hour {
			return true
		}
	}
	x.turns = append(x.turns[max(0, len(x.turns)-99):], now)
	return false
}

// of notes the run that the load is beside.
func (x *load) of(r *run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.run = r
}

// pace is the usual one of a load.
const pace = 40 * time.Millisecond

// gapsOfTable returns the ids of the gaps of a table.
func (r *run) gapsOfTable() (ids []string) {
	for _, g := range r.fold("Orders").Gaps {
		ids = append(ids, g.ID())
	}
	return ids
}

var allGaps = flag.Bool("gaps.all", false, "heal each kind of gap for mappings of each class; else each class once")

// TestGapOfEachKindIsHealedForEachClass: while an application writes, and under a reader that polls
// all the time.
func TestGapOfEachKindIsHealedForEachClass(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(losses))
	histories := len(classes)
	if *allGaps {
		histories *= len(kinds)
	}
	c := newChances(t, histories, len(classes)*len(kinds), nil,
		"the service denies a shard: looking for confirmation", "gap: records were lost before they were read",
		"the table's stream was disabled and enabled again: changes in between are lost",
		"gaps are accepted, and the whole table is resynced because of them", "the whole table is resynced and equal",
		"begin again from the stored state")
	for i, class := range slices.Sorted(maps.Keys(classes)) {
		for k, loss := range kinds {
			if !*allGaps && k != i%len(kinds) {
				continue
			}
			t.Run(class+", "+loss, func(t *testing.T) {
				long(t, "5 s")
				w := newWorld(t)
				c.watch(w)
				c.end(w.healGap(class, loss))
			})
		}
	}
}

// healGap loses changes of a table, and has the gap healed. It returns what healed it.
func (w *world) healGap(class, loss string) *run {
	w.mapping, w.onGap = classes[class], "heal"
	w.createTable("Orders")
	r, p := w.start("Orders"), &pairs{w: w}
	for i := range 30 {
		p.put(fmt.Sprint("p", i%7), fmt.Sprint(i))
	}
	p.put("w0", "0")
	r.settle()
	r = losses[loss](r, func() {
		for i := range 30 {
			switch pk, sk := fmt.Sprint("p", i%7), fmt.Sprint(i); i % 5 {
			case 0:
				w.delete("Orders", pk, sk)
			case 1:
				p.put(pk, sk)
			case 2:
				w.delete("Orders", pk, sk)
				w.put("Orders", pk, sk, `"other":{"S":"x"},"v":{"S":"v0"}`)
			case 3:
				p.put(pk, fmt.Sprint("new", i))
			}
		}
	})
	x := r.watch()
	stop := p.keepWriting()
	r.hastenUntil("gaps are being healed", func() bool {
		if r.table("Orders").State != "healing" {
			return false
		}
		s := r.fold("Orders")
		return s.Resync != nil && len(s.Resync.Gaps) > 0
	})
	r.hastenUntil("the gaps are healed", func() bool {
		if r.table("Orders").State == "healing" {
			return false
		}
		s := r.fold("Orders")
		return s.Resync == nil && s.OpenGaps() == 0 && s.DiffersSince() == 0
	})
	stop()
	r.settle()
	x.stop()
	r.equal()
	r.ready()
	r.checkHealed(class)
	return r
}

// TestGapOverColumnsWithoutAnInverseIsHealedButForThem: in a gap an attribute changes its type,
// which is in the name of its column. The old cell stays, and no guard shows whose it is: the gap
// is healed, and its note names what is left.
func TestGapOverColumnsWithoutAnInverseIsHealedButForThem(t *testing.T) {
	w := newWorld(t)
	w.mapping, w.onGap = `
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  segments: escape
  cells:
  - {attrs: all, except: [pk, sk], to: "d:{s}/{attr}/{type}"}
`, "heal"
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "p", "1", `"x":{"N":"1"}`)
	w.put("Orders", "p", "2", `"x":{"N":"1"}`)
	r.settle()
	r = losses["trimmed"](r, func() { w.put("Orders", "p", "1", `"x":{"S":"one"}`) })
	r.hastenUntil("the gap is healed", func() bool {
		s := r.fold("Orders")
		return len(s.Gaps) > 0 && s.OpenGaps() == 0 && s.Resync == nil
	})
	note := r.fold("Orders").Gaps[0].Healed[checkpoint.SinkBigtable].Note
	if !strings.Contains(note, "not checked: 1 cell ") || !strings.Contains(note, "rule any") {
		t.Errorf("the note of the healed gap is %q", note)
	}
	after, ghost := r.stored("Orders")["p"], `d:"1/x/N"`
	if !slices.ContainsFunc(after, func(c string) bool { return strings.Contains(c, ghost) }) {
		t.Fatalf("no ghost of the old type is left, so nothing was shown: %v", after)
	}
	after = slices.DeleteFunc(after, func(c string) bool { return strings.Contains(c, ghost) })
	if want := r.projected("Orders")["p"]; !slices.Equal(after, want) {
		t.Errorf("row p: %v, want %v", after, want)
	}
}

// TestSecondGapInTheMiddleOfAResync: what was read before it may be older than what it lost, so the
// table is read again. Bigtable is away when it is found.
func TestSecondGapInTheMiddleOfAResync(t *testing.T) {
	long(t, "5 s")
	w := newWorld(t)
	w.onGap, w.mapping = "heal", sharedRows
	pages, release := w.countScans(), w.holdScans(4)
	defer release()
	p, r := w.prepareLoss()
	lose := func() { losses["stream enabled again"](r, p.loseMore) }
	lose()
	r.hastenUntil("half of the table is read", func() bool { return len(pages()) >= 4 })
	first := r.fold("Orders").Resync.ID
	lose()
	w.front.Faults.Outage(0)
	p.put("p1", "away")
	r.until("Bigtable is missed", func() bool { return r.metric("tailrace_bigtable_retries_total") > 0 })
	w.front.Faults.Recover()
	r.hastenUntil("both gaps are being healed", func() bool {
		s := r.fold("Orders")
		return s.Resync != nil && s.Resync.ID != first && len(s.Resync.Gaps) == 2
	})
	release()
	r.healed()
	for _, g := range r.fold("Orders").Gaps {
		if _, healed := g.Healed["bigtable"]; !healed {
			t.Errorf("%+v", g)
		}
	}
	if n := pages()[0]; n < 2 {
		t.Errorf("the first part was read %d times for two gaps", n)
	}
}

// checkHealed looks at what the log says about the gaps.
func (r *run) checkHealed(class string) {
	r.t.Helper()
	s := r.fold("Orders")
	for i := range s.Gaps {
		g := &s.Gaps[i]
		h, healed := g.Healed["bigtable"]
		if !healed || !g.Accepted {
			r.t.Errorf("gap %s is not healed: %+v", g.ID(), g)
		}
		if class == "histories" && !strings.Contains(h.Note, "histories") {
			r.t.Errorf("the note %q does not say what a history lacks", h.Note)
		}
	}
	if res := s.LastResync.Result; res.Written < 1 {
		r.t.Errorf("nothing was repaired: %+v", res)
	}
}

// TestDamageInTheLogIsHealed: what the damaged frame held is in the table.
func TestDamageInTheLogIsHealed(t *testing.T) {
	long(t, "8 s")
	w := newWorld(t)
	w.opts = func(o *pipeline.Options) { o.Periods.Shutdown = 10 * time.Second } // the last fifth is for the snapshot
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "deleted", "1", `"v":{"S":"x"}`)
	w.changeItems("Orders", 25, 50)
	r.settle()
	before := r.table("Orders").Changes
	w.front.Faults.Outage(0)
	w.delete("Orders", "deleted", "1")
	r.until("the change is in the log", func() bool { return r.table("Orders").Changes == before+1 })
	w.put("Orders", "kept", "1", `"v":{"S":"kept"}`)
	r.until("the next change is in the log", func() bool { return r.table("Orders").Changes == before+2 })
	r.kill()
	w.front.Faults.Recover()
	w.spoil(w.frame("Orders", before+1))
	w.onGap = "heal"
	r = w.restart("Orders")
	r.hastenUntil("the damage is a gap that heals", func() bool {
		p := r.fold("Orders").Resync
		return p != nil && len(p.Gaps) > 0
	})
	r.healed()
}

// TestArchiveOfAHealedGapStaysNamed: a comparison of the table brings Bigtable back, and no
// archival event.
func TestArchiveOfAHealedGapStaysNamed(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.archive, w.onTTL, w.onGap = &archiving.Place{Subject: &flakyArchive{events: map[string]int{}}}, "archive", "heal"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	for i := range 30 {
		w.put("Orders", fmt.Sprint("p", i%7), fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.settle()
	r.kill()
	w.loseChanges()
	r = w.restart("Orders")
	r.hastenUntil("the rows are healed", func() bool {
		if r.table("Orders").State == "healing" {
			return false
		}
		s := r.fold("Orders")
		return len(s.Gaps) > 0 && s.OpenGaps() == 0 && s.Resync == nil
	})
	r.settle()
	r.equal()
	s := r.fold("Orders")
	for i := range s.Gaps {
		if sinks := s.DifferingSinks(&s.Gaps[i]); len(sinks) != 1 || sinks[0] != "archive" {
			t.Errorf("gap %d: %v differ, want the archive alone", i, sinks)
		}
	}
	if ready, _ := r.p.Ready(); ready || r.table("Orders").State != "gap" {
		t.Errorf("ready %v, state %q: what the archive lacks is forgotten", ready, r.table("Orders").State)
	}
	for _, id := range r.gapsOfTable() {
		r.control("Orders", &checkpoint.Control{Waive: &checkpoint.Waive{Gap: id, Sink: "archive"}, By: "test"})
	}
	r.ready()
}

// Attack 40: expired items are kept on purpose; the source cannot tell them from deleted ones.
func TestExpiredItemsAreKeptWhenAGapIsHealed(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	w.onTTL, w.onGap = "keep", "heal"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	expires := w.clock.Now().Add(time.Hour).Unix()
	for i := range 10 {
		w.put("Orders", "mortal", fmt.Sprint(i), fmt.Sprintf(`"v":{"N":"1"},"expires":{"N":"%d"}`, expires))
		w.put("Orders", "immortal", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.settle()
	before := r.stored("Orders")
	r.kill()
	w.clock.Advance(2 * time.Hour)
	w.tables.ExpireNow(w.clock.Now())
	w.delete("Orders", "immortal", "3")
	w.put("Orders", "immortal", "4", `"v":{"N":"2"}`)
	w.clock.Advance(26 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
	r = w.restart("Orders")
	r.hastenUntil("the gaps are healed", func() bool {
		if r.table("Orders").State == "healing" {
			return false
		}
		s := r.fold("Orders")
		return len(s.Gaps) > 0 && s.OpenGaps() == 0 && s.Resync == nil
	})
	r.settle()
	after := r.stored("Orders")
	for row := range before {
		if strings.HasPrefix(row, "mortal") && strings.Join(after[row], " ") != strings.Join(before[row], " ") {
			t.Errorf("expired row %q: %v, want %v", row, after[row], before[row])
		}
	}
	for row, cells := range r.projected("Orders") {
		if strings.Join(after[row], " ") != strings.Join(cells, " ") {
			t.Errorf("row %q: %v, want %v", row, after[row], cells)
		}
	}
	g := r.fold("Orders").Gaps[0]
	if h := g.Healed["bigtable"]; !strings.Contains(h.Note, "kept") {
		t.Errorf("the note is %q", h.Note)
	}
}
