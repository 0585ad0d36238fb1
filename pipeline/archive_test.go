package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/transform"
)

// shelf is an archive that fails when it is told to.
type shelf struct {
	mu     sync.Mutex
	down   bool
	tries  int
	events map[string]int // by subject
}

func (s *shelf) Write(_ context.Context, events []*transform.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries++; s.down {
		return errors.New("the shelf is away")
	}
	for _, e := range events {
		s.events[e.Subject]++
	}
	return nil
}

func (s *shelf) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.tries = down, 0
}

func (s *shelf) seen() (tries, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries, len(s.events)
}

var _ pipeline.Archive = (*shelf)(nil)

func TestArchiveThatFailsLosesNoEvent(t *testing.T) {
	w := newWorld(t)
	s := &shelf{events: map[string]int{}}
	w.archive, w.onTTL = s, "archive"
	w.createTable("Orders")
	w.post("UpdateTimeToLive", `{"TableName":"Orders","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}`)
	r := w.start("Orders")
	s.set(true)
	for i := range 20 {
		w.put("Orders", "p", fmt.Sprint(i), fmt.Sprintf(`"expires":{"N":"%d"}`, w.clock.Now().Unix()))
	}
	w.delete("Orders", "p", "0") // not by its time to live
	r.until("they are read", func() bool { return r.table("Orders").Changes == 21 })
	w.clock.Advance(time.Minute)
	w.tables.ExpireNow(w.clock.Now())
	r.until("the archive was tried, again and again", func() bool { tries, _ := s.seen(); return tries >= 3 })
	if st := r.table("Orders"); st.State != "halted" {
		t.Errorf("state %q while the archive is away, want halted", st.State)
	}
	r.until("Bigtable goes on", func() bool { return len(r.stored("Orders")) == 0 })
	if err := r.stop(); err != nil { // what was not archived must be after the next start
		t.Fatal(err)
	}
	s.set(false)
	r = w.start("Orders")
	r.settle()
	want := map[string]int{}
	for subject := range s.events {
		want[subject] = 1
	}
	if _, n := s.seen(); n != 19 {
		t.Errorf("%d items were archived, want 19", n)
	}
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("each once (-want +got):\n%s", diff)
	}
}
