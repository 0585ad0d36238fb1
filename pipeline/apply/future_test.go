package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// A broken clock has left a guard two hours ahead: every change loses to it. The resync that names
// it replaces row and guard; what came between its reading and the replacement comes with the next
// reading.
func TestGuardInTheFutureIsReplaced(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = plain })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"N":"1"}`)
	l.settle()
	broken := change.Version(x.now()) + change.Version(2*time.Hour/time.Millisecond)
	x.forge("p", "a", `"v":{"N":"0"},"stray":{"S":"x"}`, broken)
	l.Put("Orders", "p", "a", `"v":{"N":"2"}`)
	l.settle() // it lost
	item := l.readLater("p", "a")
	if out := l.resync(item); out.Replaced || out.Skipped != 1 {
		t.Errorf("a resync that does not name the guard: %+v", out)
	}
	item.Future, item.Lead = broken+1, time.Minute
	if out := l.resync(item); out.Replaced {
		t.Errorf("another guard was replaced: %+v", out)
	}
	l.Put("Orders", "p", "a", `"v":{"N":"3"}`) // behind the reading, and lost
	l.settle()
	item.Future = broken
	if out := l.resync(item); !out.Replaced || out.Written != 1 {
		t.Fatalf("the guard in the future: %+v", out)
	}
	l.resync(l.readLater("p", "a"))
	l.equal()
	l.Put("Orders", "p", "a", `"v":{"N":"4"}`)
	l.settle()
	l.equal()
}

// forge writes an item at a version that no change has.
func (x *table) forge(pk, sk, attrs string, v change.Version) {
	x.t.Helper()
	keys := fmt.Sprintf(`"pk":{"S":%q},"sk":{"S":%q}`, pk, sk)
	c := &change.Change{
		Op: change.Insert, Version: v, Keys: []byte("{" + keys + "}"), KeyHash: change.HashKey([]byte("{" + keys + "}")),
		New: []byte("{" + keys + "," + attrs + "}"),
	}
	var w transform.Write
	if err := x.program.Change(new(change.Decoder), c, &w); err != nil {
		x.t.Fatal(err)
	}
	if err := x.client.Apply(x.t.Context(), targetTable, &w); err != nil {
		x.t.Fatal(err)
	}
}

// Letters of the last minute are above the version of the put: they are applied at their own
// versions, in order, and the item's next change too.
func TestLettersAboveThePutAreAppliedInOrder(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	l := x.begin()
	l.Put("Orders", "p", "a", `"at":{"S":"one"},"n":{"N":"1"},"v":{"S":"x"}`)
	l.settle()
	l.Clock.Advance(5 * time.Second)
	item := l.read("p", "a") // before the letters
	l.Put("Orders", "p", "a", `"at":{"S":"one"},"n":{"N":"1.5"},"v":{"S":"x"}`)
	l.settle()
	l.Put("Orders", "p", "a", `"at":{"S":"two"},"n":{"N":"2"},"v":{"S":"x"}`)
	l.settle()
	if n := len(l.storedLetters()); n != 2 {
		t.Fatalf("%d letters, want that of the fraction and the one behind it", n)
	}
	out := l.resync(item)
	if len(out.LettersLeft) != 1 || out.LettersWaiting != 1 || out.LettersApplied != 0 {
		t.Errorf("%+v: the first letter is refused, the second waits", out)
	}
	if out := l.resync(l.readLater("p", "a")); out.LettersApplied != 2 {
		t.Errorf("%+v a minute later: both are needless", out)
	}
	l.equal()
	l.Put("Orders", "p", "a", `"at":{"S":"two"},"n":{"N":"3"}`)
	l.settle()
	l.equal()
}
