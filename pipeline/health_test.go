package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
)

// Scripts count the reasons of a status, also where the daemon's own answer is printed.
func TestStatusWithoutReasonsHasAnEmptyList(t *testing.T) {
	s := Summarize("shop", []TableStatus{{Source: "Orders"}})
	s.Fail(nil)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Ready || !strings.Contains(string(text), `"failing":[],"reasons":[]`) {
		t.Errorf("ready %t, %s, want ready, and lists without members", s.Ready, text)
	}
	if s.Fail([]string{"NATS fails"}); s.Ready || len(s.Reasons) != 1 || len(s.Failing) != 1 {
		t.Errorf("%+v, want not ready, because NATS fails", s)
	}
}

// A loop that has not published for six claims stands still; a table that is not owned may be silent.
func TestLoopThatStandsStillIsNotLive(t *testing.T) {
	o := Options{Tables: []Table{{Source: "Orders"}}, Periods: Periods{ClaimTTL: time.Second}}
	p := New(o, nil, &queue.Queue{}, nil, nil, zap.NewNop(), nil)
	v := p.tables[0].view
	for _, tt := range []struct {
		silent time.Duration
		owning bool
		live   bool
	}{{5 * time.Second, true, true}, {7 * time.Second, true, false}, {7 * time.Second, false, true}} {
		v.seen.Store(&observed{lookedAt: time.Now().Add(-tt.silent)})
		v.owning.Store(tt.owning)
		if err := p.Live(); (err == nil) != tt.live {
			t.Errorf("silent for %s, owning %t: %v, want live %t", tt.silent, tt.owning, err, tt.live)
		}
	}
}
