package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// An attribute that only class D knows how to refuse.
const picky = `
families: {d: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{at}"
  cells:
  - {attr: n, to: "d:n/{s}", as: int64}
  - {attr: v, to: "d:v/{s}"}
`

// A refused change makes its item dirty, so that later changes become letters too. A resync makes
// all of its rows true, also the one that it left behind a lost move, and drops the letters; the
// next change is applied.
func TestResyncClearsADirtyItem(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	l := x.begin()
	item := func(at, n string) {
		l.Put("Orders", "p", "a", fmt.Sprintf(`"at":{"S":%q},"n":{"N":%q},"v":{"S":"x"}`, at, n))
	}
	item("one", "1")
	l.settle()
	item("two", "1.5") // refused
	l.settle()
	item("three", "3") // dirty
	l.settle()
	if n := len(l.storedLetters()); n != 2 {
		t.Fatalf("%d letters, want that of the fraction and the one behind it", n)
	}
	if l.letters.Since().IsZero() {
		t.Error("since when there are letters is not known")
	}
	out := l.resync(l.readLater("p", "a"))
	if out.Refused != nil || out.LettersApplied != 2 || len(l.storedLetters()) != 0 {
		t.Errorf("%+v, and %v are left", out, l.storedLetters())
	}
	l.equal()
	item("four", "4")
	l.settle()
	l.equal()
	if n := l.letters.Count(); n != 0 {
		t.Errorf("%d letters after the resync", n)
	}
}

// Letters that the put makes needless go after it. Where it fails they stay, and the item stays
// dirty: a difference would be applied to rows that it does not fit.
func TestLettersStayUntilThePutIsDurable(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	l := x.begin()
	for _, attrs := range []string{`"at":{"S":"one"},"n":{"N":"1"}`, `"at":{"S":"one"},"n":{"N":"1.5"}`,
		`"at":{"S":"one"},"n":{"N":"3"}`} {
		l.Put("Orders", "p", "a", attrs)
		l.settle()
	}
	before := l.storedLetters()
	item := l.readLater("p", "a")
	x.Bigtable.Faults.RefuseRow([]byte("p#one"), codes.PermissionDenied, 1)
	if _, err := l.sink.Resync(t.Context(), item); err == nil {
		t.Fatal("the put was not refused")
	}
	if after := l.storedLetters(); len(before) != 2 || len(after) != 2 {
		t.Errorf("letters %v before and %v after a put that failed, want both", before, after)
	}
	l.Put("Orders", "p", "a", `"at":{"S":"one"},"v":{"S":"x"}`) // a difference to what Bigtable lacks
	l.settle()
	if n := len(l.storedLetters()); n != 3 {
		t.Errorf("%d letters, want three: the item is dirty", n)
	}
	if out := l.resync(l.readLater("p", "a")); out.LettersApplied != 3 {
		t.Errorf("%+v", out)
	}
	l.equal()
}

// A letter of a copy is not the item's: the application fixes the item, and the fix is applied.
func TestLetterOfACopyDoesNotRefuseTheFix(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = picky })
	x.Put("Orders", "p", "a", `"at":{"S":"one"},"n":{"N":"1.5"},"v":{"S":"x"}`)
	x.Stream.Trim(x.Clock.Now().Add(time.Hour))
	l := x.begin()
	l.settle()
	item := l.readLater("p", "a")
	item.Copy, item.First = "c.1", true
	out := l.resync(item)
	if !out.Lettered || out.Refused == nil || out.Refused.Code == "" {
		t.Fatalf("the refused item of a copy: %+v", out)
	}
	again := l.readLater("p", "a")
	again.Copy, again.First = "c.1", true
	l.resync(again)
	ids := l.storedLetters()
	if len(ids) != 1 || !strings.HasPrefix(ids[0], "copy/c_1/") {
		t.Fatalf("letters %v, want one of the copy", ids)
	}
	l.Put("Orders", "p", "a", `"at":{"S":"two"},"n":{"N":"2"},"v":{"S":"x"}`)
	l.settle()
	l.equal()
	if ids := l.storedLetters(); len(ids) != 1 {
		t.Fatalf("letters %v after the fix, want the copy's", ids)
	}
	if out := l.resync(l.readLater("p", "a")); out.LettersApplied != 1 || len(l.storedLetters()) != 0 {
		t.Errorf("%+v, and %v are left", out, l.storedLetters())
	}
}

// The dead letters of an item are found by its key's hash, without a walk over the others.
func TestLettersAreKnownByItem(t *testing.T) {
	items := map[uint64]*letteredItem{}
	l := &DeadLetters{items: items, codes: map[string]int{}, tooOld: map[string]bool{}}
	for i, id := range []string{"c", "a", "b"} {
		addLetter(items, 7,
			letterRef{id: id, sink: checkpoint.SinkBigtable, version: change.Version(3 - i), dirty: id != "b"})
	}
	addLetter(items, 7, letterRef{id: "archived", sink: checkpoint.SinkArchive, version: 9})
	var ids []string
	for _, ref := range l.of(7, false) {
		ids = append(ids, ref.id)
	}
	if !slices.Equal(ids, []string{"b", "a", "c"}) || len(l.of(7, true)) != 4 || len(l.of(8, true)) != 0 {
		t.Errorf("letters %v, want Bigtable's in version order", ids)
	}
	if l.isDirty(7, 1) || !l.isDirty(7, 2) {
		t.Error("the item is dirty from its first dirty letter on, at version 2")
	}
	l.update(7, []string{"a"}, func(ref *letterRef) { ref.dirty = false })
	if l.isDirty(7, 2) || !l.isDirty(7, 3) {
		t.Error("the item is dirty from version 3 on")
	}
	l.update(7, []string{"a", "b", "c", "archived"}, nil)
	if len(items) != 0 {
		t.Error("an item without letters is kept")
	}
}
