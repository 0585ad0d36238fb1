package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/archive"
)

// flakyArchive is an archive that fails on demand.
type flakyArchive struct {
	mu     sync.Mutex
	down   error
	tries  int
	large  string         // a text in events that are too large; "": none is
	events map[string]int // by id
}

func (s *flakyArchive) Write(_ context.Context, messages []archive.Message) (refused []archive.Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries++; s.down != nil {
		return nil, s.down
	}
	for _, m := range messages {
		if s.large != "" && bytes.Contains(m.Body, []byte(s.large)) {
			refused = append(refused, m)
			continue
		}
		s.events[m.ID]++
	}
	return refused, nil
}

// fail makes every later write return down; with nil they succeed.
func (s *flakyArchive) fail(down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.tries = down, 0
}

// take lets no event be too large.
func (s *flakyArchive) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.large = ""
}

// resetTries counts the tries from now on.
func (s *flakyArchive) resetTries() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = 0
}

// counts returns how many writes were tried and how many different items were archived.
func (s *flakyArchive) counts() (tries, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries, len(s.events)
}

func TestArchiveThatFailsLosesNoEvent(t *testing.T) {
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}}
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	s.fail(errors.New("the archive is broken"))
	for i := range 20 {
		w.put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	}
	w.delete("Orders", "p", "0") // not by its time to live
	r.until("they are read", func() bool { return r.table("Orders").Changes == 21 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("the archive was tried, again and again", func() bool { tries, _ := s.counts(); return tries >= 3 })
	r.until("the sink is halted meanwhile", func() bool { return len(r.table("Orders").Halts) == 1 })
	r.until("Bigtable goes on", func() bool { return len(r.stored("Orders")) == 0 })
	if err := r.stop(); err != nil { // what was not archived must be after the next start
		t.Fatal(err)
	}
	s.fail(nil)
	r = w.start("Orders")
	r.settle()
	r.until("all are archived", func() bool { _, n := s.counts(); return n >= 19 })
	want := map[string]int{}
	for id := range s.events {
		want[id] = 1
	}
	if _, n := s.counts(); n != 19 {
		t.Errorf("%d items were archived, want 19", n)
	}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("each once (-want +got):\n%s", diff)
	}
}

// The archive may publish to the server that keeps the log: its errors look like those of an append
// whose outcome is unknown.
func TestArchiveThatIsAwayHaltsOnlyItself(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}}
	s.fail(fmt.Errorf("publish archival event: %w", nats.ErrNoResponders))
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	w.put("Orders", "p", "0", fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	r.until("it is read", func() bool { return r.table("Orders").Changes == 1 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("the archive is halted", func() bool { return r.table("Orders").HaltSink == "archive.subject" })
	if st := r.table("Orders"); st.State != "running" || r.metric("tailrace_table_halted") != 0 ||
		r.metric("tailrace_sink_halted") != 1 || r.p.Status().Verdict.State != status.StateSinkHalted {
		t.Errorf("the table is %s, and all is %+v", st.State, r.p.Status().Verdict)
	}
	s.resetTries()
	for i := range 20 {
		w.put("Orders", "q", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.until("Bigtable has what came meanwhile", func() bool { return len(r.stored("Orders")) == 20 })
	r.until("the archive was tried again and again", func() bool { tries, _ := s.counts(); return tries >= 4 })
	unknown, halted := w.logged.FilterMessageSnippet("outcome unknown"), w.logged.FilterMessageSnippet("halt the table")
	if n := unknown.Len() + halted.Len(); n > 0 {
		t.Errorf("the life of the table ended %d times", n)
	}
	st := r.table("Orders")
	why := st.Halts["archive.subject"]
	if st.Code != "away" || len(st.Halts) != 1 || !strings.Contains(why, "no responders") {
		t.Errorf("halts %v, code %q", st.Halts, st.Code)
	}
	s.fail(nil)
	r.until("the halt is over", func() bool { return len(r.table("Orders").Halts) == 0 })
	if _, n := s.counts(); n != 1 {
		t.Errorf("%d items were archived, want 1", n)
	}
	r.settle()
	r.equal()
}

// TestEventThatIsTooLargeForTheSubject is a dead letter until it is retried; the others go on.
func TestEventThatIsTooLargeForTheSubject(t *testing.T) {
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}, large: "much"}
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	for sk, v := range map[string]string{"0": "little", "1": "much"} {
		w.put("Orders", "p", sk, fmt.Sprintf(`"expires":{"N":"%d"},"v":{"S":%q}`, w.clock.Now().Unix(), v))
	}
	r.until("they are read", func() bool { return r.table("Orders").Changes == 2 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("one is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	r.until("one is published", func() bool { _, n := s.counts(); return n == 1 })
	if st := r.table("Orders"); len(st.Halts) > 0 {
		t.Errorf("halts %v", st.Halts)
	}
	if out := r.answered(r.ask(request.Letters, itemOf("p", "1"))); out.Refused != 1 || out.Applied != 0 ||
		!strings.Contains(fmt.Sprint(out.Notes), "max_payload") {
		t.Errorf("it is still too large: %+v", out)
	}
	s.take()
	if out := r.answered(r.ask(request.Letters, itemOf("p", "1"))); out.Refused != 0 || out.Applied != 1 {
		t.Errorf("it is taken: %+v", out)
	}
	r.until("the letter is gone", func() bool { return r.table("Orders").DeadLetters == 0 })
	if _, n := s.counts(); n != 2 {
		t.Errorf("%d events are published", n)
	}
	r.settle()
	r.equal()
}

func TestEndOfOneSinksHaltLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}}
	s.fail(errors.New("the archive is broken"))
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	w.front.Faults.RefuseRow([]byte("bad#1"), codes.NotFound, -1)
	w.put("Orders", "p", "0", fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	w.put("Orders", "bad", "1", `"v":{"N":"1"}`)
	halts := func() string { return strings.Join(slices.Sorted(maps.Keys(r.table("Orders").Halts)), " ") }
	r.until("Bigtable is halted", func() bool { return halts() == "bigtable" })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("both sinks are halted", func() bool { return halts() == "archive.subject bigtable" })
	w.front.Faults.Calm()
	r.until("Bigtable is well again", func() bool { return halts() == "archive.subject" })
	if ready, why := r.p.Ready(); ready || !strings.Contains(strings.Join(why, " "), "sink archive.subject is halted: ") {
		t.Errorf("ready %v: %v", ready, why)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.archive = nil // no longer configured: its halt ends with its mark
	r = w.start("Orders")
	r.settle()
	r.ready()
}

// TestLostStreamOfTheArchiveIsNamed: the table's log knows that there was one, before any object
// says so.
func TestLostStreamOfTheArchiveIsNamed(t *testing.T) {
	w := newWorld(t)
	s := &flakyArchive{events: map[string]int{}}
	s.fail(errors.New("the archive is broken"))
	w.archive, w.onTTL = &archiving.Place{Subject: s}, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	w.put("Orders", "p", "0", fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	r.until("it is read", func() bool { return r.table("Orders").Changes == 1 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("the log knows the stream with the event", func() bool {
		st := r.fold("Orders")
		return st.Expired.Head != nil && st.Expired.Head.End > 0 && st.Marks["archive"].Seq >= st.LastFrame && st.Changes == 2
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.loseArchive("Orders")
	r = w.start("Orders")
	r.until("the status names the loss", func() bool {
		a := r.table("Orders").Archive
		return a != nil && len(a.Lost) == 1 && strings.HasPrefix(a.Lost[0], "archive-stream-lost-")
	})
	if n := w.logged.FilterMessageSnippet("the archive's stream was lost").Len(); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// loseArchive deletes the archive's stream of a table while no pipeline runs.
func (w *world) loseArchive(table string) {
	w.t.Helper()
	q, err := queue.Open(w.t.Context(), queue.Options{Pipeline: "shop", Dir: w.dir}, w.log, prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	defer q.Close()
	kept, err := q.Kept(w.t.Context(), table)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range kept {
		if k.What == "archive" {
			err = q.Delete(w.t.Context(), k)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
