package apply

import (
	"strings"
	"testing"
	"time"
)

// refusedItem is an item that class D refuses, and that both the stream and a copy meet.
const refusedItem = `"at":{"S":"one"},"n":{"N":"1.5"},"v":{"S":"x"}`

// copyItem resyncs the item as a copy does, twice: a copy reads a page again after a crash.
func (l *owner) copyItem(pk, sk string) {
	l.t.Helper()
	for range 2 {
		item := l.readLater(pk, sk)
		item.Copy, item.First = "c.1", true
		if out := l.resync(item); out.Refused == nil || !out.Lettered {
			l.t.Fatalf("the refused item of a copy: %+v", out)
		}
	}
}

// mended has the application mend the item, and retries its letter.
func (l *owner) mended(pk, sk string) {
	l.t.Helper()
	l.Put("Orders", pk, sk, `"at":{"S":"two"},"n":{"N":"2"},"v":{"S":"x"}`)
	l.settle()
	out := l.resync(l.readLater(pk, sk))
	if n := len(l.storedLetters()); out.Refused != nil || n != 0 || l.letters.Count() != 0 {
		l.t.Errorf("%+v, %d letters are left and %d counted", out, n, l.letters.Count())
	}
	l.equal()
}

// One refused item makes one letter, also where its change was refused before a copy reads it.
func TestCopyOfALetteredItemMakesNoSecondLetter(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	l := x.begin()
	l.Put("Orders", "p", "a", refusedItem)
	l.settle()
	before := l.storedLetters()
	l.copyItem("p", "a")
	if after := l.storedLetters(); len(before) != 1 || len(after) != 1 || after[0] != before[0] {
		t.Errorf("letters %v before and %v after the copy, want the change's alone", before, after)
	}
	l.mended("p", "a")
}

// The change of an item that a copy could not write is refused as well: its letter stands for both.
func TestLetterOfAChangeTakesThePlaceOfACopys(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	for _, sk := range []string{"a", "b"} {
		x.Put("Orders", "p", sk, refusedItem)
	}
	x.Stream.Trim(x.Clock.Now().Add(time.Hour))
	l := x.begin()
	l.settle()
	l.copyItem("p", "a")
	l.copyItem("p", "b")
	if ids := l.storedLetters(); len(ids) != 2 {
		t.Fatalf("letters %v, want one of the copy for each item", ids)
	}
	l.Put("Orders", "p", "a", strings.Replace(refusedItem, "one", "two", 1))
	l.settle()
	ids := l.storedLetters()
	of := 0
	for _, id := range ids {
		if strings.HasPrefix(id, "copy/") {
			of++
		}
	}
	if len(ids) != 2 || of != 1 || l.letters.Count() != 2 {
		t.Errorf("letters %v (%d counted), want the change's, and the copy's of the other item", ids, l.letters.Count())
	}
	counted := 0
	for _, n := range l.letters.Codes() {
		counted += n
	}
	if counted != 2 {
		t.Errorf("%v, want two letters", l.letters.Codes())
	}
	l.copyItem("p", "a")
	if ids := l.storedLetters(); len(ids) != 2 {
		t.Errorf("letters %v after the copy has read the item again", ids)
	}
	l.Delete("Orders", "p", "b")
	l.settle()
	l.resync(l.readLater("p", "b"))
	l.mended("p", "a")
}
