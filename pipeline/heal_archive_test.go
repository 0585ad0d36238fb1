package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
)

// TestArchiveOfAGapIsHealedFromExports: items expire in a gap, before it and behind it in its time,
// and while the pipeline is away; each is archived once, and the gap is over. The owner is killed
// and goes on.
func TestArchiveOfAGapIsHealedFromExports(t *testing.T) {
	long(t, "10 s")
	w := newWorld(t)
	b, err := bucket.Open(t.Context(), "file://"+t.TempDir(), bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	w.archive = &archiving.Place{
		Objects: b, Form: object.Options{Format: object.Parquet, Pipeline: "shop"}, Once: &archiving.Once{},
		Roll: 10 * time.Millisecond, Scratch: t.TempDir(),
	}
	w.onTTL, w.onGap = "archive", "heal"
	w.exportable(0)
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	begin := w.clock.Now().Truncate(time.Second)
	put := func(name string, n int, after time.Duration) {
		for i := range n {
			w.put("Orders", name, fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, begin.Add(after).Unix()))
		}
	}
	r := w.start("Orders")
	put("read", 4, time.Minute)
	put("lost", 12, 2*time.Hour)
	put("late", 5, 5*time.Hour)
	put("kept", 3, 900*time.Hour)
	r.settle()
	w.clock.Advance(2 * time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.settle()
	r.kill()
	w.clock.Advance(3 * time.Hour)
	put("short", 2, 3*time.Hour) // not in the windows' begin, and not in their end
	w.delete("Orders", "kept", "0")
	w.tables.ExpireNow(w.clock.Now())
	w.clock.Advance(3 * time.Hour)
	w.tables.ExpireNow(w.clock.Now())
	w.clock.Advance(20 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-21 * time.Hour)) // late is given by the stream
	r = w.restart("Orders")
	healed := func() bool {
		s := r.fold("Orders")
		return r.table("Orders").State != "healing" && len(s.Gaps) > 0 && s.OpenGaps() == 0 && s.Resync == nil
	}
	r.hastenUntil("the rows are healed", healed)
	end := w.clock.Now()
	w.clock.Advance(20 * time.Minute)
	middle := begin.Add(4 * time.Hour)
	filter := ""
	window := func(from, to time.Time) string {
		return "s3://backups/" + w.export("Orders", 2, fmt.Sprintf(`,"ExportType":"INCREMENTAL_EXPORT",`+
			`"IncrementalExportSpecification":{"ExportFromTime":%d,"ExportToTime":%d,"ExportViewType":"NEW_AND_OLD_IMAGES"}`,
			from.Unix(), to.Unix())+filter)
	}
	filter = `,"FilterSpecification":{"FilterExpression":"sk < :half","ExpressionAttributeValues":{":half":{"S":"6"}}}`
	half := &request.HealOrder{Gaps: r.gapsOfTable(), Exports: []string{
		window(begin.Add(30*time.Second), middle), window(middle, end.Add(5*time.Minute)),
	}}
	filter = ""
	bad := &request.Chunk{ID: request.NewID() + "-0", What: request.Heal, By: "test", Asked: w.clock.Now(), Heal: half}
	if err := r.requests("Orders").Ask(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	answers := make(chan *request.Outcome, 1)
	go func() {
		out, err := r.requests("Orders").Await(t.Context(), bad.ID)
		if err != nil {
			out = &request.Outcome{Failed: err.Error()}
		}
		answers <- out
	}()
	refused := (*request.Outcome)(nil)
	r.hastenUntil("filtered windows are refused", func() bool {
		select {
		case refused = <-answers:
		default:
		}
		return refused != nil
	})
	if !strings.Contains(refused.Failed, "not whole: it was made with FilterExpression") || refused.Hint == "" {
		t.Fatalf("filtered windows: %+v", refused)
	}
	if s := r.fold("Orders"); s.DiffersSince() == 0 {
		t.Fatalf("filtered windows healed the gaps: %+v", s.Gaps)
	}
	// The first begins behind the puts.
	order := &request.HealOrder{Gaps: r.gapsOfTable(), Exports: []string{
		window(begin.Add(30*time.Second), middle), window(middle, end.Add(5*time.Minute)),
	}}
	c := &request.Chunk{ID: request.NewID() + "-0", What: request.Heal, By: "test", Asked: w.clock.Now(), Heal: order}
	if err := r.requests("Orders").Ask(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.kill()
	r = w.restart("Orders")
	r.hastenUntil("the archive is healed", func() bool { return r.fold("Orders").DiffersSince() == 0 })
	out, err := r.requests("Orders").Await(t.Context(), c.ID)
	if err != nil || out.Failed != "" {
		t.Fatalf("%+v, %v", out, err)
	}
	if n := out.Healed; n.Events != 12 || n.Known < 5 || n.Alive != 1 {
		t.Errorf("%+v", n)
	}
	s := r.fold("Orders")
	for i := range s.Gaps {
		if note := s.Gaps[i].Healed[checkpoint.SinkArchive].Note; note == "" {
			t.Errorf("gap %d: the archive's part has no note: %+v", i, s.Gaps[i])
		}
	}
	want := map[string]int{}
	for class, names := range map[string]map[string]int{"ttl": {"read": 4, "late": 5}, "healed": {"lost": 12}} {
		for name, n := range names {
			for i := range n {
				want[fmt.Sprintf(`%s {"pk":{"S":"%s"},"sk":{"S":"%d"}}`, class, name, i)] = 1
			}
		}
	}
	var got map[string]int
	r.hastenUntil("as many events are in objects", func() bool {
		got = w.objects(b)
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events in objects (-want +got):\n%s", diff)
	}
	r.settle()
	r.ready()
}

// objects returns the events of all objects, by class and key.
func (w *world) objects(b bucket.Bucket) map[string]int {
	w.t.Helper()
	all := map[string]int{}
	for x, err := range b.List(w.t.Context(), layout.Table("Orders")) {
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := b.Open(w.t.Context(), x.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for e, err := range object.Read(r, r.Size()) {
			if err != nil {
				w.t.Fatal(err)
			}
			all[string(e.Class)+" "+e.Subject]++
		}
		_ = r.Close()
	}
	return all
}
