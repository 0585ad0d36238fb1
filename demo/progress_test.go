package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
)

// A replicator that starts shows no changes of logs that it has not read yet: the sum must not
// fall, or the next one would look like a burst.
func TestChangesOfADemoNeverFall(t *testing.T) {
	s := &Stage{old: &Old{}, writer: &Writer{}, gallery: &Gallery{}, began: time.Now()}
	for _, c := range []struct{ seen, want uint64 }{{500, 500}, {0, 500}, {700, 700}} {
		tables := []pipeline.TableStatus{{State: "running", Changes: c.seen}}
		if p := s.progress(&pipeline.Status{Tables: tables}); p.Changes != c.want {
			t.Errorf("%d changes of a status with %d, want %d", p.Changes, c.seen, c.want)
		}
	}
}

// TestLagIsShownOnceItIsMeasured: before the first probe there is none, not one of -1 ms.
func TestLagIsShownOnceItIsMeasured(t *testing.T) {
	for lag, want := range map[float64]string{-1: "lag         –", 0: "lag      0 ms", 1730.4: "lag   1730 ms"} {
		if line := (&Progress{Lag: lag}).String(); !strings.Contains(line, want+"  ") {
			t.Errorf("%v ms: %q, want %q", lag, line, want)
		}
	}
}

// A demo on a full disk waits for room. It prints one line when the wait begins and one when it
// ends.
func TestPauseOfTheReadingIsSaid(t *testing.T) {
	const why = "the volume of ./log has 1 MiB left for the logs"
	var said []string
	s := &Stage{o: Options{Say: func(line string) { said = append(said, line) }}}
	for _, reason := range []string{"", why, why + " now", "", ""} {
		p := &Progress{}
		tables := []pipeline.TableStatus{{State: "running"}, {State: "running", PauseReason: reason}}
		status := &pipeline.Status{Tables: tables}
		status.Ready = true
		p.sum(status)
		if paused := p.State == "reading pauses"; paused != (reason != "") || p.Pauses != reason {
			t.Errorf("%q: %+v", reason, p)
		}
		s.notePause(p.Pauses)
	}
	if want := []string{"reading pauses: " + why, "reading goes on"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
