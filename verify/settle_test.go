package verify

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
)

const sharedRows = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`

func TestItemThatComesBackBetweenTwoReadingsIsEqual(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"A"}`)
	turns := 0
	e.beforeProof = func() { // the rows show B, and both readings of the item A
		if turns++; turns <= 2 {
			e.put("p", "a", `"x":{"S":"B"}`)
			e.items[keyOf("p", "a")] = `{"pk":{"S":"p"},"sk":{"S":"a"},"x":{"S":"A"}}`
		} else {
			e.put("p", "a", `"x":{"S":"A"}`)
		}
	}
	s := e.settler()
	v, err := s.Settle(t.Context(), []Candidate{{Key: keyOf("p", "a")}})
	if err != nil || v[0].Status != Equal || turns != 3 {
		t.Errorf("after %d proofs: %+v, %v", turns, v, err)
	}
}

func TestItemThatNeverRestsIsUnproven(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"0"}`)
	n := 0
	e.beforeProof = func() {
		n++
		e.put("p", "a", fmt.Sprintf(`"x":{"S":"%d"}`, n))
	}
	s := e.settler()
	paused := time.Duration(0)
	s.Pause = func(_ context.Context, d time.Duration) error { paused += d; return nil }
	v, err := s.Settle(t.Context(), []Candidate{{Key: keyOf("p", "a")}})
	if err != nil || v[0].Status != Unproven || n != settlings || paused < 5*time.Second {
		t.Errorf("%d settlings, %v of pauses: %+v, %v", n, paused, v, err)
	}
	e.lose("p", "a", `"x":{"S":"lost"}`) // a resync writes it: then nothing is left open
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Busy != 1 {
		t.Errorf("%s: %+v", why, res)
	}
}

func TestHotNeighbourKeepsNoItemUnsettled(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "a", `"x":{"S":"1"}`)
	e.put("p", "b", `"x":{"S":"1"}`)
	e.put("p", "c", `"x":{"S":"1"}`)
	e.lose("p", "c", `"y":{"S":"2"}`)
	n := 0
	e.beforeProof = func() {
		n++
		e.put("p", "b", fmt.Sprintf(`"x":{"S":"busy %d"}`, n))
	}
	s := e.settler()
	v, err := s.Settle(t.Context(), []Candidate{{Key: keyOf("p", "a")}, {Key: keyOf("p", "b")}, {Key: keyOf("p", "c")}})
	if err != nil || v[0].Status != Equal || v[1].Status != Unproven || v[2].Status != Different {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestHotItemIsListedAndNeverHealed: a foreign cell above the version of the repair, and a guard as
// new as it.
func TestHotItemIsListedAndNeverHealed(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"1"}`)
	e.lose("p", "a", `"x":{"S":"2"}`)
	e.guardAt("p#a", keyOf("p", "a"), int64(e.now())-10_000)
	res := e.resync()
	healed, why := res.Healed(false)
	if healed || res.Hot != 1 || res.Equal != 0 || len(res.Open) != 1 || res.Open[0].Until == 0 ||
		!strings.Contains(why, "hot") {
		t.Errorf("%q: %+v", why, res)
	}
}

// TestItemThatOnlyTheTargetHasIsNotAnItemLess: an item was removed in a gap. It differs, and all
// others are equal.
func TestItemThatOnlyTheTargetHasIsNotAnItemLess(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"1"}`)
	e.put("p", "b", `"x":{"S":"1"}`)
	e.lose("p", "b", "")
	r := Resyncer{Settler: e.settler()}
	res, err := r.Run(t.Context(), e.full(e.options()))
	if err != nil {
		t.Fatal(err)
	}
	if res.Counts.Items != 1 || res.Equal != 1 || res.Different != 1 {
		t.Errorf("%+v", res)
	}
}

// TestRowThatTheStreamHasMadeSinceIsHealed: the row was missing when the sides were compared, and
// the item changes every half a minute since. No resync could write below its guard.
func TestRowThatTheStreamHasMadeSinceIsHealed(t *testing.T) {
	e := newEngine(t, "")
	e.lose("p", "a", `"x":{"S":"1"}`)
	f := e.full(e.options())
	e.put("p", "a", `"x":{"S":"2"}`)
	e.guardAt("p#a", keyOf("p", "a"), int64(e.now())-10_000)
	r := Resyncer{Settler: e.settler(), Repair: e.repair}
	res, err := r.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if healed, why := res.Healed(false); !healed || res.Repaired != 1 || res.Equal != 1 {
		t.Errorf("%q: %+v", why, res)
	}
}

// TestGhostOfADeadItemIsFoundByItsTombstone: b leaves the row in a gap, x is removed behind it. No
// _tr_live names the ghost of b's column, which was x's.
func TestGhostOfADeadItemIsFoundByItsTombstone(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "x", `"a":{"S":"1"},"b":{"S":"2"}`)
	e.put("p", "y", `"a":{"S":"1"}`)
	e.lose("p", "x", `"a":{"S":"1"}`) // b goes in the gap
	e.put("p", "x", "")               // its old image does not have b
	f := e.full(e.options())
	if v := e.verdicts(f)[keyOf("p", "x")]; v.Status != Different || v.Kinds[0] != ExtraCell {
		t.Fatalf("%+v", v)
	}
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Repaired != 1 {
		t.Errorf("%s: %+v", why, res)
	}
	if c := e.compare(oracle.Options{}); !c.Equal() {
		t.Errorf("%+v", c)
	}
}

// TestCellInTheRowOfARemovedItemIsRepaired: somebody else wrote it after the item had left the row,
// and the tombstone shows whose place it is. It is a difference of that item, once, and one repair
// removes it, whatever owns the row.
func TestCellInTheRowOfARemovedItemIsRepaired(t *testing.T) {
	const byKey = `
mapping: 1
families: {d: {max_versions: 1}, e: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "e:{s}/y"}]
`
	for name, c := range map[string]struct{ mapping, row, column string }{
		"a row of its own":                  {"", "p#a", "x"},
		"a column that it never had":        {"", "p#a", "app"},
		"shared, columns of the key":        {byKey, "p", "a/x"},
		"shared, wildcard columns":          {sharedRows, "p", "a/x"},
		"moved by an attribute":             {histories[4].mapping, "by#t#p#a", "x"},
		"moved, the row that its key gives": {histories[4].mapping, "p", "a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, c.mapping)
			e.put("p", "a", someText)
			e.put("p", "b", someText)
			e.put("p", "a", "")
			e.foreign(c.row, "d", c.column, "app")
			f := e.full(e.options())
			if diff := cmp.Diff([]string{keyOf("p", "a") + ": extra_cell"}, e.judged(f, c.row)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			res := e.resync()
			if healed, why := res.Healed(false); !healed || res.Different != 1 || res.Repaired != 1 || res.Foreign != 0 {
				t.Errorf("%s: %+v", why, res)
			}
			e.version += 120_000
			if again := e.resync(); again.Counts.Candidates+again.Counts.Foreign > 0 || again.Written > 0 {
				t.Errorf("again: %+v", again)
			}
			if c := e.compare(oracle.Options{}); !c.Equal() {
				t.Errorf("cell by cell: %+v", c)
			}
		})
	}
}

// TestCellOfNobodyInARowWithAHistoryIsRepaired: the row belongs to the item, so what no entry of
// the mapping writes is too much in it. The row is read before it is repaired, because a column of
// it keeps versions.
func TestCellOfNobodyInARowWithAHistoryIsRepaired(t *testing.T) {
	for _, at := range []string{"d", "h", "other"} {
		e := newEngine(t, `
mapping: 1
families: {d: {max_versions: 1}, h: {max_versions: 3, removed: keep}, other: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "r#{p}#{s}"
  segments: escape
  cells: [{attr: x, to: "d:x"}, {attr: y, to: "h:y"}]
  index: [{name: by, row: "by#{p}#{s}", cells: [{attr: x, to: "other:x"}]}]
`)
		e.outlives = e.program.Outlives
		e.put("p", "a", `"x":{"S":"1"},"y":{"S":"1"}`)
		e.put("p", "a", `"x":{"S":"1"},"y":{"S":"2"}`)
		e.foreign("r#p#a", at, "app", "?")
		res := e.resync()
		if healed, why := res.Healed(false); !healed || res.Different != 1 || res.Repaired != 1 || res.Foreign != 0 {
			t.Errorf("%s: %s: %+v", at, why, res)
		}
		versions := 0
		err := e.bigtable().Lookup(t.Context(), []string{"r#p#a"}, func(r *Row) error {
			for _, c := range r.Cells {
				if string(c.Qualifier) == "y" {
					versions++
				}
			}
			return nil
		})
		if err != nil || versions != 2 {
			t.Errorf("%s: %d versions of the history, %v", at, versions, err)
		}
	}
}

func TestMovedItemLeavesItsOldRow(t *testing.T) {
	e := newEngine(t, histories[4].mapping)
	e.put("p", "a", `"text":{"S":"old"},"x":{"S":"1"}`)
	e.lose("p", "a", `"text":{"S":"new"},"x":{"S":"1"}`)
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Different != 1 {
		t.Errorf("%s: %+v", why, res)
	}
	if c := e.compare(oracle.Options{}); !c.Equal() {
		t.Errorf("%+v", c)
	}
}

func TestKeptExpiredItemsStay(t *testing.T) {
	e := newEngine(t, strings.Replace(sharedRows, "  cells:", "  on_ttl_expiry: keep\n  cells:", 1))
	e.outlives = e.program.Outlives
	e.put("p", "a", `"x":{"S":"1"},"y":{"S":"1"}`)
	e.put("p", "b", `"x":{"S":"1"}`)
	e.lose("p", "a", "") // expired
	before := e.rowsOf()
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Kept != 2 || res.Different != 0 {
		t.Errorf("%s: %+v", why, res)
	}
	if after := e.rowsOf(); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
}

// TestExpiredItemsWithoutVisibleCellsAreKept: their cells have aged away, or were never there. The
// guard is the fact: they are no difference, and a resync makes a tombstone of it, but not where a
// reader sees a cell.
func TestExpiredItemsWithoutVisibleCellsAreKept(t *testing.T) {
	for name, row := range map[string]string{
		"a row of its own": `row: "{p}#{s}"
  cells: [{attr: x, to: "d:x"}, {attr: y, to: "a:y"}]`,
		"shared, columns of the key": `row: "{p}"
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "a:{s}/y"}]`,
		"shared, wildcard columns": `row: "{p}"
  cells: [{attrs: [x], to: "d:{s}/{attr}"}, {attrs: [y], to: "a:{s}/{attr}"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, fmt.Sprintf(`
mapping: 1
families: {d: {max_versions: 1}, a: {max_age: 1h}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  on_ttl_expiry: keep
  %s
`, row))
			e.outlives = e.program.Outlives
			e.put("p", "bare", `"z":{"S":"1"}`)
			e.put("p", "aged", `"y":{"S":"1"}`)
			e.version += 2 * 3_600_000
			e.put("p", "young", `"y":{"S":"1"}`)
			e.put("p", "plain", `"x":{"S":"1"}`)
			e.put("p", "here", `"z":{"S":"1"}`)
			for _, sk := range []string{"bare", "aged", "young", "plain"} {
				e.lose("p", sk, "") // expired
			}
			e.version += 120_000
			for _, v := range e.verdicts(e.full(e.options())) {
				bare := strings.Contains(v.Key, "bare") || strings.Contains(v.Key, "aged")
				if v.Status != Kept || bare != (len(v.Bare) == 1) {
					t.Errorf("%+v", v)
				}
			}
			res := e.resync()
			if healed, why := res.Healed(false); !healed || res.Different != 0 || res.Kept != 2 || res.Left != 2 {
				t.Errorf("%s: %+v", why, res)
			}
			if again := e.resync(); again.Settled != 2 || again.Left != 0 || again.Kept != 2 {
				t.Errorf("again: %+v", again)
			}
			e.version += 120_000 // the tombstones lie above those so far
			e.put("p", "bare", `"x":{"S":"back"}`)
			if c := e.resync(); c.Settled != 2 || c.Equal != 2 {
				t.Errorf("back: %+v", c)
			}
		})
	}
}

// TestHistoriesOfRemovedItemsStay: cells of a family that keeps what was removed are neither ghosts
// nor foreign.
func TestHistoriesOfRemovedItemsStay(t *testing.T) {
	e := newEngine(t, `
mapping: 1
families: {d: {max_versions: 1}, h: {max_versions: 3, history: true, removed: keep}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}#{s}"
  cells: [{attr: x, to: "d:x"}, {attr: y, to: "h:y"}]
`)
	e.outlives = e.program.Outlives
	e.put("p", "a", `"x":{"S":"1"},"y":{"S":"1"}`)
	e.put("p", "a", `"x":{"S":"2"},"y":{"S":"2"}`)
	e.put("p", "b", `"x":{"S":"1"},"y":{"S":"1"}`)
	e.put("p", "b", "")
	before := e.rowsOf()
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Kept != 1 || res.Written != 0 || e.rowsOf() != before {
		t.Errorf("%s: %+v", why, res)
	}
}

// TestEmptiedHistoriesOfRemovedItemsStay: the removal ends the column in an empty version and
// leaves the older ones, of which each has a value. The rule is about the column, so none of them
// is a difference, also in rows that items share.
func TestEmptiedHistoriesOfRemovedItemsStay(t *testing.T) {
	for name, c := range map[string]struct{ family, rule string }{
		"tombstone, a row of its own": {"max_versions: 3", `row: "{p}#{s}"
  on_remove: tombstone
  cells: [{attr: x, to: "d:x"}, {attr: y, to: "h:y"}]`},
		"tombstone, shared": {"max_versions: 3", `row: "{p}"
  on_remove: tombstone
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "h:{s}/y"}]`},
		"empty, a row of its own": {"max_versions: 3, removed: empty", `row: "{p}#{s}"
  cells: [{attr: x, to: "d:x"}, {attr: y, to: "h:y"}]`},
		"empty, shared": {"max_versions: 3, removed: empty", `row: "{p}"
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "h:{s}/y"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, fmt.Sprintf(`
mapping: 1
families: {d: {max_versions: 1}, h: {%s}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  %s
`, c.family, c.rule))
			e.outlives = e.program.Outlives
			for i := range 4 {
				e.put("p", "a", fmt.Sprintf(`"x":{"S":"1"},"y":{"S":"%d"}`, i))
			}
			e.put("p", "b", `"x":{"S":"1"},"y":{"S":"1"}`)
			e.put("p", "a", "")
			before := e.rowsOf()
			f := e.full(e.options())
			if v := e.verdicts(f); len(v) > 0 {
				t.Errorf("candidates: %v", v)
			}
			s := e.settler()
			v, err := s.Settle(t.Context(), []Candidate{{Key: keyOf("p", "a"), Rows: [][]byte{[]byte("p"), []byte("p#a")}}})
			if err != nil || v[0].Status != Equal {
				t.Errorf("settled: %+v, %v", v, err)
			}
			res := e.resync()
			if healed, why := res.Healed(false); !healed || res.Kept != 3 || res.Written != 0 || e.rowsOf() != before {
				t.Errorf("%s: %+v", why, res)
			}
		})
	}
}

// rowsOf returns all rows of the target as text.
func (e *engine) rowsOf() string {
	e.t.Helper()
	var b strings.Builder
	err := e.bigtable().Scan(e.t.Context(), func(r *Row) error {
		fmt.Fprintf(&b, "%s %v %v %v\n", r.Key, r.Cells, r.Live, r.Dead)
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return b.String()
}

func TestFamiliesOutsideOfTheMappingAreNotLookedAt(t *testing.T) {
	e := newEngine(t, "")
	families := append(e.program.Families(), transform.Family{Name: "theirs", MaxVersions: 1})
	tables := tableschema.Tables([]tableschema.Table{{Name: target, Families: families}}, 7*24*time.Hour)
	if _, err := e.client.Ensure(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	e.put("p", "a", `"x":{"S":"1"}`)
	e.foreign("p#a", "theirs", "x", "9")
	e.foreign("another", "theirs", "x", "9")
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Foreign != 0 || res.Unproven != 0 || res.Written != 0 {
		t.Errorf("%s: %+v", why, res)
	}
}

// TestColumnOfAnotherRowOfTheItemIsForeign: no change of the item writes it to this row and no
// resync deletes it, so as a difference of the item it would be repaired for ever.
func TestColumnOfAnotherRowOfTheItemIsForeign(t *testing.T) {
	e := newEngine(t, `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "a#{p}"
  cells: [{attr: x, to: "d:{s}/x"}]
  index: [{name: other, row: "b#{p}", cells: [{attr: x, to: "d:{s}/y"}]}]
`)
	e.put("p", "a", `"x":{"S":"1"}`)
	e.foreign("a#p", "d", "a/y", "1")
	res := e.resync()
	if healed, why := res.Healed(true); !healed || res.Foreign != 1 || res.Different != 0 || len(e.repaired) != 0 {
		t.Errorf("%s: %+v", why, res)
	}
	e.lose("p", "a", `"z":{"S":"2"}`) // the columns of each row are the item's there
	res = e.resync()
	if healed, why := res.Healed(true); !healed || res.Foreign != 1 || res.Different != 1 || res.Repaired != 1 {
		t.Errorf("%s: %+v", why, res)
	}
}

// TestRowsOfAnotherPipelineAreForeignAndNamed, and are not repaired.
func TestRowsOfAnotherPipelineAreForeignAndNamed(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "a", `"x":{"S":"1"}`)
	key := keyOf("p", "z")
	e.version++
	e.write(&transform.Write{Item: transform.Item{Guard: guardQualifier("other", "S", key), Table: "S",
		Pipeline: "other", Key: []byte(key)}, Version: change.Version(e.version), Rows: []transform.Row{{Key: []byte("p"),
		Class: transform.ClassK,
		Cells: []transform.Cell{{Family: "d", Qualifier: []byte("z/x"), Value: []byte("1")}}}}})
	before := e.rowsOf()
	res := e.resync()
	healed, _ := res.Healed(false)
	accepted, _ := res.Healed(true)
	if healed || !accepted || res.Foreign != 1 || res.Open[0].Pipeline != "other" || res.Written != 0 {
		t.Errorf("%+v", res)
	}
	if e.rowsOf() != before {
		t.Error("the other pipeline's row was changed")
	}
}

func TestGuardSealedWithAnUnknownSecretIsUnproven(t *testing.T) {
	e := newEngine(t, sharedRows)
	e.put("p", "a", `"x":{"S":"1"}`)
	seal, err := bigtable.NewSealer([]string{base64.StdEncoding.EncodeToString(make([]byte, 32))})
	if err != nil {
		t.Fatal(err)
	}
	other, err := bigtable.Open(t.Context(), bigtable.Options{Project: "p", Instance: "i", Endpoint: e.front.Addr(),
		Pipeline: "p", Seal: seal, Now: func() time.Time { return present }}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	other.Declare(target, []string{"d"})
	key := keyOf("p", "z")
	w := transform.Write{Item: transform.Item{Guard: guardQualifier("p", "S", key), Table: "S", Pipeline: "p",
		Key: []byte(key), Sealed: true}, Version: change.Version(e.version + 1), Rows: []transform.Row{{Key: []byte("p"),
		Class: transform.ClassK,
		Cells: []transform.Cell{{Family: "d", Qualifier: []byte("z/x"), Value: []byte("1")}}}}}
	if err := other.Apply(t.Context(), target, &w); err != nil {
		t.Fatal(err)
	}
	res := e.resync()
	if healed, _ := res.Healed(true); healed || res.Unproven != 1 || res.Foreign != 0 || res.Open[0].Kind != Sealed {
		t.Errorf("%+v", res)
	}
}

// TestColumnsThatDoNotShowTheirItemAreUnproven: a ghost in such a column must not pass for a
// foreign cell.
func TestColumnsThatDoNotShowTheirItemAreUnproven(t *testing.T) {
	e := newEngine(t, strings.Replace(sharedRows, "d:{s}/{attr}", "d:{s}/{attr}/{type}", 1))
	if ok, _ := e.program.Resyncable(); ok {
		t.Fatal("the mapping has an inverse")
	}
	e.put("p", "a", `"x":{"S":"1"}`)
	e.put("p", "b", `"x":{"S":"1"}`)
	if res := e.resync(); res.Unproven+res.Unowned+res.Foreign+res.Different != 0 {
		t.Fatalf("equal sides: %+v", res)
	}
	e.foreign("p", "d", "a/ghost/S", "boo")
	res := e.resync()
	if healed, _ := res.Healed(true); healed || res.Unowned != 1 || res.Unproven+res.Foreign != 0 ||
		res.Open[0].Kind != Unowned {
		t.Errorf("%+v", res)
	}
}

func TestRefusedItemIsListed(t *testing.T) {
	e := newEngine(t, comments)
	e.put("v1", "c1000", `"text":{"S":"x"}`)
	e.items[keyOf("v1", "no")] = `{"pk":{"S":"v1"},"sk":{"S":"no comment"}}`
	delete(e.items, keyOf("v1", "no"))
	e.items[keyOf("v1", "no comment")] = `{"pk":{"S":"v1"},"sk":{"S":"no comment"}}`
	res := e.resync()
	if healed, _ := res.Healed(true); healed || res.Refused != 1 || res.Open[0].Kind != Refusal || res.Equal != 1 {
		t.Errorf("%+v", res)
	}
}

// TestTableThatIsNotComparedKeepsItsCells: two tables write one target, and one of them is
// resynced.
func TestTableThatIsNotComparedKeepsItsCells(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "a", `"x":{"S":"1"}`)
	table := e.program.Table()
	table.Source = "T"
	other, problems := transform.Compile(table)
	if other == nil {
		t.Fatal(problems)
	}
	e.tables = []Table{{Program: other}}
	var w transform.Write
	var d change.Decoder
	item := []byte(`{"pk":{"S":"q"},"sk":{"S":"z"},"x":{"S":"1"}}`)
	c := &change.Change{Op: change.Insert, Version: change.Version(e.version + 1), Keys: []byte(keyOf("q", "z")),
		New: item}
	if err := other.Change(&d, c, &w); err != nil {
		t.Fatal(err)
	}
	e.write(&w)
	res := e.resync()
	if healed, why := res.Healed(false); !healed || res.Foreign+res.Unproven+res.Different != 0 {
		t.Errorf("%s: %+v", why, res)
	}
}

func TestThousandCandidatesShareTheirProofs(t *testing.T) {
	e := newEngine(t, "")
	var all []Candidate
	for i := range 1000 {
		e.put("p", fmt.Sprint(i), `"x":{"S":"1"}`)
		if i%2 == 0 {
			e.lose("p", fmt.Sprint(i), `"x":{"S":"2"}`)
		}
		all = append(all, Candidate{Key: keyOf("p", fmt.Sprint(i))})
	}
	s := e.settler()
	verdicts, err := s.Settle(t.Context(), all)
	if err != nil || e.proofs != 2 {
		t.Fatalf("%d proofs, %v", e.proofs, err)
	}
	for i, v := range verdicts {
		if want := map[bool]Status{true: Different, false: Equal}[i%2 == 0]; v.Status != want || v.Key != all[i].Key {
			t.Fatalf("%d: %+v", i, v)
		}
	}
}

// TestWhatIsOpenIsNotHealed: each of it alone stands in the way, also an item that nothing but a
// dead letter keeps from being equal. Cells that are kept do not, and foreign ones only while they
// are not accepted.
func TestWhatIsOpenIsNotHealed(t *testing.T) {
	for why, r := range map[string]Resynced{
		"1 item is hot":               {Different: 1, Hot: 1},
		"1 item still differs":        {Different: 2, Repaired: 1},
		"unproven":                    {Unproven: 1},
		"does not show its owner":     {Unowned: 1},
		"the mapping refuses":         {Refused: 1},
		"behind a dead letter":        {Different: 2, Repaired: 1, Letters: 1},
		"no guard of its row can own": {Foreign: 1},
	} {
		if healed, says := r.Healed(false); healed || !strings.Contains(says, why) {
			t.Errorf("%+v is healed: %v, %q", r, healed, says)
		}
		if healed, _ := r.Healed(true); healed != (r.Foreign > 0) {
			t.Errorf("%+v with accepted foreign cells: healed %v", r, healed)
		}
	}
	done := Resynced{Different: 3, Repaired: 3, Equal: 7, Kept: 2, Busy: 1, ByLog: 1}
	if healed, why := done.Healed(false); !healed {
		t.Errorf("%+v: %s", done, why)
	}
}
