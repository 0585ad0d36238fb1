package apply

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// refuse has Bigtable refuse a row until what change does has become a dead letter.
func (l *owner) refuse(row string, change func()) {
	l.t.Helper()
	before := len(l.storedLetters())
	l.Bigtable.Faults.RefuseRow([]byte(row), codes.InvalidArgument, -1)
	change()
	l.untilMoving("it is a dead letter", func() bool { return len(l.storedLetters()) > before })
	l.Bigtable.Faults.Calm()
	l.settle()
}

// Class K: a removal that takes its whole row along was refused, and other items have written to
// the row since. Applied now it would delete what they wrote, which no change writes again.
func TestOlderLetterDoesNotWipeARowThatOthersWroteSince(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = cascade })
	l := x.begin()
	l.Put("Orders", "1", "Video", `"title":{"S":"t"}`)
	l.settle()
	l.refuse("v#1", func() { l.Delete("Orders", "1", "Video") })
	l.Put("Orders", "1", "Comment#1", `"text":{"S":"later"}`)
	l.settle()
	for range 2 { // and it stays so
		out := l.resync(l.readLater("1", "Video"))
		if len(out.LettersLeft) != 1 || out.LettersLeft[0].Code != codeCascade || out.LettersApplied != 0 {
			t.Errorf("the removal is retried: %+v", out)
		}
		l.equal()
	}
	if rows := l.stored(); len(rows) != 1 || !strings.Contains(rows["v#1"][0], "later") {
		t.Errorf("rows %v, want the comment's", rows)
	}
}

const histories = `
families: {d: {max_versions: 1}, h: {max_versions: 5, removed: keep}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells:
  - {attr: v, to: "d:v"}
  - {attr: n, to: "h:n"}
`

// A letter of what outlives its item: a put of the item makes only its newest version true, so the
// letter of an older one is not made needless by it. It is applied, or it stays.
func TestLetterOfWhatOutlivesItsItemIsAppliedOrStays(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = histories })
	l := x.begin()
	put := func(n string) { l.Put("Orders", "p", "a", `"v":{"S":"`+n+`"},"n":{"S":"`+n+`"}`) }
	put("one")
	l.settle()
	l.refuse("p#a", func() { put("two") })
	l.refuse("p#a", func() { put("three") })
	item := l.readLater("p", "a")
	x.Bigtable.Faults.RefuseRow([]byte("p#a"), codes.InvalidArgument, -1)
	out := l.resync(item)
	x.Bigtable.Faults.Calm()
	if n := len(l.storedLetters()); n != 2 || len(out.LettersLeft) != 2 {
		t.Fatalf("%d letters behind a try in which all is refused, want 2: %+v", n, out)
	}
	out = l.resync(l.readLater("p", "a"))
	if out.LettersApplied != 2 || len(l.storedLetters()) != 0 {
		t.Errorf("%+v, and %v are left", out, l.storedLetters())
	}
	if got := l.history("p#a"); got != "three two one" {
		t.Errorf("the history is %q", got)
	}
}

// history returns the values of a row's column of histories, the newest first.
func (l *owner) history(row string) string {
	l.t.Helper()
	var values []string
	views := []bigtable.View{{Family: "h", Versions: 5}}
	err := l.client.Rows(l.t.Context(), targetTable, row, row+"\x00", views, func(r *bigtable.Row) error {
		for _, c := range r.Cells {
			values = append(values, string(c.Value))
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.Join(values, " ")
}
