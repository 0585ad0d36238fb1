package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

func TestVerdictIsOneSentence(t *testing.T) {
	price := verify.CellDifference{Kind: verify.Value, Row: []byte("r"), Family: "d", Qualifier: []byte("price"),
		Entry: "attrs: all → d:{attr}", ByAttributes: true,
		Have: &verify.Content{Bytes: 2, Value: []byte("12")}, Want: &verify.Content{Bytes: 2, Value: []byte("13")}}
	gone := verify.CellDifference{Kind: verify.Stale, Row: []byte("old")}
	differs := &verify.Verdict{Status: verify.Different, Cells: []verify.CellDifference{price}}
	two := &verify.Verdict{Status: verify.Different, Cells: []verify.CellDifference{gone, price}}
	equal := &verify.Verdict{Status: verify.Equal}
	const dead = "no replicator owns table T"
	stopped := obstacle{why: dead}
	for _, c := range []struct {
		f        facts
		data     bool
		status   Status
		sentence string
	}{
		{facts{retired: "table T: its replication was retired"}, false, NotStarted,
			"not compared: table T: its replication was retired."},
		{facts{notStarted: true}, false, NotStarted, "not started: nothing of the table was ever replicated."},
		{facts{seen: equal}, false, Equal, "equal."},
		{facts{seen: equal, absent: true}, false, Equal,
			"equal: the table has no such item, and Bigtable holds nothing of it."},
		{facts{seen: equal, obstacle: stopped}, false, Equal,
			"equal; what is written from now on does not arrive: no replicator owns table T."},
		{facts{seen: &verify.Verdict{Status: verify.EqualByLog}, proven: true}, false, EqualByLog,
			"equal by the log: the item changes all the time, and its rows are what the log says."},
		{facts{seen: &verify.Verdict{Status: verify.Kept, Kept: 2, Why: "on_ttl_expiry: keep"}}, false, Kept,
			"equal: the table has no such item, and 2 cells of it may remain (on_ttl_expiry: keep)."},
		{facts{seen: differs, pending: 3, moving: true, eta: 2 * time.Second}, false, Behind,
			"the row is 3 changes behind: applied in about 2 s."},
		{facts{seen: differs, pending: 1}, false, Behind, "the row is 1 change behind, and Bigtable has applied nothing " +
			"for some seconds: `replicator status` says what fails."},
		{facts{seen: differs, pending: 1, obstacle: stopped}, false, Behind,
			"the row is 1 change behind, and nothing is applied: no replicator owns table T."},
		{facts{seen: differs, logged: true, rowsAsLogged: true, obstacle: stopped, why: dead}, false, Behind, "the row is " +
			"behind: it is as the log says, the item has changed since, and nothing is read: no replicator owns table T."},
		{facts{seen: differs, proven: true}, false, Different, "different: cell d:price differs, and nothing is pending."},
		{facts{seen: differs, proven: true}, true, Different,
			"different: cell d:price is 12, the item says 13, and nothing is pending."},
		{facts{seen: two, proven: true, letters: 2, letter: "ab"}, true, Different,
			"different: row old still holds the item, which should not be in it (and 1 other difference), and nothing is " +
				"pending; 2 dead letters of it are open: `replicator dlq show ab`."},
		{facts{seen: differs, logged: true, asLogged: true, why: dead}, false, Different,
			"different: cell d:price differs, and nothing is pending: the newest change of the item in the log is applied."},
		{facts{seen: differs, logged: true, asLogged: true, letters: 1, letter: "ab", why: dead}, false, Unproven,
			"unproven: cell d:price differs, and nothing proves that no change is on its way: no replicator owns table T; " +
				"1 dead letter of it is open: `replicator dlq show ab`."},
		{facts{seen: differs, logged: true, obstacle: stopped, why: dead}, false, Unproven,
			"unproven: cell d:price differs, and the item has changed since its newest change in the log: " + dead + "."},
		{facts{seen: differs, why: dead, requests: 1}, false, Unproven,
			"unproven: cell d:price differs, and nothing proves that no change is on its way: no replicator owns table T; " +
				"1 request for it is waiting."},
		{facts{seen: &verify.Verdict{Status: verify.Unproven, Why: "it changed each time"}, proven: true}, false, Unproven,
			"unproven: it changed each time."},
		{facts{seen: differs, refused: "no rule (no_rule)"}, false, Refused,
			"refused: the mapping does not take the item: no rule (no_rule)."},
		{facts{why: "Access denied."}, false, Unproven, "unproven: the rows could not be compared: Access denied."},
		{facts{why: "no route"}, false, Unproven, "unproven: the rows could not be compared: no route."},
	} {
		c.f.names = &names{data: c.data}
		v := c.f.verdict()
		if v.Status != c.status || v.Sentence != c.sentence {
			t.Errorf("%s: %q, want %s: %q", v.Status, v.Sentence, c.status, c.sentence)
		}
	}
}

// TestVerdictNamesTheNextStep: a verdict that is not good has a next step; a good one has none
// unless something is in the way.
func TestVerdictNamesTheNextStep(t *testing.T) {
	differs := &verify.Verdict{Status: verify.Different}
	stopped := obstacle{"no replicator owns table T", "start `replicator run`"}
	fence := obstacle{"table T is fenced for a cutover", "`replicator status`"}
	const key = `{"pk":{"S":"it's"}}`
	for _, c := range []struct {
		f    facts
		want string
	}{
		{facts{seen: &verify.Verdict{Status: verify.Equal}}, ""},
		{facts{seen: &verify.Verdict{Status: verify.Equal}, obstacle: stopped}, stopped.next},
		{facts{notStarted: true}, "`replicator run` begins with the table"},
		{facts{seen: differs, proven: true, table: "T", key: key}, "find out what wrote it, then `" +
			`echo '{"pk":{"S":"it'\''s"}}' | replicator repair --table T --keys -` + "`"},
		{facts{seen: differs, proven: true, table: "T"},
			"find out what wrote it, then `replicator repair --table T --keys FILE`"},
		{facts{seen: differs, proven: true, fenced: true, obstacle: fence}, fence.next},
		{facts{seen: differs, proven: true, letters: 1, letter: "ab"},
			"mend what the letter names, then `replicator dlq retry ab`"},
		{facts{seen: differs, pending: 1, obstacle: stopped}, stopped.next},
		{facts{seen: differs, pending: 1, moving: true, eta: time.Second}, ""},
		{facts{seen: differs, why: stopped.why, next: stopped.next}, stopped.next},
		{facts{refused: "no rule", letters: 1, letter: "ab"},
			"mend the item in DynamoDB, or the mapping; then `replicator dlq retry ab`"},
		{facts{refused: "no rule"}, "mend the item in DynamoDB, or the mapping (`replicator mapping diff`)"},
	} {
		c.f.names = &names{}
		if v := c.f.verdict(); v.Next != c.want {
			t.Errorf("%s: next %q, want %q", v.Sentence, v.Next, c.want)
		}
	}
	if v := together(nil, 2, 0); !strings.Contains(v.Next, "--delete-foreign") {
		t.Errorf("foreign cells: next %q", v.Next)
	}
}

func TestVerdictOfARowIsThatOfItsWorstItem(t *testing.T) {
	items := func(all ...Status) (out []RowItem) {
		for _, s := range all {
			out = append(out, RowItem{Verdict: Verdict{Status: s}})
		}
		return out
	}
	for _, c := range []struct {
		items            []RowItem
		foreign, unknown int
		good             bool
		sentence         string
	}{
		{items(Equal, Kept), 0, 0, true, "equal: 2 items are equal, and every cell has an owner."},
		{nil, 0, 0, true, "equal: no item of ours is in the row, and nothing in it is foreign."},
		{nil, 2, 0, false, "different: 2 cells are foreign."},
		{items(Unproven, Different, Equal), 0, 0, false,
			"different: 1 item is different, 1 item is unproven, and 1 item is equal."},
		{items(Equal), 0, 1, false, "unproven: 1 cell is of an unknown owner, and 1 item is equal."},
		{items(Refused, Behind), 0, 0, false, "refused: 1 item is refused by the mapping, 1 item is behind."},
		{items(Behind), 0, 0, true, "behind: 1 item is behind."},
	} {
		if v := together(c.items, c.foreign, c.unknown); v.Sentence != c.sentence || v.Good() != c.good {
			t.Errorf("%q, good %v, want %q", v.Sentence, v.Good(), c.sentence)
		}
	}
}

// TestColumnNamesShowNoData: a column named by an attribute's name is shown, one that is named by a
// value is not.
func TestColumnNamesShowNoData(t *testing.T) {
	n := &names{}
	for entry, want := range map[transform.Entry]string{
		{Text: "attrs: all → d:{attr}", ByAttributes: true}: "q",
		{Text: "attrs: all → d:{attr} ({sk})"}:              hidden(1), // whatever the text looks like
		{Text: "attrs: all → d:{attr}"}:                     hidden(1),
		{}:                                                  hidden(1),
	} {
		if got := n.column([]byte("r"), "d", []byte("q"), entry); got != want {
			t.Errorf("%+v: %q, want %q", entry, got, want)
		}
	}
}

// TestChangeIsPendingUntilAllRowsHaveIt: an owner that dies between two rows of an item leaves the
// change in one of them. The next owner applies it to the other one, so the item is behind and not
// different.
func TestChangeIsPendingUntilAllRowsHaveIt(t *testing.T) {
	right := func(guard, deleted change.Version) StoredRow {
		return StoredRow{Wanted: guard > 0, Guard: guard, Deleted: deleted}
	}
	wrong := func(guard change.Version) StoredRow {
		return StoredRow{Wanted: true, Guard: guard, differs: true}
	}
	h := &history{above: []position{{seq: 7, version: 20}, {seq: 9, version: 30}}}
	for name, c := range map[string]struct {
		rows    []StoredRow
		pending int
		last    uint64
	}{
		"no row":                      {nil, 2, 9},
		"neither row":                 {[]StoredRow{wrong(10), right(10, 0)}, 2, 9},
		"both rows":                   {[]StoredRow{right(30, 0), right(30, 0)}, 0, 0},
		"one of two":                  {[]StoredRow{right(30, 0), wrong(20)}, 1, 9},
		"one of two, the other first": {[]StoredRow{wrong(10), right(30, 0)}, 2, 9},
		"one of two, missing":         {[]StoredRow{right(30, 0), {Wanted: true, Missing: true, differs: true}}, 2, 9},
		"one of two, not left yet":    {[]StoredRow{right(30, 0), {Guard: 20, differs: true}}, 1, 9},
		"left":                        {[]StoredRow{right(30, 0), right(0, 30)}, 0, 0},
		"a row that no change writes": {[]StoredRow{right(30, 0), right(10, 0)}, 0, 0},
		"both, and yet different":     {[]StoredRow{right(30, 0), wrong(30)}, 0, 0},
	} {
		if n, last := h.pending(appliedIn(c.rows)); n != c.pending || last != c.last {
			t.Errorf("%s: %d changes are pending, the last in entry %d", name, n, last)
		}
	}
}
