package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	sandbigtable "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

// differences is a shared row with columns of the item's own: class D.
const differences = `
mapping: 1
segments: escape
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells:
  - {attr: n, to: "e:{s}", as: int64}
  - {attrs: all, except: [pk, sk, n], to: "d:{s}/{attr}"}
`

// busy writes items of one row at a rate. Each write adds an attribute and takes one away, so a
// difference that is applied to another state leaves a cell behind.
type busy struct {
	*owner
	items int
	every time.Duration
	n     int
}

func (b *busy) write(n string) {
	b.t.Helper()
	for i := range b.items {
		b.n++
		b.Put("Orders", "p", fmt.Sprint("item", i), fmt.Sprintf(`"n":{"N":%q},"a%d":{"S":"%d"}`, n, b.n%7, b.n))
	}
	b.Clock.Advance(b.every)
}

// writeFor writes for a time.
func (b *busy) writeFor(d time.Duration) {
	b.t.Helper()
	for range int(d / b.every) {
		b.write(fmt.Sprint(b.n))
	}
}

// Attack 91: a refused change of an item that is written all the time. Each change behind it is a
// dead letter, and at each reading there are letters of the last minute. One retry drains them,
// with changes after the reading or without, and the next change is applied to what is there.
func TestBusyItemLeavesTheDeadLettersInOneRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		every time.Duration
		items int
		after time.Duration // how long the writer goes on after the reading
	}{
		"each second":                    {time.Second, 1, 6 * time.Second},
		"four times a second":            {time.Second / 4, 1, 6 * time.Second},
		"several items of a row":         {time.Second, 3, 6 * time.Second},
		"nothing after the reading":      {time.Second, 2, 0},
		"within the reading's second":    {time.Second / 4, 1, time.Second / 4},
		"for a minute after the reading": {time.Second, 1, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTable(t, func(x *table) { x.mapping = differences })
			b := &busy{owner: x.begin(), items: tt.items, every: tt.every}
			b.writeFor(5 * time.Second)
			b.settle()
			b.write("1.5")
			b.settle() // refused, and not united with the changes behind it
			b.writeFor(75 * time.Second)
			b.settle()
			before := len(b.storedLetters())
			if least := int(75 * time.Second / tt.every); before < least*tt.items {
				t.Fatalf("%d letters, want one of each change since the refused one", before)
			}
			var read []*ResyncItem
			for i := range tt.items {
				read = append(read, b.read("p", fmt.Sprint("item", i)))
			}
			b.writeFor(tt.after)
			b.settle()
			for i, item := range read {
				out := b.resync(item)
				if out.Refused != nil || len(out.LettersLeft) > 0 || out.LettersWaiting > 0 {
					t.Errorf("item %d: %+v", i, out)
				}
			}
			b.equal()
			b.writeFor(3 * time.Second)
			b.settle()
			b.equal()
			if codes := b.letters.Codes(); codes != nil {
				t.Errorf("letters are left by their codes: %v", codes)
			}
			if ids := b.storedLetters(); len(ids) > 0 || b.letters.Count() != 0 {
				t.Errorf("%d of %d letters are left, %d counted", len(ids), before, b.letters.Count())
			}
		})
	}
}

// Where the rows hold a change of the last minute, the put is skipped, and what is there is not
// what was read: the letters stay, and the outcome has the time from which on one retry drains
// them.
func TestLettersWaitUntilAReadingIsAboveTheRows(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = differences })
	b := &busy{owner: x.begin(), items: 1, every: time.Second}
	b.writeFor(5 * time.Second)
	b.write("1.5")
	b.Until("it is a letter", func() bool { return len(b.storedLetters()) == 1 }) // to settle would take service time
	b.writeFor(10 * time.Second)
	item := b.read("p", "item0") // within a minute of the row's newest change
	b.writeFor(8 * time.Second)
	b.settle()
	before := len(b.storedLetters())
	out := b.resync(item)
	if len(b.storedLetters()) != before || len(out.LettersLeft) == 0 || out.LettersUntil == 0 {
		t.Fatalf("%d of %d letters after a retry in the first minute: %+v", len(b.storedLetters()), before, out)
	}
	if wait := out.LettersUntil - item.Requested; wait <= 0 || wait > ResyncMargin {
		t.Errorf("it takes %d ms more, want up to a minute", wait)
	}
	for change.MillisOf(b.Clock.Now()) < out.LettersUntil+1000 {
		b.write(fmt.Sprint(b.n))
	}
	item = b.read("p", "item0")
	b.writeFor(8 * time.Second)
	b.settle()
	if out = b.resync(item); len(b.storedLetters()) > 0 || out.LettersUntil != 0 {
		t.Errorf("%d letters are left at the time that was told: %+v", len(b.storedLetters()), out)
	}
	b.equal()
}

// TestLettersStayOverAPutThatWasNotAnswered: the second attempt of the put finds its own version in
// the row. The row may hold what was read, so an earlier letter would take it back.
func TestLettersStayOverAPutThatWasNotAnswered(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = differences })
	b := &busy{owner: x.begin(), items: 1, every: time.Second}
	b.writeFor(3 * time.Second)
	b.settle()
	b.write("1.5")
	b.settle()
	b.writeFor(70 * time.Second)
	item := b.read("p", "item0") // before it settles, which takes service time
	b.settle()
	b.Bigtable.Faults.Next(sandbigtable.Ambiguous, 1)
	out := b.resync(item)
	if out.Skipped != 1 || out.Written != 0 || out.Refused != nil || out.LettersWaiting == 0 {
		t.Errorf("after a put that was not answered: %+v", out)
	}
	for _, id := range b.storedLetters() {
		if l, err := b.letters.stored.Get(t.Context(), id); err != nil || l.Attempts > 0 {
			t.Errorf("letter %s was tried %d times: %v", id, l.Attempts, err)
		}
	}
	b.resync(b.readLater("p", "item0"))
	b.equal()
}

// A letter that was dropped by hand leaves a hole: what was read is not what the next letter
// changed. A difference would be applied to a state that it does not fit, so the letters stay until
// a reading is above them.
func TestLettersBehindADroppedOneAreNotApplied(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = differences })
	b := &busy{owner: x.begin(), items: 1, every: time.Second}
	b.writeFor(3 * time.Second)
	b.settle()
	b.write("1.5")
	b.settle()
	b.writeFor(70 * time.Second)
	item := b.read("p", "item0") // before it settles, which takes service time
	b.settle()
	known := map[string]bool{}
	for _, id := range b.storedLetters() {
		known[id] = true
	}
	b.write("7") // the change behind the reading, which is dropped
	b.settle()
	for _, id := range b.storedLetters() {
		if !known[id] {
			if err := b.letters.stored.Drop(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.untilMoving("it is forgotten", func() bool { return b.letters.Count() == len(known) })
	b.write("8")
	b.settle()
	if out := b.resync(item); len(out.LettersLeft)+out.LettersWaiting == 0 {
		t.Errorf("%+v: the letter behind the dropped one was applied", out)
	}
	b.resync(b.readLater("p", "item0"))
	b.equal()
	if n := len(b.storedLetters()); n > 0 {
		t.Errorf("%d letters are left", n)
	}
}
