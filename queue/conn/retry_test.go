package conn

import (
	"testing"
	"time"
)

// TestPauseGrowsWithoutAnAnswerOnly: a command whose entry loses races against a busy owner tries
// again soon.
func TestPauseGrowsWithoutAnAnswerOnly(t *testing.T) {
	silent, lost := StorePause, StorePause
	for range 20 {
		silent, lost = Unknown.NextPause(silent), Fenced.NextPause(lost)
	}
	if silent != MostPause || lost != StorePause {
		t.Errorf("after 20 attempts: %v without an answer, want %v; %v after lost races, want %v",
			silent, MostPause, lost, StorePause)
	}
	if p := Fenced.NextPause(time.Second); p != StorePause {
		t.Errorf("%v after a lost race behind silence, want %v", p, StorePause)
	}
}
