package bigtable

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Hard limits of the service (google.bigtable.v2 and "Quotas and limits"); emulators enforce none
// of them.
const (
	maxRowKey    = 4 << 10
	maxQualifier = 16 << 10
	maxCell      = 100 << 20
	maxMutations = 100_000
	maxRequest   = maxMessage - 2<<20 // leaves room for framing and the table's name

	maxVersion = (1<<63 - 1) / 1000 // ms whose microseconds fit an int64

	setOverhead = 48 // bytes of a mutation besides names and values, at most
)

// TooOld reports whether a change with this version must be rejected at now, because the tombstone
// that would stop it may have been collected: it could bring a deleted item back for good. now is
// the source's clock (Options.Now), life how long tombstones are kept (Options.Tombstones).
func TooOld(version change.Version, now time.Time, life time.Duration) bool {
	return int64(version) < now.Add(gateMargin-life).UnixMilli()
}

// checkWrite rejects what the service would reject, before any row of the write is sent. If a row
// were rejected after another was written, half of the write would remain.
func checkWrite(w *transform.Write) *RejectedError {
	if w.Version <= 0 || w.Version >= maxVersion {
		return rejectf(CodeTimestamp, "version %d is not a time in milliseconds", w.Version)
	}
	for i := range w.Rows {
		if r := checkRow(w, &w.Rows[i]); r != nil {
			return r
		}
	}
	return nil
}

func checkRow(w *transform.Write, row *transform.Row) *RejectedError {
	switch {
	case len(row.Key) == 0:
		return rejectf(CodeRowKey, "the row key is empty")
	case len(row.Key) > maxRowKey:
		return rejectf(CodeRowKey, "the row key has %d bytes, %d are allowed", len(row.Key), maxRowKey)
	case len(row.Cells)+len(row.Deletes)+3 > maxMutations:
		n := len(row.Cells) + len(row.Deletes) + 3
		return rejectf(CodeMutations, "%d mutations in one row, %d are allowed", n, maxMutations)
	}
	size := len(row.Key) + len(w.Item.Key) + len(w.Item.Table) + len(w.Item.Pipeline) + 1024
	for i := range row.Cells {
		if r := checkCell(&row.Cells[i]); r != nil {
			return r
		}
		size += len(row.Cells[i].Family) + len(row.Cells[i].Qualifier) + len(row.Cells[i].Value) + setOverhead
	}
	for i := range row.Deletes {
		if r := checkDelete(&row.Deletes[i]); r != nil {
			return r
		}
		size += 2 * (len(row.Deletes[i].Family) + len(row.Deletes[i].Qualifier) + setOverhead)
	}
	if size > maxRequest {
		return rejectf(CodeRequest, "the row's request has about %d bytes, %d are allowed", size, maxRequest)
	}
	return nil
}

func checkCell(c *transform.Cell) *RejectedError {
	switch {
	case c.Family == "":
		return rejectf(CodeFamily, "a cell names no family")
	case len(c.Qualifier) > maxQualifier:
		return rejectf(CodeQualifier, "a column qualifier has %d bytes, %d are allowed", len(c.Qualifier), maxQualifier)
	case len(c.Value) > maxCell:
		return rejectf(CodeCell, "a cell has %d bytes, %d are allowed", len(c.Value), maxCell)
	case c.Aggregate && len(c.Value) != 8:
		return rejectf(CodeMalformed, "an aggregate takes 8 bytes, not %d", len(c.Value))
	case c.Time < 0 || c.Time >= maxVersion:
		return rejectf(CodeTimestamp, "cell timestamp %d ms is out of range", c.Time)
	}
	return nil
}

func checkDelete(d *transform.Delete) *RejectedError {
	switch {
	case d.Family == "":
		return rejectf(CodeFamily, "a delete names no family")
	case len(d.Qualifier) > maxQualifier:
		return rejectf(CodeQualifier, "a column qualifier has %d bytes, %d are allowed", len(d.Qualifier), maxQualifier)
	case d.From < 0 || d.To < 0 || d.From >= maxVersion || d.To >= maxVersion:
		return rejectf(CodeTimestamp, "delete range [%d, %d) ms is out of range", d.From, d.To)
	case d.To != 0 && d.To <= d.From:
		return rejectf(CodeTimestamp, "delete range [%d, %d) ms is empty", d.From, d.To)
	case d.Qualifier == nil && (d.From != 0 || d.To != 0):
		return rejectf(CodeMalformed, "a family cannot be deleted by time range")
	}
	return nil
}
