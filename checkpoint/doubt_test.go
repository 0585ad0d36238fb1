package checkpoint

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// doubted returns a log with a complete copy of an export that DynamoDB could not be asked about.
func doubted(t *testing.T) *writer {
	t.Helper()
	w := owned(t, ShardSeen{ID: "a"})
	w.must(t, marksOf(SinkBigtable, "archive"), &Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Began: w.s.Date + 1},
		&Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Export: "file:///e", Parts: 1, Version: 7, Began: w.s.Date + 1,
			Unconfirmed: true})
	if len(w.s.Gaps) > 0 {
		t.Fatalf("a gap before the copy is complete: %+v", w.s.Gaps)
	}
	w.must(t, &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Items: 30, Done: true}}, Date: w.s.Date + 1})
	return w
}

// TestCopyOfAnUnconfirmedExportStaysInDoubt until a comparison that began later finds everything
// equal, or a resync of the whole table ends, or an operator waives it. It lasts over restarts and
// snapshots, and concerns the rows alone.
func TestCopyOfAnUnconfirmedExportStaysInDoubt(t *testing.T) {
	ends := map[string]func(w *writer, id string) []any{
		"verified": func(_ *writer, id string) []any {
			return []any{&Control{Verified: &Verified{Gaps: []string{id}}, At: 99}}
		},
		"resynced": func(_ *writer, id string) []any {
			return []any{&Control{Resync: &ResyncOrder{ID: "r"}},
				&Healed{ID: "r", Gaps: []string{id}, Sinks: map[string]string{SinkBigtable: ""}}}
		},
		"waived": func(_ *writer, id string) []any {
			return []any{&Control{Waive: &Waive{Gap: id, Sink: SinkBigtable}, By: "me"}}
		},
	}
	for how, end := range ends {
		w := doubted(t)
		for what, s := range map[string]*State{"folded": w.l.fold(t), "restored": w.l.restored(t)} {
			if s.DiffersSince() == 0 || len(s.Doubts()) != 1 || s.OpenGaps() != 0 ||
				!slices.Equal(s.DifferingSinks(&s.Gaps[0]), []string{SinkBigtable}) {
				t.Fatalf("%s: gaps %+v", what, s.Gaps)
			}
		}
		id := w.s.Doubts()[0]
		if w.must(t, end(w, id)...); len(w.s.Doubts()) != 0 || w.s.DiffersSince() != 0 {
			t.Errorf("%s: %+v", how, w.s.Gaps)
		}
		sameState(t, how, w.l.fold(t), w.l.restored(t))
	}
}

// TestComparisonEndsOnlyDoubts: a gap that lost changes is not healed by it, nor is a doubt that it
// does not name, because that came after it began.
func TestComparisonEndsOnlyDoubts(t *testing.T) {
	w := doubted(t)
	w.must(t, &Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 5, Until: 9, Found: w.s.Date, Ends: true,
		Accepted: true})
	var ids []string
	for i := range w.s.Gaps {
		ids = append(ids, w.s.Gaps[i].ID())
	}
	w.must(t, &Control{Verified: &Verified{Gaps: []string{ids[1], "unknown"}}})
	if len(w.s.Doubts()) != 1 || len(w.s.DifferingSinks(&w.s.Gaps[1])) != 2 {
		t.Fatalf("%+v", w.s.Gaps)
	}
	w.must(t, &Control{Verified: &Verified{Gaps: ids}})
	if len(w.s.Doubts()) != 0 || len(w.s.DifferingSinks(&w.s.Gaps[1])) != 2 {
		t.Fatalf("%+v", w.s.Gaps)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
}

// TestCopyOfAWholeExportLeavesNoDoubt; and one that was cancelled leaves the gap of a cancelled
// copy.
func TestCopyOfAWholeExportLeavesNoDoubt(t *testing.T) {
	w := copied(t)
	w.must(t, marksOf(SinkBigtable), &CopyMarks{ID: "c1", Parts: map[int]CopyMark{0: {Done: true}, 1: {Done: true}}})
	if len(w.s.Gaps) > 0 {
		t.Errorf("%+v", w.s.Gaps)
	}
	w = owned(t, ShardSeen{ID: "a"})
	w.must(t, marksOf(SinkBigtable), &Copy{ID: "c1", Why: CopyBackfill, From: FromExport, Export: "e", Parts: 1,
		Unconfirmed: true}, &Control{Copy: &CopyOrder{"c1", CopyCancel}})
	if len(w.s.Gaps) != 1 || len(w.s.Doubts()) != 0 || !w.s.BigtableDiffers(&w.s.Gaps[0]) {
		t.Errorf("cancelled: %+v", w.s.Gaps)
	}
}
