package verify

import (
	"fmt"
	"testing"
)

// filledEngine has n items of about 400 bytes on both sides.
func filledEngine(b *testing.B, n int) *engine {
	e := newEngine(b, "")
	e.parts, e.perPage = 8, 500
	text := fmt.Sprintf("%0300d", 7)
	for i := range n {
		e.put(fmt.Sprintf("user#%04d", i%1000), fmt.Sprintf("%08d", i),
			fmt.Sprintf(`"name":{"S":%q},"price":{"N":"%d"},"stock":{"N":"7"}`, text, i))
	}
	e.fillPages()
	return e
}

// BenchmarkFull compares equal sides with the emulator in the same process: reading, projection,
// sort, merge.
func BenchmarkFull(b *testing.B) {
	e := filledEngine(b, 20_000)
	b.ResetTimer()
	for range b.N {
		f := e.full(e.options())
		if c := f.Counts; c.Equal != int64(len(e.items)) || c.Candidates > 0 {
			b.Fatalf("%+v", c)
		}
		if err := f.Remove(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(e.items))/b.Elapsed().Seconds(), "items/s")
}

// BenchmarkSettle settles 1,000 candidates that differ: three readings of the items, two of the
// rows. The two proofs, of 5 to 10 seconds each, are not in it.
func BenchmarkSettle(b *testing.B) {
	e := filledEngine(b, 1000)
	var all []Candidate
	for key := range e.items {
		all = append(all, Candidate{Key: key})
		e.items[key] = e.items[key][:len(e.items[key])-1] + `,"new":{"S":"x"}}`
	}
	s := e.settler()
	b.ResetTimer()
	for range b.N {
		verdicts, err := s.Settle(b.Context(), all)
		if err != nil || len(verdicts) != len(all) || verdicts[0].Status != Different {
			b.Fatal(err)
		}
	}
}
