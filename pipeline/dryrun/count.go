package dryrun

import (
	"errors"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/hotrow"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// counts are what was counted of a table.
type counts struct {
	sensor *hotrow.Tracker // of rows that are written too often; it logs nothing here

	mu sync.Mutex // covers the rest
	tally
	peak float64 // writes a second of the hottest row, in the window where it was hottest
}

func newCounts(_ *Table, began time.Time) *counts {
	return &counts{sensor: hotrow.New(zap.NewNop(), began), tally: newTally()}
}

// tally is what was counted in some pages.
type tally struct {
	pages, records, bytes, ttl  int64
	rows, cells, rowBytes, left int64
	ignored, refused            int64
	items, rowSizes             sizes
	refusals                    map[refusal]int64
	rowKeys, partitions         heavy
	oldest, newest              change.Millis
}

// refusal is why changes would become dead letters. It never holds values of items.
type refusal struct{ code, reason string }

// refusalRoom bounds the different reasons that are kept; the rest counts as one.
const refusalRoom = 64

var otherRefusals = refusal{"other", "further reasons"}

// The code and reason of records that the mapping cannot even read. What is wrong with them would
// show their content.
var malformed = refusal{"malformed", "the record is malformed"}

func newTally() tally { return tally{refusals: map[refusal]int64{}} }

func (t *tally) refuse(why refusal, n int64) {
	if _, known := t.refusals[why]; !known && len(t.refusals) >= refusalRoom {
		why = otherRefusals
	}
	t.refusals[why] += n
}

// merge adds another tally.
func (t *tally) merge(o *tally) {
	t.pages, t.records, t.bytes, t.ttl = t.pages+o.pages, t.records+o.records, t.bytes+o.bytes, t.ttl+o.ttl
	t.rows, t.cells, t.rowBytes, t.left = t.rows+o.rows, t.cells+o.cells, t.rowBytes+o.rowBytes, t.left+o.left
	t.ignored, t.refused = t.ignored+o.ignored, t.refused+o.refused
	t.items.merge(&o.items)
	t.rowSizes.merge(&o.rowSizes)
	for why, n := range o.refusals {
		t.refuse(why, n)
	}
	for hash, n := range o.rowKeys.counts {
		t.rowKeys.add(hash, n)
	}
	for hash, n := range o.partitions.counts {
		t.partitions.add(hash, n)
	}
	if o.oldest > 0 && (t.oldest == 0 || o.oldest < t.oldest) {
		t.oldest = o.oldest
	}
	t.newest = max(t.newest, o.newest)
}

// reset empties the tally and keeps its memory.
func (t *tally) reset() {
	refusals, rows, partitions := t.refusals, t.rowKeys.counts, t.partitions.counts
	clear(refusals)
	clear(rows)
	clear(partitions)
	*t = tally{refusals: refusals, rowKeys: heavy{counts: rows}, partitions: heavy{counts: partitions}}
}

// worker applies the mapping to pages.
type worker struct {
	*table
	dec   change.Decoder
	write transform.Write
	key   []byte
	tally tally
}

func newWorker(t *table) *worker { return &worker{table: t, tally: newTally()} }

// count applies the mapping to a page's records, and adds to the table's counts.
func (w *worker) count(page *source.Page) {
	w.tally.reset()
	w.tally.pages = 1
	now := time.Now()
	for i := range page.Records {
		w.record(now, &page.Records[i], page.Feed)
	}
	c := w.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.merge(&w.tally)
	c.peak = max(c.peak, c.sensor.Hottest(now))
}

// record applies the mapping to one record.
func (w *worker) record(now time.Time, r *change.Record, feed change.Feed) {
	t := &w.tally
	t.records, t.bytes = t.records+1, t.bytes+int64(len(r.Raw))
	if t.newest = max(t.newest, r.Created); t.oldest == 0 || r.Created < t.oldest {
		t.oldest = r.Created
	}
	if r.TTL {
		t.ttl++
	}
	if r.New != nil {
		t.items.add(int64(len(r.New)))
	}
	w.dec.Reset()
	if keys, err := w.dec.Image(r.Keys); err == nil {
		if v := keys.Get(w.Info.Schema.Partition.Name); v != nil {
			w.key = v.AppendJSON(w.key[:0])
			t.partitions.add(change.HashKey(w.key), 1)
		}
	}
	c := change.Change{
		Op: r.Op, TTL: r.TTL, Version: r.Version, Created: r.Created,
		SequenceNumber: change.SequenceNumber(r.SequenceNumber), Feed: feed, KeyHash: r.KeyHash,
		Raw: r.Raw, Keys: r.Keys, New: r.New, Old: r.Old,
	}
	w.dec.Reset()
	if err := w.Program.Change(&w.dec, &c, &w.write); err != nil {
		t.refused++
		why := malformed
		if refused := (*transform.Refusal)(nil); errors.As(err, &refused) {
			why = refusal{refused.Code, refused.What}
		}
		t.refuse(why, 1)
		return
	}
	if len(w.write.Rows) == 0 {
		t.ignored++
		return
	}
	w.countRows()
	w.counts.sensor.Wrote(now, &w.write, &c, &c)
}

// countRows counts the rows and cells of a write.
func (w *worker) countRows() {
	t := &w.tally
	for i := range w.write.Rows {
		row := &w.write.Rows[i]
		size := int64(len(row.Key))
		for j := range row.Cells {
			size += int64(len(row.Cells[j].Qualifier) + len(row.Cells[j].Value))
		}
		t.rows, t.cells, t.rowBytes = t.rows+1, t.cells+int64(len(row.Cells)), t.rowBytes+size
		t.rowKeys.add(change.HashKey(row.Key), 1)
		if row.Left {
			t.left++
		} else {
			t.rowSizes.add(size)
		}
	}
}

// snapshot returns a copy of the counts.
func (c *counts) snapshot() (t tally, peak float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = c.tally
	t.refusals = maps.Clone(c.refusals)
	t.rowKeys.counts, t.partitions.counts = maps.Clone(c.rowKeys.counts), maps.Clone(c.partitions.counts)
	return t, c.peak
}
