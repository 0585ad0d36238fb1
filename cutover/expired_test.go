package cutover_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/cutover"
)

// An item that Bigtable lacks is deleted by TTL behind the fence, before both sides are compared:
// no scan sees it, and there is no row of it. The table held it at the fence, so the certificate
// would say that it is in Bigtable.
func TestItemThatExpiresBehindTheFenceIsCompared(t *testing.T) {
	w := newWorld(t, 925, "")
	w.Call("UpdateTimeToLive",
		`{"TableName":"Orders","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":true}}`)
	w.d = w.Run()
	w.put(2, "1")
	expires := w.Clock.Now().Add(5 * time.Minute)
	w.Put("Orders", "hats", "expired", fmt.Sprintf(`"expires":{"N":"%d"}`, expires.Unix()))
	w.d.Settle()
	w.unplant("hats#expired")

	_, _, err := w.cutover(cutover.Options{})
	if why := refusal(t, err); !strings.Contains(why, "1 item differs") {
		t.Fatalf("before it expires: %s", why)
	}
	w.Clock.Advance(5 * time.Minute)
	if n := w.DynamoDB.ExpireNow(w.Clock.Now()); n != 1 {
		t.Fatalf("TTL has deleted %d items", n)
	}
	if err := os.RemoveAll(w.Config.Scratch); err != nil { // a process on another machine goes on
		t.Fatal(err)
	}
	_, said, err := w.cutover(cutover.Options{})
	if err == nil {
		t.Fatalf("it is certified:\n%s", said)
	}
	if why := refusal(t, err); !strings.Contains(why, "1 item differs") {
		t.Errorf("behind the fence: %s", why)
	}
}
