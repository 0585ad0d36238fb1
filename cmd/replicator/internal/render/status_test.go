package render

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
)

// TestSentenceNamesWhatIsNotCopiedYet: everything that the stream shows may be applied while old items are missing.
func TestSentenceNamesWhatIsNotCopiedYet(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	const start = "Everything written before 2023-09-10 14:03:21 is in Bigtable"
	const end = ". 0 gaps, 0 dead letters, 0.0 s of retention left."
	for clause, tables := range map[string][]pipeline.TableStatus{
		"": {{State: "running"}, {State: "paused"}},
		", except older items that are still to be copied": {{State: "running"}, {State: "copying"},
			{State: "paused", Copy: &resync.Progress{}}},
		", except what the lost log held": {{State: "recovering"}, {State: "running"}},
	} {
		for i := range tables {
			tables[i].Proof, tables[i].AppliedThrough = "proven", &at
		}
		if got := Sentence(pipeline.Status{Tables: tables}, time.UTC); got != start+clause+end {
			t.Errorf("%s", strings.TrimPrefix(got, start))
		}
	}
}
