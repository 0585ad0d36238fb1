package transform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// sees fails unless a plain reader sees these cells and no others.
func (m *model) sees(t *testing.T, when string, cells ...string) {
	t.Helper()
	var got []string
	for at, value := range m.plain(nil) {
		got = append(got, at+"="+value)
	}
	slices.Sort(got)
	slices.Sort(cells)
	if !slices.Equal(got, cells) {
		t.Errorf("%s: a reader sees %q, want %q", when, got, cells)
	}
}

const shared = `segments: escape
families: {d: {}}
rules:
- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]}`

// TestGhostsBehindALostRemovalAreDeleted: b is removed in a gap, then x is deleted by a record
// whose image has no b: only the tombstone still names the row.
func TestGhostsBehindALostRemovalAreDeleted(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, shared)
	const key = `"pk":{"S":"r"},"sk":{"S":"x"}`
	both, one := `{`+key+`,"a":{"S":"1"},"b":{"S":"2"}}`, `{`+key+`,"a":{"S":"1"}}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 10, "", both)))
	m.apply(t, writeOf(t, p, step(t, p, 11, "", `{"pk":{"S":"r"},"sk":{"S":"y"},"a":{"S":"3"}}`)))
	m.apply(t, writeOf(t, p, step(t, p, 30, one, "")))
	m.sees(t, "with the ghost", "r|d:x/b=2", "r|d:y/a=3")
	m.resync(t, p, resyncOf(t, p, key, "", 40))
	m.sees(t, "after the resync", "r|d:y/a=3")

	// The same where the put is skipped because the item is hot: the skip branch deletes below its
	// version.
	m = newModel()
	m.apply(t, writeOf(t, p, step(t, p, 10, "", both)))
	m.apply(t, writeOf(t, p, step(t, p, 30, one, `{`+key+`,"a":{"S":"4"}}`)))
	m.resync(t, p, resyncOf(t, p, key, `{`+key+`,"a":{"S":"4"}}`, 20))
	m.sees(t, "after a skipped put", "r|d:x/a=4")
}

// TestSkippedPutDeletesNothingNewer: the row is read when the item has a column that a later change
// has added.
func TestSkippedPutDeletesNothingNewer(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, shared)
	const key = `"pk":{"S":"r"},"sk":{"S":"x"}`
	one, both := `{`+key+`,"a":{"S":"1"}}`, `{`+key+`,"a":{"S":"1"},"b":{"S":"2"}}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 10, "", one)))
	m.apply(t, writeOf(t, p, step(t, p, 30, one, both)))
	m.resync(t, p, resyncOf(t, p, key, one, 20)) // a page from before the change
	m.sees(t, "after an old page", "r|d:x/a=1", "r|d:x/b=2")
}

// TestLostSecondMoveLeavesNoStaleRow: A→B is applied, B→C lost; only the guard in B names the item
// there.
func TestLostSecondMoveLeavesNoStaleRow(t *testing.T) {
	p := example(t, "10_regroup.yaml")
	const key = `"id":{"S":"x"}`
	at := func(site string) string { return `{` + key + `,"site":{"S":"` + site + `"},"v":{"S":"1"}}` }
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", at("A"))))
	m.apply(t, writeOf(t, p, step(t, p, 2, at("A"), at("B"))))
	r := resyncOf(t, p, key, at("C"), 10)
	r.Rows = [][]byte{[]byte("B"), []byte("C"), []byte("elsewhere")}
	m.rows["elsewhere"] = &modelRow{cells: []modelCell{{family: "d", qual: "x/v", time: 5, value: "foreign"}}}
	m.resync(t, p, r)
	m.sees(t, "after the resync", "C|d:x/v=1", "elsewhere|d:x/v=foreign")
	if slices.ContainsFunc(m.rows["B"].cells, func(c modelCell) bool { return c.family == LiveFamily }) {
		t.Error("B still names the item as alive")
	}
	if n := len(m.rows["elsewhere"].cells); n != 1 {
		t.Errorf("a row without a guard of the item was written: it has %d cells", n)
	}
}

// TestRowsOfOtherItemsAreLeftAlone: a difference may name a row that another item owns.
func TestRowsOfOtherItemsAreLeftAlone(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `families: {d: {}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{site}#{p}#{s}", cells: [{attr: v, to: "d:v"}]}]`)
	const mine, other = `"pk":{"S":"a"},"sk":{"S":"1"}`, `"pk":{"S":"b"},"sk":{"S":"1"}`
	item := func(key, site string) string { return `{` + key + `,"site":{"S":"` + site + `"},"v":{"S":"1"}}` }
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", item(mine, "X"))))
	m.apply(t, writeOf(t, p, step(t, p, 2, "", item(other, "X"))))
	r := resyncOf(t, p, mine, "", 10)
	r.Rows = [][]byte{[]byte("X#a#1"), []byte("X#b#1"), []byte("Y#a#1")}
	w := m.resync(t, p, r)
	m.sees(t, "after the resync of an absent item", "X#b#1|d:v=1")
	if len(w.Rows) != 1 {
		t.Errorf("%d rows are written, want one", len(w.Rows))
	}
}

// TestColumnsOfOtherRowsAreNotTheItems: the index row of one item is the main row of others; which
// columns an item owns depends on the row.
func TestColumnsOfOtherRowsAreNotTheItems(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `families: {d: {}, x: {}}
rules:
- {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}],
  index: [{name: i, row: "i#{p}", cells: [{attrs: all, except: [pk, sk], to: "x:{s}/{attr}"}]}]}`)
	const mine, other = `"pk":{"S":"a"},"sk":{"S":"1"}`, `"pk":{"S":"i#a"},"sk":{"S":"1"}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", `{`+mine+`,"v":{"S":"1"}}`)))
	m.apply(t, writeOf(t, p, step(t, p, 2, "", `{`+other+`,"w":{"S":"2"}}`)))
	before := m.plain(nil)
	m.resync(t, p, resyncOf(t, p, mine, `{`+mine+`,"v":{"S":"1"}}`, 10))
	if after := m.plain(nil); !maps.Equal(before, after) {
		t.Errorf("the resync of one item changed %v to %v", before, after)
	}
}

// TestExpiredItemsThatAreKeptSurviveAResync: the table does not tell an expired item from a deleted
// one.
func TestExpiredItemsThatAreKeptSurviveAResync(t *testing.T) {
	for name, rule := range map[string]string{
		"one item a row": `row: "{p}#{s}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]`,
		"a shared row":   `row: "{p}", cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]`,
		"by attribute":   `row: "{v}#{p}#{s}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S", "sk:S"), TTLAttr: "exp"}, `segments: escape
families: {d: {}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, on_ttl_expiry: keep, `+rule+`}]`)
			const key = `"pk":{"S":"a"},"sk":{"S":"1"}`
			item := `{` + key + `,"v":{"S":"1"}}`
			m := newModel()
			m.apply(t, writeOf(t, p, step(t, p, 1, "", item)))
			expired := step(t, p, 2, item, "")
			expired.TTL = true
			m.apply(t, writeOf(t, p, expired))
			before := m.plain(nil)
			r := resyncOf(t, p, key, "", 10)
			r.Rows = rowsOf(t, p, item)
			m.resync(t, p, r)
			if after := m.plain(nil); !maps.Equal(before, after) || len(after) == 0 {
				t.Errorf("the resync changed %v to %v", before, after)
			}
			if r.Kept != 1 {
				t.Errorf("%d rows are reported as kept, want 1", r.Kept)
			}
		})
	}
}

// TestLostRemovalEndsHistories: a removal that was lost ends a history as the removal would have,
// once.
func TestLostRemovalEndsHistories(t *testing.T) {
	for name, c := range map[string]struct{ family, rule, want string }{
		"deleted":   {"h: {max_versions: 3}", "", ""},
		"kept":      {"h: {max_versions: 3, removed: keep}", "", "1 2"},
		"emptied":   {"h: {max_versions: 3, removed: empty}", "", "1 2 -"},
		"tombstone": {"h: {max_versions: 3}", "on_remove: tombstone, ", "1 2 -"},
	} {
		for _, row := range []string{`"{p}#{s}"`, `"{p}"`} {
			t.Run(name+" "+row, func(t *testing.T) {
				p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `segments: escape
families: {`+c.family+`}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, `+c.rule+`row: `+row+`,
  cells: [{attrs: all, except: [pk, sk], to: "h:{s}/{attr}"}]}]`)
				const key = `"pk":{"S":"a"},"sk":{"S":"1"}`
				one, two := `{`+key+`,"v":{"S":"1"}}`, `{`+key+`,"v":{"S":"2"}}`
				m := newModel()
				m.apply(t, writeOf(t, p, step(t, p, 1, "", one)))
				m.apply(t, writeOf(t, p, step(t, p, 2, one, two)))
				for v := range int64(2) {
					m.resync(t, p, resyncOf(t, p, key, "", 10+v))
				}
				var got []string
				for _, r := range m.rows {
					slices.SortFunc(r.cells, compareCells)
					for _, cell := range r.cells {
						if cell.family == "h" {
							got = append(got, strings.Replace("-"+cell.value, "-", "", min(1, len(cell.value))))
						}
					}
				}
				if strings.Join(got, " ") != c.want {
					t.Errorf("versions %q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestResyncDoesNotCascade: the removal of a video deletes its row with the comments; a resync of
// the absent video does not, and says that it does not.
func TestResyncDoesNotCascade(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `families: {d: {}}
rules:
- {name: video, match: {pk: "{v}", sk: Video}, row: "{v}", cells: [{attr: f, to: "d:f"}], on_remove: row}
- {name: comment, match: {pk: "{v}", sk: "C#{c}"}, row: "{v}", cells: [{attr: t, to: "d:c/{c}"}]}`)
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", `{"pk":{"S":"1"},"sk":{"S":"Video"},"f":{"S":"x"}}`)))
	m.apply(t, writeOf(t, p, step(t, p, 2, "", `{"pk":{"S":"1"},"sk":{"S":"C#1"},"t":{"S":"y"}}`)))
	r := resyncOf(t, p, `"pk":{"S":"1"},"sk":{"S":"Video"}`, "", 10)
	m.resync(t, p, r)
	m.sees(t, "after the resync", "1|d:c/1=y")
	if !slices.Equal(r.Wipes, []string{"video"}) {
		t.Errorf("rules whose removal deletes other items' cells: %q", r.Wipes)
	}
}

// TestAgedCellsDoNotComeBack resyncs two items each week of a virtual year: one never changes, the
// other changes once.
func TestAgedCellsDoNotComeBack(t *testing.T) {
	for name, family := range map[string]string{
		"one version":  "m: {max_versions: 1, max_age: 30d, combine: union}",
		"all versions": "m: {max_age: 30d}",
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, Table{Schema: schema("pk:S")}, `families: {`+family+`, d: {}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", cells: [{attr: v, to: "m:v"}, {attr: w, to: "d:w"}]}]`)
			const still, changed = `{"pk":{"S":"a"},"v":{"S":"1"},"w":{"S":"2"}}`, `{"pk":{"S":"b"},"v":{"S":"1"}}`
			day, week := (24 * time.Hour).Milliseconds(), (7 * 24 * time.Hour).Milliseconds()
			m := newModel()
			m.apply(t, writeOf(t, p, step(t, p, day, "", still)))
			aged := 0
			for now := week; now <= 52*week; now += week {
				if now == 20*week {
					m.apply(t, writeOf(t, p, step(t, p, now-day, "", changed)))
				}
				m.collect("m", now-30*day)
				_, visible := m.plain(nil)["a|m:v"]
				items := map[string]string{`"pk":{"S":"a"}`: still}
				if now >= 20*week {
					items[`"pk":{"S":"b"}`] = changed
				}
				for key, item := range items {
					r := resyncOf(t, p, key, item, now-60_000)
					m.resync(t, p, r)
					aged += r.Aged
				}
				got := m.plain(nil)
				if _, after := got["a|m:v"]; after != visible || after != (now <= 31*day) || got["a|d:w"] != "2" {
					t.Fatalf("week %d: the aged cell is seen %v before and %v after the resync; %v", now/week, visible, after, got)
				}
				if _, b := got["b|m:v"]; b != (now >= 20*week && now <= 20*week+29*day) {
					t.Fatalf("week %d: the cell of week 20 is seen: %v", now/week, b)
				}
			}
			// A cell that ages while it is read and put: the version of the resync is from before
			// its end.
			const edge = `{"pk":{"S":"e"},"v":{"S":"1"}}`
			m.apply(t, writeOf(t, p, step(t, p, 60*week, "", edge)))
			m.collect("m", 60*week+30_000)
			m.resync(t, p, resyncOf(t, p, `"pk":{"S":"e"}`, edge, 60*week+30*day-30_000))
			if _, back := m.plain(nil)["e|m:v"]; back {
				t.Error("a cell that has just aged is back")
			}
			if aged == 0 {
				t.Error("no cell is reported as aged")
			}
		})
	}
}

// collect removes the cells of a family that are older than a time.
func (m *model) collect(family string, before int64) {
	for key, row := range m.rows {
		row.cells = slices.DeleteFunc(row.cells, func(c modelCell) bool { return c.family == family && c.time < before })
		m.drop(key, row)
	}
}

// TestOnlyOwnedColumnsOfALargeRowAreRead: 100,000 items share a row; a resync of one reads a
// handful of cells.
func TestOnlyOwnedColumnsOfALargeRowAreRead(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, shared)
	item := `{"pk":{"S":"r"},"sk":{"S":"77777"},"a":{"S":"1"},"b":{"S":"2"}}`
	r := resyncOf(t, p, `"pk":{"S":"r"},"sk":{"S":"77777"}`, item, 10)
	r.First = true
	reads, err := p.RowsToRead(new(change.Decoder), r)
	if err != nil || len(reads) != 1 {
		t.Fatalf("%d rows are read: %v", len(reads), err)
	}
	read := 0
	for i := range 100_000 {
		for _, attr := range []string{"a", "b"} {
			if wanted(reads[0].Families, modelCell{family: "d", qual: fmt.Sprintf("%d/%s", i, attr)}) {
				read++
			}
		}
	}
	if read != 2 {
		t.Errorf("%d cells are read, want the two of the item", read)
	}
}

// TestPlainRowsAreNotRead: R and K without history and age are replaced from the item alone, as an
// Insert would.
func TestPlainRowsAreNotRead(t *testing.T) {
	for name, body := range map[string]string{
		"01_catalog.yaml":        `{"pk":{"S":"hats"},"sk":{"S":"a"},"x":{"S":"1"}}`,
		"02c_video_sk_time.yaml": `{"pk":{"S":"1"},"sk":{"S":"VideoComment#9811"},"Content":{"S":"c"}}`,
		"03_invoice.yaml": `{"pk":{"S":"Invoice-1"},"sk":{"S":"Payment-1"},"Details":{"S":"d"},` +
			`"DateCreated":{"S":"2023-09-01"}}`,
		"05_versions.yaml": `{"pk":{"S":"o"},"sk":{"S":"v1_d"},"t":{"S":"1"}}`,
	} {
		p := example(t, name)
		r := &Resync{Keys: keysOf(t, p, []byte(body)), Item: []byte(body), Version: 7}
		reads, err := p.RowsToRead(new(change.Decoder), r)
		if err != nil || len(reads) > 0 {
			t.Errorf("%s: %d rows are read: %v", name, len(reads), err)
		}
		w := new(Write)
		if err := p.Resync(new(change.Decoder), r, w); err != nil {
			t.Fatal(err)
		}
		if diff := diffWrites(put(t, p, 7, []byte(body)), w); diff != "" {
			t.Errorf("%s (-insert +resync):\n%s", name, diff)
		}
	}
}

// TestColumnsWithoutAnInverseAreNamed: a column that holds the type of its value does not show
// whose it was.
func TestColumnsWithoutAnInverseAreNamed(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `segments: escape
families: {d: {}}
rules:
  - {name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}", cells: [{attrs: [price, name], to: "d:{s}/{attr}__{type}"}]}`)
	const key = `"pk":{"S":"a"},"sk":{"S":"1"}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", `{`+key+`,"price":{"N":"1"}}`)))
	for first, want := range map[bool][]string{false: {"d:{s}/{attr}__{type}"}, true: {"d:{s}/{attr}__{type}"}} {
		r := resyncOf(t, p, key, `{`+key+`,"price":{"S":"free"}}`, 10)
		r.First = first
		m.resync(t, p, r)
		if !slices.Equal(r.Unproven, want) {
			t.Errorf("first %v: unproven %q, want %q", first, r.Unproven, want)
		}
	}
	r := resyncOf(t, p, `"pk":{"S":"a"},"sk":{"S":"2"}`, `{"pk":{"S":"a"},"sk":{"S":"2"},"name":{"S":"n"}}`, 10)
	if r.First = true; m.resync(t, p, r) == nil || len(r.Unproven) > 0 {
		t.Errorf("a first copy into a row without the item: unproven %q", r.Unproven)
	}
}

// TestAggregatesTakeAResyncTwice: a lost value is merged, a merged one changes nothing.
func TestAggregatesTakeAResyncTwice(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `families: {top: {aggregate: max}}
rules: [{name: bid, match: {pk: "{a}", sk: "{b}"}, row: "{a}", cells: [{attr: n, to: "top:bid", as: int64, ts: "0"}]}]`)
	const key = `"pk":{"S":"a"},"sk":{"S":"1"}`
	item := func(n string) string { return `{` + key + `,"n":{"N":"` + n + `"}}` }
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", item("5"))))
	for i, c := range []struct{ now, want string }{{"9", "\x09"}, {"9", "\x09"}, {"3", "\x09"}} {
		m.resync(t, p, resyncOf(t, p, key, item(c.now), int64(10+i)))
		m.sees(t, "after "+c.now, "a|top:bid=\x00\x00\x00\x00\x00\x00\x00"+c.want)
	}
	m.resync(t, p, resyncOf(t, p, key, "", 20))
	m.sees(t, "after the item is gone", "a|top:bid=\x00\x00\x00\x00\x00\x00\x00\x09")
}

// TestEqualHistoryOfAChangedRowGetsNoVersion: one column of a row is repaired; the histories beside
// it are as they should be, and a version more would push one out.
func TestEqualHistoryOfAChangedRowGetsNoVersion(t *testing.T) {
	for _, row := range []string{`"{p}#{s}"`, `"{p}"`} {
		p := compiled(t, Table{Schema: schema("pk:S", "sk:S")}, `families: {h: {max_versions: 3}, d: {}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: `+row+`,
  cells: [{attr: x, to: "h:{s}/x"}, {attr: z, to: "h:{s}/z"}, {attr: y, to: "d:{s}/y"}]}]`)
		const key = `"pk":{"S":"a"},"sk":{"S":"1"}`
		item := func(y, z string) string {
			return `{` + key + `,"x":{"S":"1"},"y":{"S":"` + y + `"},"z":{"S":"` + z + `"}}`
		}
		m := newModel()
		m.apply(t, writeOf(t, p, step(t, p, 1, "", item("1", "1"))))
		m.resync(t, p, resyncOf(t, p, key, item("2", "2"), 10))
		versions := map[string]int{}
		for _, r := range m.rows {
			for _, c := range r.cells {
				versions[c.family+":"+c.qual]++
			}
		}
		if versions["h:1/x"] != 1 || versions["h:1/z"] != 2 || versions["d:1/y"] != 1 {
			t.Errorf("row %s: versions %v, want one of x and y and two of z", row, versions)
		}
	}
}

// TestEndedHistoryOfAnEarlierLifeStays: the item came back without an attribute whose history its
// removal had ended.
func TestEndedHistoryOfAnEarlierLifeStays(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, `families: {h: {max_versions: 3}}
rules: [{name: r, match: {pk: "{p}"}, row: "{p}", on_remove: tombstone,
  cells: [{attrs: all, except: [pk], to: "h:{attr}"}]}]`)
	const key = `"pk":{"S":"a"}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", `{`+key+`,"v":{"S":"1"}}`)))
	m.apply(t, writeOf(t, p, step(t, p, 2, `{`+key+`,"v":{"S":"1"}}`, "")))
	m.apply(t, writeOf(t, p, step(t, p, 3, "", `{`+key+`,"w":{"S":"2"}}`)))
	for _, item := range []string{`{` + key + `,"w":{"S":"2"}}`, `{` + key + `,"w":{"S":"3"}}`} {
		m.resync(t, p, resyncOf(t, p, key, item, 10))
		n := 0
		for _, c := range m.rows["a"].cells {
			if c.qual == "v" {
				n++
			}
		}
		if n != 2 {
			t.Fatalf("the ended history has %d versions after the resync, want 2", n)
		}
	}
}
