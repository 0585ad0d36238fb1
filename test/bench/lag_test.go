package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkLagUnderLoad writes 5,000 items a second to a table, or 200, and reports the median and the 99th
// percentile of the time from a put until Bigtable has acknowledged the item's row: alone, and
// beside a copy without a limit of its own. Bigtable is a null server 10 ms away; a narrow one has
// 96 calls in flight at most, 9,600 a second. It reports also how many items a second the copy
// brings meanwhile, and the daemon's CPU as a share of one core. Afterwards every cell is compared.
//
// The servers are in this process. The lag means something only on a machine that has processors to
// spare for both.
func BenchmarkLagUnderLoad(b *testing.B) {
	const narrow = ", max_in_flight: 96"
	for _, l := range []lagLoad{
		{name: "alone"},
		{name: "200_a_second", rate: 200},
		{name: "beside_a_copy", older: 400_000},
		{name: "narrow/alone", bigtable: narrow},
		{name: "narrow/beside_a_copy", older: 150_000, bigtable: narrow},
	} {
		b.Run(l.name, func(b *testing.B) {
			for range b.N {
				l.measure(b)
			}
		})
	}
}

// lagLoad is a stream of changes, and how many older items are copied beside it.
type lagLoad struct {
	name     string
	rate     int // changes a second; 0: lagRate
	older    int
	bigtable string // further YAML of it
}

const (
	lagRate   = 5000
	lagTick   = 10 * time.Millisecond
	lagWarmUp = 5 * time.Second // not measured: the bound is sought
	lagTime   = 15 * time.Second
)

func (l lagLoad) measure(b *testing.B) {
	b.StopTimer()
	dir := b.TempDir()
	bin := binary(b, dir)
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1, Partitions: 16})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	copied := copyLoad{items: l.older, size: 250}
	copied.fill(b, sb)
	front := serveFront(b, sb.Bigtable.Addr(), true, network{latency: 10 * time.Millisecond})
	front.acknowledged = make(chan acknowledged, 1<<20)
	admin := freeAddress(b)
	table := load{tables: 1, items: l.older, bigtable: l.bigtable, options: ", backfill: none"}
	if l.older > 0 {
		table.options = ", backfill: {from: scan, read_units: 100000}"
	}
	config := table.configure(b, dir, sb.Endpoint(), admin)
	run(b, dir, environment(sb.Bigtable.Addr()), bin, "schema", "--apply", "-c", config)
	cmd := start(b, bin, environment(front.address), "run", "-c", config)
	d := &daemon{b: b, sb: sb, cmd: cmd, metrics: "http://" + admin + "/metrics"}
	d.waitFor("tailrace_applied_lag_seconds{", func(v float64) bool { return v > 0 })
	if l.older > 0 {
		d.waitFor("tailrace_copy_items_total{", func(v float64) bool { return v > 0 })
	}
	begin, before := time.Now(), processorTime(b, cmd.Process.Pid)
	first, _ := sample(d.metrics, "tailrace_copy_items_total{")
	b.StartTimer()
	put := d.putSteadily(cmp.Or(l.rate, lagRate), lagWarmUp+lagTime)
	b.StopTimer()
	last, _ := sample(d.metrics, "tailrace_copy_items_total{")
	wall, cpu := time.Since(begin), processorTime(b, cmd.Process.Pid)-before
	if l.older > 0 && last >= float64(l.older) {
		b.Logf("the copy was complete before the end")
	}
	lags := front.lagsOf(b, put)
	l.awaitCopy(b, d)
	stop(b, cmd)
	table.items += len(put)
	equal(b, table, sb, front)
	b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "lag_ms_p50")
	b.ReportMetric(float64(lags[len(lags)*99/100].Milliseconds()), "lag_ms_p99")
	b.ReportMetric((last-first)/wall.Seconds(), "copied_items/s")
	b.ReportMetric(100*cpu.Seconds()/wall.Seconds(), "%core")
	b.ReportMetric(0, "ns/op")
	b.StartTimer()
}

// awaitCopy returns when all older items are copied.
func (l lagLoad) awaitCopy(b *testing.B, d *daemon) {
	b.Helper()
	if l.older == 0 {
		return
	}
	d.waitFor("tailrace_copy_items_total{", func(v float64) bool { return v >= float64(l.older) })
}

// putSteadily puts items at a rate for a time, and returns when each was put.
func (d *daemon) putSteadily(perSecond int, lasts time.Duration) (at []time.Time) {
	rnd := rand.New(rand.NewPCG(2, 2))
	load := load{}
	begin := time.Now()
	tick := time.NewTicker(lagTick)
	defer tick.Stop()
	for now := range tick.C {
		if now.Sub(begin) > lasts {
			return at
		}
		for due := int(now.Sub(begin).Seconds() * float64(perSecond)); len(at) < due; {
			item := load.item(rnd, len(at), 1)
			key := fmt.Appendf(nil, `{"pk":{"S":"lag-%07d"},"sk":{"S":"s"}`, len(at))
			item = append(key, item[bytes.Index(item, []byte(`,"round"`)):]...)
			at = append(at, time.Now())
			if err := d.sb.DynamoDB.Put(sourceName(0), item); err != nil {
				d.b.Fatal(err)
			}
		}
	}
	return at
}

// lagsOf waits until all of the items are acknowledged, and returns the lags of those that were put
// after the warm-up, in order.
func (f *front) lagsOf(b *testing.B, put []time.Time) (lags []time.Duration) {
	b.Helper()
	seen := make([]bool, len(put))
	for left := len(put); left > 0; {
		select {
		case a := <-f.acknowledged:
			if seen[a.item] {
				continue // sent again
			}
			seen[a.item] = true
			left--
			if put[a.item].Sub(put[0]) > lagWarmUp {
				lags = append(lags, a.at.Sub(put[a.item]))
			}
		case <-time.After(2 * time.Minute):
			b.Fatalf("%d of %d items are not acknowledged", left, len(put))
		}
	}
	slices.Sort(lags)
	return lags
}

// acknowledged is an item of putSteadily, and when its row was acknowledged.
type acknowledged struct {
	item int
	at   time.Time
}

// noteLag notes the acknowledgement of an item of putSteadily.
func (f *front) noteLag(req []byte) {
	const prefix = "lag-"
	if i := bytes.Index(req[:min(200, len(req))], []byte(prefix)); i >= 0 {
		item := 0
		for _, c := range req[i+len(prefix) : i+len(prefix)+7] {
			item = 10*item + int(c-'0')
		}
		f.acknowledged <- acknowledged{item, time.Now()}
	}
}
