package demo

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
)

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
