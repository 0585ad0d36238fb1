package limit

import (
	"fmt"
	"testing"
)

// at returns at how many of twenty looks changes waited at places.
func at(n map[Place]int) (all [places]int) {
	all[Nowhere] = 20
	for p, k := range n {
		all[p] += k
		all[Nowhere] -= k
	}
	return all
}

// TestJudge: the last place at which changes wait decides, a quarter of the looks is enough, and
// what explains the wait comes before the wait itself.
func TestJudge(t *testing.T) {
	waits := func(p Place) [places]int { return at(map[Place]int{p: 20}) }
	for _, c := range []struct {
		name string
		f    Facts
		want By
	}{
		{"nothing waits", Facts{}, Nothing},
		{"no processor is free, and nothing waits", Facts{CPUShort: 20}, Nothing},
		{"single calls are refused, and nothing waits", Facts{Counts: Counts{Calls: 90, Overloads: 10, Cuts: 1}}, Nothing},
		{"calls in flight as many as may be", Facts{Sink: waits(AtCall)}, Latency},
		{"so at a quarter of the looks", Facts{Sink: at(map[Place]int{AtCall: 5})}, Latency},
		{"so at less than a quarter", Facts{Sink: at(map[Place]int{AtCall: 4})}, Nothing},
		{"at several places, together a quarter", Facts{Sink: at(map[Place]int{AtCall: 1, AtMemory: 4})}, Memory},
		{"the bound was cut", Facts{Sink: waits(AtCall), Counts: Counts{Calls: 1000, Overloads: 20, Cuts: 1}}, Refusals},
		{"a tenth was refused of few calls", Facts{Sink: waits(AtCall), Counts: Counts{Calls: 20, Overloads: 2}}, Refusals},
		{"less was refused", Facts{Sink: waits(AtCall), Counts: Counts{Calls: 21, Overloads: 2}}, Latency},
		{"nothing was answered at all", Facts{Sink: waits(AtCall), Counts: Counts{}}, Latency},
		{"the sink is away", Facts{Sink: waits(AtRetry)}, Refusals},
		{"memory is full of what is refused", Facts{Sink: waits(AtMemory), Counts: Counts{Calls: 5, Overloads: 5}}, Refusals},
		{"refused, and no processor free", Facts{Sink: waits(AtCall), CPUShort: 20, Counts: Counts{Cuts: 1}}, Refusals},
		{"calls wait, and processors are short", Facts{Sink: waits(AtCall), CPUShort: 5}, CPU},
		{"so at less than a quarter", Facts{Sink: waits(AtCall), CPUShort: 4}, Latency},
		{"memory waits, and processors are short", Facts{Sink: waits(AtMemory), CPUShort: 20}, CPU},
		{"memory", Facts{Sink: waits(AtMemory)}, Memory},
		{"entries come late", Facts{Sink: waits(AtLog)}, Log},
		{"entries come late while calls are refused", Facts{Sink: waits(AtLog), Counts: Counts{Cuts: 1}}, Log},
		{"one goroutine unpacks", Facts{Sink: waits(AtProcessor)}, CPU},
		{"the log is full because Bigtable is slow", Facts{Sink: waits(AtCall), Reading: waits(AtLog)}, Latency},
		{"the source is behind because Bigtable is slow",
			Facts{Sink: waits(AtCall), Reading: waits(AtMemory), Counts: Counts{FullReads: 9, Reads: 9}}, Latency},
		{"appends are slow", Facts{Reading: waits(AtLog)}, Log},
		{"appends are slow because processors are short", Facts{Reading: waits(AtLog), CPUShort: 20}, CPU},
		{"pages wait for memory", Facts{Reading: waits(AtMemory)}, Memory},
		{"so while processors are short", Facts{Reading: waits(AtMemory), CPUShort: 20}, Memory},
		{"one goroutine packs", Facts{Reading: waits(AtProcessor)}, CPU},
		{"pages wait for memory, and DynamoDB has more",
			Facts{Reading: waits(AtMemory), Counts: Counts{FullReads: 9, Reads: 9}}, Memory},
		{"reads are full", Facts{Counts: Counts{FullReads: 3, Reads: 300}}, Source},
		{"a burst filled two reads", Facts{Counts: Counts{FullReads: 2, Reads: 2}}, Nothing},
		{"reads fail", Facts{Counts: Counts{FailedReads: 2, Reads: 8}}, Source},
		{"few reads fail", Facts{Counts: Counts{FailedReads: 2, Reads: 9}}, Nothing},
		{"one read failed", Facts{Counts: Counts{FailedReads: 1, Reads: 1}}, Nothing},
		{"reads are throttled for a while", Facts{Throttled: true}, Source},
	} {
		f := c.f
		f.Looks = 20
		for _, all := range []*[places]int{&f.Sink, &f.Reading} {
			if *all == ([places]int{}) {
				all[Nowhere] = f.Looks
			}
		}
		if got := Judge(&f); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestWindowHoldsTheLastSeconds: counts are those of the window, and places those of its looks; the
// first look only begins it.
func TestWindowHoldsTheLastSeconds(t *testing.T) {
	var w Window
	look := func(i int) Look {
		l := Look{InFlight: i % 2, Bound: i, Most: 99, CPUShort: i%4 == 0, Throttled: i == 59}
		l.Counts = Counts{Calls: uint64(10 * i), Overloads: uint64(i), Reads: uint64(2 * i), FullReads: 7}
		if l.Sink = AtCall; i < 50 {
			l.Sink = AtMemory
		}
		return l
	}
	for i := range 60 {
		if _, known := w.Facts(); known != (i > PerSecond) {
			t.Errorf("facts after %d looks: %v", i, known)
		}
		w.Add(look(i))
	}
	f, _ := w.Facts()
	want := Facts{
		Looks: 20, CPUShort: 5, Throttled: true, Calls: Calls{InFlight: 1, Bound: 59, Most: 99},
		Counts: Counts{Calls: 200, Overloads: 20, Reads: 40},
	}
	want.Sink[AtMemory], want.Sink[AtCall], want.Reading[Nowhere] = 10, 10, 20
	if f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	w.Clear()
	if _, known := w.Facts(); known {
		t.Error("facts after Clear")
	}
}

// TestEachLimitHasItsWordAndRemedy, but what limits nothing needs none.
func TestEachLimitHasItsWordAndRemedy(t *testing.T) {
	words := map[string]bool{}
	for _, by := range All() {
		word, remedy := by.Word(), by.Remedy(nil)
		if word == "" || words[word] || (remedy == "") != (by == Nothing) {
			t.Errorf("%s: %q, %q", by, word, remedy)
		}
		words[word] = true
	}
	remedies := map[string]bool{}
	for _, c := range []Calls{
		{InFlight: 3, Bound: 32, Most: 2048}, {32, 32, 2048}, {2040, 2048, 2048}, {MostCalls, MostCalls, MostCalls},
	} {
		remedies[Latency.Remedy(&c)] = true
	}
	if len(remedies) != 4 {
		t.Error(fmt.Sprint(remedies), "for few items, and a bound by Bigtable, by the configuration, and by what that may be")
	}
}

func BenchmarkLook(b *testing.B) {
	var w Window
	for b.Loop() {
		w.Add(Look{Sink: AtCall})
	}
}
