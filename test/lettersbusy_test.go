package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// pickyRows is a mapping of shared rows in which an item has columns of its own, and which refuses
// an attribute n that is no integer.
const pickyRows = `mapping: 1
segments: escape
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: item
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells:
  - {attr: n, to: "e:{s}", as: int64}
  - {attrs: all, except: [pk, sk, n], to: "d:{s}/{attr}"}
`

// refusedOnce runs a daemon whose table has the dead letter of a refused change, and that of a
// change behind it which has mended the item.
func (w *world) refusedOnce() *daemon {
	w.t.Helper()
	w.shareRows()
	w.write("orders.yaml", pickyRows)
	w.prepare("Orders")
	w.Put("Orders", "p", "s", `"n":{"N":"1"},"b":{"N":"1"}`)
	w.Put("Orders", "p", "other", `"n":{"N":"1"}`)
	d := w.run()
	d.settle("Orders")
	for i, n := range []string{"1.5", "2"} {
		w.Put("Orders", "p", "s", fmt.Sprintf(`"n":{"N":%q}`, n))
		d.until("it is a letter", func() bool { return d.table("Orders").DeadLetters == i+1 })
	}
	return d
}

// TestRetryOfAMendedItemTellsWhenToTryAgain, and waits for it when it is asked to.
func TestRetryOfAMendedItemTellsWhenToTryAgain(t *testing.T) {
	w := newWorld(t, 811)
	d := w.refusedOnce()
	r := w.command("dlq", "retry", "--all")
	if r.code != 4 || !strings.Contains(r.out, "its item is mended: try again at ") ||
		!strings.Contains(r.out, "next: try again at ") || strings.Contains(r.out, "mend the mapping") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	r = w.command("dlq", "retry", "--all", "--json")
	if r.code != 4 || !strings.Contains(r.out, `"later":2`) || !strings.Contains(r.out, `"retry_at":"`) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	r = d.hastened("dlq", "retry", w.listLetters()[0].ID, "--wait")
	if r.code != 0 || !strings.Contains(r.err, "waiting until ") || !strings.Contains(r.out, "2 applied, 0 refused") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
	d.until("the letters are gone", func() bool { return d.table("Orders").DeadLetters == 0 })
	w.Put("Orders", "p", "s", `"c":{"N":"3"}`)
	d.settle("Orders")
	d.checkClean()
	w.Equal("Orders")
}

// TestItemThatIsWrittenEachSecondIsRetriedOnce: each of its changes is a dead letter behind the
// refused one, and while the retry runs there are new ones.
func TestItemThatIsWrittenEachSecondIsRetriedOnce(t *testing.T) {
	w := newWorld(t, 812)
	d := w.refusedOnce()
	n := 2
	writing := func(what string, over func() bool) {
		t.Helper()
		d.until(what, func() bool {
			if through := d.table("Orders").AppliedThrough; through != nil && w.Clock.Now().Sub(*through) < 4*time.Second {
				w.Clock.Advance(time.Second)
				n++
				w.Put("Orders", "p", "s", fmt.Sprintf(`"n":{"N":"%d"},"a%d":{"N":"1"}`, n, n%3))
			}
			return over()
		})
	}
	writing("it is written for 75 seconds", func() bool { return n > 77 })
	if letters := d.table("Orders").DeadLetters; letters < 60 {
		t.Fatalf("%d dead letters, want one of nearly each change", letters)
	}
	out, errs, ended, code := w.background("dlq", "retry", "--all")
	writing("the command ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if code() != 0 || !strings.Contains(out.String(), " 0 refused") {
		t.Errorf("exit %d: %s%s", code(), out.String(), errs.String())
	}
	last := n + 5
	writing("it is written on", func() bool { return n > last })
	d.settle("Orders")
	d.until("no letter is left", func() bool { return d.table("Orders").DeadLetters == 0 })
	d.checkClean()
	w.Equal("Orders")
}
