package checkpoint

import (
	"fmt"
	"testing"
)

// benchLog is a log of frames: 100 shards, eight pages of 430 records in each frame.
func benchLog(b *testing.B, shards int) *memLog {
	var all []ShardSeen
	for i := range shards {
		all = append(all, ShardSeen{ID: fmt.Sprintf("shardId-%020d-%08x", 1_700_000_000_000+i, i)})
	}
	w, err := claim(b, new(memLog), NewState(), "a", 1)
	if err != nil {
		b.Fatal(err)
	}
	w.must(b, &Start{Stream: "arn:aws:dynamodb:eu-west-1:123456789012:table/orders/stream/2026-11-21T00:00:00.000",
		Date: 1_700_000_000_000, Shards: all})
	data := make([]byte, 1<<20)
	for i := range 100 {
		f := &Frame{}
		for j := range 8 {
			f.Pages = append(f.Pages, page(w.s, all[(8*i+j)%shards].ID, 430, false))
		}
		if err := w.append(b, f, data); err != nil {
			b.Fatal(err)
		}
	}
	return w.l
}

// BenchmarkFoldFrames includes the hash of every message: it is most of it.
func BenchmarkFoldFrames(b *testing.B) {
	l := benchLog(b, 100)
	size, s := 0, l.fold(b)
	for _, m := range l.msgs {
		size += len(m)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		l.fold(b)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Changes), "ns/record")
}

// BenchmarkBeat of ten thousand shards.
func BenchmarkBeat(b *testing.B) {
	s := benchLog(b, 10_000).fold(b)
	beat := &Beat{Date: s.Date, Watermark: s.Date}
	b.ReportAllocs()
	for b.Loop() {
		beat.Date++
		beat.Watermark++
		s.applyBeat(beat)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := benchLog(b, 10_000).fold(b)
	for b.Loop() {
		parts, err := s.Snapshot(1 << 20)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(parts[0].Data)), "bytes")
	}
}
