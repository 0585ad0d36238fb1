package hotrow

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// blank is what images and values are slices of: only their lengths count.
var blank = make([]byte, 4<<20)

// shared notes a write of one item to rows that it shares with others.
func (w *watched) shared(op change.Op, before, after int, rows ...transform.Row) {
	for i := range rows {
		if rows[i].Class == 0 {
			rows[i].Class = transform.ClassD
		}
	}
	c := change.Change{Op: op, Old: blank[:before], New: blank[:after]}
	w.Wrote(w.now, &transform.Write{Rows: rows}, &c, &c)
}

func cells(bytes int) (all []transform.Cell) {
	for ; bytes > len(blank); bytes -= len(blank) {
		all = append(all, transform.Cell{Family: "d", Value: blank})
	}
	return append(all, transform.Cell{Family: "d", Value: blank[:bytes]})
}

// put inserts an item of which the row holds a number of bytes, drop removes the item.
func (w *watched) put(key []byte, image, held int) {
	w.shared(change.Insert, 0, image, transform.Row{Key: key, Cells: cells(held)})
}

func (w *watched) drop(key []byte, image int) {
	w.shared(change.Remove, image, 0, transform.Row{Key: key, Left: true})
}

func (w *watched) grown(key []byte) int64 {
	hash := w.hash(key)
	if r := w.growth.stripes[hash%stripes].rows[hash]; r != nil {
		return r.grown
	}
	return 0
}

// unseen is more than what a row grows by before it is tracked, except for one in nine million.
const unseen = 16 << 20

func TestSharedRowThatGrowsIsLogged(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	wide, others := []byte("tenant#1"), keys(100_000)
	for i := range 30_000 { // 120 MB in it, 4 GB in all the others
		w.put(wide, 5000, 4<<10)
		for k := range 4 {
			w.put(others[(4*i+k)%len(others)], 40_000, 32<<10)
		}
		w.pass(100 * time.Millisecond)
	}
	if got := w.rows("large row"); len(got) != 1 || got[0] != nameOf(wide) {
		t.Fatalf("logged %v, want %s", got, nameOf(wide))
	}
	const truth = 30_000 * (4 << 10)
	if got := w.LargestGrowth(); got > truth || got < truth-unseen {
		t.Errorf("the largest row grew by %d, said %d", truth, got)
	}
}

func TestLargeRowIsLoggedOncePerDoubling(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for range 50 { // 500 MB; tracked from the first write on
		w.put([]byte("wide"), 1<<20, 10<<20)
		w.pass(time.Minute)
	}
	var at []int64
	for _, e := range w.messages.All() {
		at = append(at, e.ContextMap()["grown_bytes"].(int64)>>20)
	}
	if fmt.Sprint(at) != "[100 200 400]" {
		t.Errorf("logged at %v MB", at)
	}
}

func TestRowWhoseItemsComeAndGoIsNotLarge(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for range 1000 { // a GB goes through it
		w.put([]byte("inbox"), 1<<20, 1<<20)
		w.drop([]byte("inbox"), 1<<20)
	}
	for range 1000 {
		w.shared(change.Modify, 1<<20, 1<<20, transform.Row{Key: []byte("stock"), Cells: cells(1 << 20)})
	}
	if got, said := w.LargestGrowth(), w.rows("large row"); got > 0 || len(said) > 0 {
		t.Errorf("grew by %d, logged %v", got, said)
	}
}

func TestIndexRowCountsWhatItHoldsOfItsItems(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	index := []byte("by_status#open")
	w.put(index, 4<<20, 1<<20) // it is tracked
	for range 10_000 {         // 4 GB of items, 400 KB of index
		w.put(index, 400_000, 40)
	}
	if got := w.grown(index); got != 1<<20+400_000 {
		t.Errorf("grew by %d, 40 bytes each of 10,000 items went into it, and a MiB", got)
	}
	before := w.grown(index)
	w.drop(index, 400_000)
	if took := before - w.grown(index); took <= 0 || took > 400 {
		t.Errorf("an item of which the row held 40 bytes took %d of them along", took)
	}
}

func TestItemsThatMoveBetweenRowsAreMovedInTheEstimate(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	open, done := []byte("open"), []byte("done")
	const n, size = 200, 1 << 20
	for range n {
		w.put(open, size, size)
	}
	for range n {
		w.shared(change.Modify, size, size, transform.Row{Key: []byte("own"), Class: transform.ClassR},
			transform.Row{Key: done, Cells: cells(size)}, transform.Row{Key: open, Left: true})
	}
	if w.grown(open) != 0 || w.grown(done) != n*size {
		t.Errorf("grew by %d and %d, want 0 and %d: all moved", w.grown(open), w.grown(done), n*size)
	}
}

func TestRemovalOfTheWholeRowCounts(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	row := []byte("cart#1")
	for range 90 {
		w.put(row, 1<<20, 1<<20)
	}
	w.shared(change.Remove, 100, 0, transform.Row{Key: row, Left: true, Exclusive: true})
	if got := w.grown(row); got != 0 {
		t.Errorf("grew by %d although it was deleted with its owner", got)
	}
}

func TestCoalescedChangesCountAsOne(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	row := []byte("row")
	w.put(row, 1<<20, 1<<20)
	first := &change.Change{Op: change.Modify, Old: blank[:1000], New: blank[:9000]}
	last := &change.Change{Op: change.Modify, Old: blank[:9000], New: blank[:3000]}
	w.Wrote(w.now, &transform.Write{Rows: []transform.Row{{Key: row, Class: transform.ClassK, Cells: cells(3000)}}},
		first, last)
	if got := w.grown(row); got != 1<<20+2000 {
		t.Errorf("grew by %d, from 1000 bytes over 9000 to 3000 it is 2000, and a MiB", got)
	}
}

func TestRowsOfOneItemAreNotTracked(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for range 1000 {
		w.shared(change.Insert, 0, 1<<20, transform.Row{Key: []byte("own"), Class: transform.ClassR, Cells: cells(1 << 20)})
	}
	for i := range w.growth.stripes {
		if w.growth.stripes[i].rows != nil {
			t.Fatal("a table with replace-row rules only pays for shared rows")
		}
	}
}

func TestTrackedRowsAreBounded(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	wide := []byte("wide")
	for i := range 60_000 {
		w.put(fmt.Appendf(nil, "row%d", i), 1<<20, 1<<20) // each of them would be tracked
		if i%200 == 0 {
			w.put(wide, 1<<20, 1<<20)
			w.pass(time.Second)
		}
	}
	n := 0
	for i := range w.growth.stripes {
		n += len(w.growth.stripes[i].rows)
	}
	if n > stripes*stripeRoom {
		t.Errorf("%d rows are tracked, %d are allowed", n, stripes*stripeRoom)
	}
	if got := w.grown(wide); got < 250<<20 {
		t.Errorf("the one row that grows was dropped for smaller ones: %d", got)
	}
	rowSize := unsafe.Sizeof(trackedRow{}) + 4*unsafe.Sizeof(uint64(0))
	if size := unsafe.Sizeof(*w.Tracker) + stripes*stripeRoom*rowSize; size > 400<<10 {
		t.Errorf("%d bytes are held for a table", size)
	}
}

func TestIdleRowsMakeRoom(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for i := range 2 * stripes * stripeRoom {
		w.put(fmt.Appendf(nil, "hour%d", i), 1<<20, 50<<20) // 50 MB each, and never written again
	}
	w.pass(2 * time.Hour)
	now := keys(50)
	for range 60 {
		for _, key := range now {
			w.put(key, 2<<20, 2<<20)
		}
		w.pass(10 * time.Second)
	}
	named := map[string]bool{}
	for _, row := range w.rows("large row") {
		named[row] = true
	}
	for _, key := range now {
		if !named[nameOf(key)] {
			t.Errorf("%s grew by 120 MB, and was dropped for rows that are not written any more", key)
		}
	}
}

func TestFewSmallRowsAreTracked(t *testing.T) {
	w := newWatched(zap.WarnLevel)
	for _, key := range keys(100_000) { // 10 MB: ten of them
		w.put(key, 500, 100)
	}
	n := 0
	for i := range w.growth.stripes {
		n += len(w.growth.stripes[i].rows)
	}
	if n > 60 {
		t.Errorf("%d of 100,000 small rows are tracked", n)
	}
}
