package apply

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

const archivesInRow = `
families: {d: {max_versions: 1}, arch: {max_versions: 1}}
rules:
- name: all
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: v, to: "d:v"}]
  on_ttl_expiry: "archive:arch"
`

// Bigtable refuses a deletion by TTL, which would have archived the item's cells. A resync of the
// absent item would delete the last copy: the letter comes first, and while it is refused nothing
// is written.
func TestResyncKeepsTheLastCopyOfAnExpiredItem(t *testing.T) {
	x := newTable(t, func(x *table) { x.mapping = archivesInRow })
	l := x.begin()
	l.Put("Orders", "p", "a", `"v":{"S":"last"},"ttl":{"N":"1790000000"}`)
	l.settle()
	x.Bigtable.Faults.RefuseRow([]byte("p#a"), codes.InvalidArgument, 4) // the change and its first retry, each twice
	l.expire()
	l.settle()
	if n := len(l.storedLetters()); n != 1 {
		t.Fatalf("%d letters, want that of the deletion", n)
	}
	out := l.resync(l.readLater("p", "a"))
	if out.Refused == nil || !strings.Contains(out.Refused.Reason, l.storedLetters()[0]) || len(out.LettersLeft) != 1 {
		t.Errorf("behind a letter that is refused: %+v", out)
	}
	if cells := l.stored()["p#a"]; len(cells) != 1 || !strings.Contains(cells[0], "last") {
		t.Fatalf("the last copy is gone: %v", cells)
	}
	out = l.resync(l.readLater("p", "a"))
	if out.Refused != nil || out.LettersApplied != 1 || len(l.storedLetters()) != 0 {
		t.Errorf("%+v", out)
	}
	cells := l.stored()["p#a"]
	if len(cells) != 1 || !strings.HasPrefix(cells[0], "arch:") || !strings.Contains(cells[0], "last") {
		t.Errorf("cells %v, want the archived one", cells)
	}
}
