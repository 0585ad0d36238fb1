package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
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
