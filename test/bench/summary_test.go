package bench

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// summaryLine is a line of the table, measured in each round.
type summaryLine struct {
	name    string
	base    string // line whose rate and CPU are 1
	measure func(*testing.B) figures
}

// BenchmarkSummary prints what the daemon does at several latencies of Bigtable, and what one would
// write by hand beside it: medians of TAILRACE_BENCH_ROUNDS rounds (3), in each of which every line
// is measured once. So what else the machine does meets all of them.
func BenchmarkSummary(b *testing.B) {
	rows := summaryLines()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("TAILRACE_BENCH_ROUNDS"), "3"))
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	taken := map[string][]figures{}
	for range rounds {
		for _, r := range rows {
			var f figures
			b.Run(r.name, func(b *testing.B) { f = r.measure(b) }) // its servers, with all their items, end with it
			debug.FreeOSMemory()
			taken[r.name] = append(taken[r.name], f)
			fmt.Fprintf(os.Stderr, "%s: %.0f/s, %.1f µs, %.0f MiB\n", r.name, f.rate, f.cpu, f.peak)
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nmedian (least – most)\trecords/s\tto\tCPU µs a record\tto\tpeak MiB\t\n")
	for _, r := range rows {
		all, base := taken[r.name], taken[cmp.Or(r.base, r.name)]
		rate, cpu, peak := spread(all, figures.ofRate), spread(all, figures.ofCPU), spread(all, figures.ofPeak)
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%.2f\t%s\t\n", r.name,
			rate.text("%.0f"), rate.median/spread(base, figures.ofRate).median,
			cpu.text("%.1f"), cpu.median/spread(base, figures.ofCPU).median, peak.text("%.0f"))
	}
	_ = w.Flush()
	var rehearsed, made float64
	b.Run("cutover", func(b *testing.B) { rehearsed, made = measureStops(b) })
	fmt.Fprintf(&text, "\nwrite stop of a cutover: %.1f s rehearsed, %.1f s real: %.2f\n", rehearsed, made, made/rehearsed)
	_, _ = os.Stdout.WriteString(text.String()) // b.Log cuts it
	b.ReportMetric(0, "ns/op")
}

func summaryLines() []summaryLine {
	stream := func(n network) func(*testing.B) figures {
		return func(b *testing.B) figures {
			f, _ := load{tables: 1, items: 80_000, rounds: 1, network: n}.measure(b, true)
			return f
		}
	}
	copied := func(n network) func(*testing.B) figures {
		return func(b *testing.B) figures {
			return copyLoad{items: 300_000, null: true, network: n}.measure(b).figures
		}
	}
	large := func(b *testing.B) figures {
		f, _ := load{tables: 1, items: 6_000, rounds: 1, size: 100_000}.measure(b, true)
		return f
	}
	at := func(latency time.Duration) network { return network{latency: latency} }
	ten, twenty := at(10*time.Millisecond), at(20*time.Millisecond)
	by := func(h byHand) func(*testing.B) figures { return h.measure }
	return []summaryLine{
		{"stream, 0 ms", "", stream(network{})},
		{"stream, 0 ms, TLS", "stream, 0 ms", stream(network{tls: true})},
		{"stream, 10 ms", "stream, 0 ms", stream(ten)},
		{"stream, 20 ms", "stream, 0 ms", stream(twenty)},
		{"by hand, guarded, 0 ms", "stream, 0 ms", by(byHand{items: 40_000})},
		{"by hand, guarded, 20 ms", "stream, 0 ms", by(byHand{items: 40_000, network: twenty})},
		{"by hand, bulk, 0 ms", "stream, 0 ms", by(byHand{items: 80_000, bulk: true})},
		{"by hand, bulk, 20 ms", "stream, 0 ms", by(byHand{items: 80_000, bulk: true, network: twenty})},
		{"copy, 0 ms", "", copied(network{})},
		{"copy, 10 ms", "copy, 0 ms", copied(ten)},
		{"copy, 20 ms", "copy, 0 ms", copied(twenty)},
		{"copy by hand, guarded, 0 ms", "copy, 0 ms", by(byHand{items: 100_000, copies: true})},
		{"copy by hand, guarded, 20 ms", "copy, 0 ms", by(byHand{items: 100_000, copies: true, network: twenty})},
		{"copy by hand, bulk, 0 ms", "copy, 0 ms", by(byHand{items: 200_000, copies: true, bulk: true})},
		{"copy by hand, bulk, 20 ms", "copy, 0 ms", by(byHand{items: 200_000, copies: true, bulk: true, network: twenty})},
		{"stream, 6,000 items of 100 KB", "", large},
	}
}

func (f figures) ofRate() float64 { return f.rate }
func (f figures) ofCPU() float64  { return f.cpu }
func (f figures) ofPeak() float64 { return f.peak }

// spreadOf is what several rounds have taken.
type spreadOf struct{ least, median, most float64 }

func spread(all []figures, of func(figures) float64) spreadOf {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = of(f)
	}
	slices.Sort(values)
	return spreadOf{values[0], values[len(values)/2], values[len(values)-1]}
}

func (s spreadOf) text(format string) string {
	if s.least == s.most {
		return fmt.Sprintf(format, s.median)
	}
	return fmt.Sprintf(format+" ("+format+" – "+format+")", s.median, s.least, s.most)
}
