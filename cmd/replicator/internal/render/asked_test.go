package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestRetryTellsWhenALetterCanBeTriedAgain: its item is mended, so there is nothing else to do.
func TestRetryTellsWhenALetterCanBeTriedAgain(t *testing.T) {
	now := time.Now().UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), 0, 28, 20, 0, time.UTC)
	notes := []request.Note{{Letter: "ab12", Code: "int64", Reason: "n is no integer", Until: at}}
	line := RetriedOf(1, &request.Outcome{Refused: 1, Waiting: 2, Later: 3, Until: at})
	var out strings.Builder
	line.Print(&out, notes, nil)
	for _, want := range []string{"0 applied, 0 refused again, 3 too new to be deleted yet.\n",
		"ab12: n is no integer (int64); its item is mended: try again at 00:28:20Z",
		"next: try again at 00:28:20Z", "--wait", "3 letters"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "mend the mapping") {
		t.Errorf("%q: nothing is left to mend", out.String())
	}
	b, err := json.Marshal(line)
	if err != nil || !strings.Contains(string(b), `"later":3,"retry_at":"`) {
		t.Errorf("%s, %v", b, err)
	}

	line.Refused = 2 // and another item is not mended
	out.Reset()
	line.Print(&out, append(notes, request.Note{Letter: "cd34", Code: "int64", Reason: "n is no integer"}), nil)
	for _, want := range []string{"0 applied, 1 refused again, 3 too new", "cd34: n is no integer (int64)\n",
		"mend the mapping"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
	if b, _ := json.Marshal(RetriedOf(1, &request.Outcome{Applied: 1})); strings.Contains(string(b), "retry_at") {
		t.Errorf("%s: there is no time to wait for", b)
	}
}

// TestTimesOfAnotherDayHaveTheirDate: a burst may have run a shard's clock hours ahead.
func TestTimesOfAnotherDayHaveTheirDate(t *testing.T) {
	at := time.Now().UTC().AddDate(0, 0, 1)
	if got := ClockTime(at); !strings.HasPrefix(got, at.Format("2006-01-02 15:04:05")) {
		t.Errorf("%q", got)
	}
}
