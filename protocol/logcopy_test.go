package protocol

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func TestJudgeLog(t *testing.T) {
	made := time.Unix(1_790_000_000, 5)
	a, b := checkpoint.HashOf([]byte("a")), checkpoint.HashOf([]byte("b"))
	n := &LogNote{Created: made, Seq: 100, Hash: a}
	for name, c := range map[string]struct {
		note *LogNote
		seen LogSeen
		want LogCopy
	}{
		"nothing noted":                          {nil, LogSeen{Created: made, Last: 3}, LogUnjudged},
		"a note about an earlier log":            {n, LogSeen{Created: made.Add(1), Last: 3}, LogUnjudged},
		"the noted entry is the newest":          {n, LogSeen{made.UTC(), 1, 100, true, a}, LogWhole},
		"the log went on":                        {n, LogSeen{made, 90, 200, true, a}, LogWhole},
		"it was trimmed behind the entry":        {n, LogSeen{made, 150, 200, false, checkpoint.Hash{}}, LogWhole},
		"the server lost the entry by itself":    {n, LogSeen{made, 1, 100, false, checkpoint.Hash{}}, LogWhole},
		"it ends before the entry":               {n, LogSeen{made, 1, 99, false, checkpoint.Hash{}}, LogBehind},
		"an older copy was filled up just to it": {n, LogSeen{made, 1, 100, true, b}, LogForked},
		"an older copy was filled up beyond it":  {n, LogSeen{made, 1, 300, true, b}, LogForked},
	} {
		if got := JudgeLog(c.note, c.seen); got != c.want || got.Older() != (c.want >= LogBehind) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
