package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/heartbeat"
)

func withHeartbeats(o *Options) { o.Heartbeats = map[string]heartbeat.Keys{"Tab": {Prefix: "_tr#"}} }

// TestHeartbeatsAreInNothingThatIsRead: scans, items by key and pages of the stream; items of the
// user under the prefix are in all of them, and no heartbeat replaces one.
func TestHeartbeatsAreInNothingThatIsRead(t *testing.T) {
	w := newWorld(t, withHeartbeats)
	info := createTable(t, w.testSource, "Tab")
	const users = 7
	for i := range users {
		w.put(t, "Tab", i)
	}
	if _, err := w.tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &info.Name,
		Item: map[string]dbtypes.AttributeValue{
			"pk": &dbtypes.AttributeValueMemberS{Value: "_tr#1"}, "n": &dbtypes.AttributeValueMemberN{Value: "0"},
		}}); err != nil {
		t.Fatal(err)
	}
	for key := range 3 {
		err := w.WriteHeartbeat(t.Context(), &info, fmt.Sprintf("_tr#%d", key))
		if taken := errors.Is(err, ErrNotHeartbeat); err != nil && !taken || taken != (key == 1) {
			t.Fatalf("heartbeat %d: %v", key, err)
		}
	}
	if err := w.MayWriteHeartbeats(t.Context(), &info, "_tr#9"); err != nil {
		t.Fatal(err)
	}
	items := 0
	for page, err := range w.Scan(t.Context(), "Tab", 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		items += len(page.Items)
	}
	if items != users+1 {
		t.Errorf("a scan finds %d items, want %d of users", items, users+1)
	}
	keys := [][]byte{[]byte(`{"pk":{"S":"_tr#0"},"n":{"N":"0"}}`), []byte(`{"pk":{"S":"_tr#1"},"n":{"N":"0"}}`)}
	batch, err := w.ReadItems(t.Context(), "Tab", keys)
	if err != nil || batch.Items[0] != nil || batch.Items[1] == nil {
		t.Errorf("by their keys: %s %v", batch.Items, err)
	}
	records, heartbeats := readWhole(t, w, info)
	if records != users+1 || heartbeats != 2 {
		t.Errorf("the stream has %d records and %d heartbeats, want %d and 2", records, heartbeats, users+1)
	}
}

// readWhole reads all open shards until they are empty, and checks that each page begins where the
// log ends: pages without records are in no log.
func readWhole(t *testing.T, w *world, info TableInfo) (records, heartbeats int) {
	t.Helper()
	l, err := w.List(t.Context(), info.StreamARN)
	if err != nil {
		t.Fatal(err)
	}
	for _, sh := range l.Shards {
		r := w.NewReader(w.start(info, sh.ID, 0))
		var pos change.Position
		clock := change.Version(0)
		for empty := 0; empty < 3; {
			p := next(t, r)
			if p.From != pos || p.ClockFrom != clock {
				t.Fatalf("page from %v at %d, the log is at %v, %d", p.From, p.ClockFrom, pos, clock)
			}
			if len(p.Records) > 0 {
				pos, clock = p.To, p.Clock
			}
			if records, heartbeats = records+len(p.Records), heartbeats+len(p.Heartbeats); p.Newest() == 0 {
				empty++
			}
			p.Release()
		}
		r.Close()
	}
	return records, heartbeats
}
