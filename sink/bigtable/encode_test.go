package bigtable

import (
	"bytes"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// anyWrite draws a write of one row that passes the checks, of any class.
func anyWrite(t *rapid.T) *transform.Write {
	w := &transform.Write{Item: item("a"), Version: change.Version(rapid.Int64Range(1, maxVersion-1).Draw(t, "version"))}
	row := transform.Row{Key: []byte("row"), Left: rapid.Bool().Draw(t, "left"),
		Class: rapid.SampledFrom([]transform.Class{transform.ClassR, transform.ClassK, transform.ClassD}).Draw(t, "class")}
	row.Exclusive = row.Class == transform.ClassR
	if row.Exclusive && rapid.Bool().Draw(t, "history") {
		row.KeepHistory = []string{"h"}
	}
	family, column := rapid.SampledFrom([]string{"d", "h"}), rapid.SliceOfN(rapid.Byte(), 0, 3)
	near := rapid.OneOf(rapid.Int64Range(0, maxVersion-1),
		rapid.Int64Range(int64(max(0, w.Version-2)), int64(min(maxVersion-1, w.Version+2))))
	for range rapid.IntRange(0, 4).Draw(t, "deletes") {
		d := transform.Delete{Family: family.Draw(t, "family"), Qualifier: column.Draw(t, "column"),
			Versioned: rapid.Bool().Draw(t, "versioned")}
		if rapid.Bool().Draw(t, "ranged") {
			d.From, d.To = near.Draw(t, "from"), near.Draw(t, "to")
		}
		row.Deletes = append(row.Deletes, d)
	}
	for range rapid.IntRange(0, 4).Draw(t, "cells") {
		row.Cells = append(row.Cells, transform.Cell{Family: family.Draw(t, "family"), Qualifier: column.Draw(t, "column"),
			Mapped: rapid.Bool().Draw(t, "mapped"), Time: near.Draw(t, "time"), Value: []byte("x")})
	}
	w.Rows = []transform.Row{row}
	return w
}

// TestNoDeleteRemovesWhatItsChangeSets holds for the first attempt, where deletes stand before
// sets, and for any later one, where the skip branch may only reach below the version.
func TestNoDeleteRemovesWhatItsChangeSets(t *testing.T) {
	r := requests.Get().(*request)
	rapid.Check(t, func(t *rapid.T) {
		w := anyWrite(t)
		if checkWrite(w) != nil {
			t.Skip("the checks refuse it")
		}
		r.encode(w, &w.Rows[0], []string{"d", "h"})
		setSeen := false
		for _, m := range sent(t, r).FalseMutations {
			if m.GetSetCell() != nil {
				setSeen = true
			} else if setSeen {
				t.Fatalf("a delete stands behind a set: %v", m)
			}
		}
		if !setSeen {
			t.Fatal("no marker is set")
		}
		for _, m := range sent(t, r).TrueMutations {
			d := m.GetDeleteFromColumn()
			switch {
			case w.Rows[0].Class != transform.ClassD || d == nil:
				t.Fatalf("the skip branch of class %s holds %v", w.Rows[0].Class, m)
			case d.TimeRange.GetEndTimestampMicros() == 0 || change.Version(d.TimeRange.EndTimestampMicros) > w.Version*1000:
				t.Fatalf("the skip branch reaches the version %d: %v", w.Version, m)
			case d.TimeRange.StartTimestampMicros >= d.TimeRange.EndTimestampMicros:
				t.Fatalf("an empty range: %v", m)
			case !versioned(&w.Rows[0], d):
				t.Fatalf("the skip branch deletes by mapped timestamps: %v", m)
			}
		}
	})
}

func versioned(row *transform.Row, d *btpb.Mutation_DeleteFromColumn) bool {
	for _, x := range row.Deletes {
		if x.Versioned && x.Family == d.FamilyName && bytes.Equal(x.Qualifier, d.ColumnQualifier) {
			return true
		}
	}
	return false
}

// TestUsedRequestEncodesLikeANewOne guards the slabs: nothing of an earlier row may show through.
func TestUsedRequestEncodesLikeANewOne(t *testing.T) {
	used := requests.New().(*request)
	rapid.Check(t, func(t *rapid.T) {
		w := anyWrite(t)
		if checkWrite(w) != nil {
			t.Skip("the checks refuse it")
		}
		fresh := requests.New().(*request)
		for _, r := range []*request{used, fresh} {
			r.encode(w, &w.Rows[0], []string{"d", "h"})
		}
		if a, b := sent(t, used), sent(t, fresh); !proto.Equal(a, b) {
			t.Fatalf("used %v\nfresh %v", a, b)
		}
	})
}

// BenchmarkEncode measures the work for one row from the write to its bytes, without the call.
func BenchmarkEncode(b *testing.B) {
	writes, r := benchWrites(), requests.New().(*request)
	var buf []byte
	for i := 0; b.Loop(); i++ {
		w := writes[i%len(writes)]
		r.encode(w, &w.Rows[0], nil)
		_ = r.size()
		buf = r.append(buf[:0])
	}
}
