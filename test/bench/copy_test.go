package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// copyLoad is a table that is older than its stream, and how it is copied.
type copyLoad struct {
	name     string
	items    int
	random   bool   // the texts do not compress; else about 2:1
	size     int    // bytes of an item; 0: about 1 KB
	memory   string // memory.copy; empty: the default
	segments int    // 0: what the daemon chooses
	null     bool   // into the null server
	network  network
	writer   bool // another client writes an item now and then, and looks for it in Bigtable
}

// BenchmarkCopy copies a table that is older than its stream, by a scan with a read budget that is
// no limit. It reports items per second of wall time, from the first page that is read until the
// last item is durable; the daemon's CPU per item, user and system, with all servers outside of its
// process, and theirs; its peak memory; and, with a writer beside the copy, the time from a put
// until a reader of Bigtable sees it. Afterwards every cell is compared. On a machine that does
// other work too, only the CPU times mean something: the rate on N free cores is at most N / (both
// together).
//
// What a copy may have in hand, divided by the time that a page waits for the stream, bounds its
// rate. The first items wait that long, too, which makes a short copy slower: sustained_items/s is
// the rate from the first durable items on.
func BenchmarkCopy(b *testing.B) {
	for _, l := range []copyLoad{
		{name: "compressible/emulator", items: 200_000, writer: true},
		{name: "random/emulator", items: 100_000, random: true, writer: true},
		{name: "64_segments/emulator", items: 200_000, segments: 64, writer: true},
		{name: "256MiB/null_server", items: 300_000, memory: "256MiB", null: true},
		{name: "10ms/null_server", items: 300_000, null: true, network: network{latency: 10 * time.Millisecond}},
		{name: "20ms/null_server", items: 300_000, null: true, network: network{latency: 20 * time.Millisecond}},
		{name: "million/null_server", items: 1_000_000, size: 250, null: true},
	} {
		b.Run(l.name, func(b *testing.B) {
			for range b.N {
				l.report(b)
			}
		})
	}
}

// report reports what one run has taken.
func (l copyLoad) report(b *testing.B) {
	b.StopTimer()
	f := l.measure(b)
	b.ReportMetric(f.peak, "MiB")
	b.ReportMetric(f.whole, "items/s")
	b.ReportMetric(f.rate, "sustained_items/s")
	b.ReportMetric(f.cpu, "cpu_µs/item")
	b.ReportMetric(f.servers, "servers_cpu_µs/item")
	if lags := f.lags; len(lags) > 0 {
		slices.Sort(lags)
		b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "lag_ms_median")
		b.ReportMetric(float64(lags[len(lags)-1].Milliseconds()), "lag_ms_worst")
	}
	b.ReportMetric(0, "ns/op")
	b.StartTimer()
}

// copyFigures are what one copy has taken. The rate is that from the first durable items on.
type copyFigures struct {
	figures
	whole   float64 // items a second from the first page on
	servers float64 // µs of CPU an item, of all servers
	lags    []time.Duration
}

func (l copyLoad) measure(b *testing.B) copyFigures {
	b.Helper()
	dir := b.TempDir()
	bin := binary(b, dir)
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	l.fill(b, sb)
	bigtable := sb.Bigtable.Addr()
	front := &front{}
	if l.null {
		front = serveFront(b, bigtable, true, l.network)
		bigtable = front.address
	}
	admin := freeAddress(b)
	backfill := ", backfill: {from: scan, read_units: 100000" + l.segmentsKey() + "}"
	table := load{tables: 1, items: l.items, options: backfill}
	if l.memory != "" {
		table.settings = "memory: {copy: " + l.memory + "}\n"
	}
	config := table.configure(b, dir, sb.Endpoint(), admin)
	env := environment(sb.Bigtable.Addr())
	run(b, dir, env, bin, "schema", "--apply", "-c", config)
	cmd := start(b, bin, environment(bigtable), "run", "-c", config)
	d := &daemon{b: b, sb: sb, cmd: cmd, metrics: "http://" + admin + "/metrics"}
	d.waitFor("tailrace_copy_read_units_total{", func(v float64) bool { return v > 0 })
	begin, before := time.Now(), processorTime(b, os.Getpid())
	lags, sustained := l.copyBeside(b, d)
	wall, servers := time.Since(begin), processorTime(b, os.Getpid())-before
	peak := peakMemory(b, cmd.Process.Pid)
	cpu := stop(b, cmd)
	table.items += len(lags)
	equal(b, table, sb, front)
	items := float64(l.items)
	return copyFigures{
		figures: figures{float64(cpu.Microseconds()) / items, sustained, peak},
		whole:   items / wall.Seconds(), servers: float64(servers.Microseconds()) / items, lags: lags,
	}
}

// BenchmarkCopyStart starts the daemon beside a table of 100 items that is older than its stream,
// and reports the seconds from there until a reader of Bigtable sees the first of them: at least
// seven, because the first page is read two seconds behind the first listing, and written once
// everything up to its reply and five seconds is known to be applied.
func BenchmarkCopyStart(b *testing.B) {
	for range b.N {
		b.StopTimer()
		dir := b.TempDir()
		bin := binary(b, dir)
		sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoS3: true, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		l := copyLoad{items: 100}
		l.fill(b, sb)
		config := load{tables: 1, options: ", backfill: scan"}.configure(b, dir, sb.Endpoint(), freeAddress(b))
		env := environment(sb.Bigtable.Addr())
		run(b, dir, env, bin, "schema", "--apply", "-c", config)
		rows := (&daemon{b: b, sb: sb}).open(targetName(0))
		<-time.After(rand.N(time.Second)) // at no fixed phase of the service's second
		b.StartTimer()
		begin := time.Now()
		cmd := start(b, bin, env, "run", "-c", config)
		for row := bigtable.Row(nil); len(row) == 0; <-time.After(5 * time.Millisecond) {
			if row, err = rows.ReadRow(b.Context(), "customer-000000#order-000"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s_to_first_item")
		b.ReportMetric(0, "ns/op")
		b.StopTimer()
		stop(b, cmd)
		if err := sb.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func (l copyLoad) segmentsKey() string {
	if l.segments == 0 {
		return ""
	}
	return fmt.Sprintf(", segments: %d", l.segments)
}

// fill makes the table and its items. None of them is in the stream.
func (l copyLoad) fill(b *testing.B, sb *sandbox.Sandbox) {
	b.Helper()
	post(b, sb, "CreateTable", fmt.Sprintf(`{"TableName":%q,
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
		"BillingMode":"PAY_PER_REQUEST",
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`, sourceName(0)))
	rnd := rand.New(rand.NewPCG(1, 1))
	if err := sb.DynamoDB.Fill(sourceName(0), func(yield func([]byte) bool) {
		for i := 0; i < l.items && yield(l.item(rnd, i)); i++ {
		}
	}); err != nil {
		b.Fatal(err)
	}
}

// item has 13 attributes.
func (l copyLoad) item(rnd *rand.Rand, i int) []byte {
	var s strings.Builder
	fmt.Fprintf(&s, `{"pk":{"S":"customer-%06d"},"sk":{"S":"order-%03d"}`, i/20, i%20)
	if l.size > 0 {
		fmt.Fprintf(&s, `,"text":{"S":"%0*d"}`, max(l.size-100, 1), i)
	}
	for a := 0; a < 8 && l.size == 0; a++ {
		fmt.Fprintf(&s, `,"attribute%d":{"S":"`, a)
		writeText(&s, rnd, 96, l.random)
		s.WriteString(`"}`)
	}
	s.WriteString(`,"price":{"N":"129.95"},"open":{"BOOL":true},` +
		`"lines":{"L":[{"M":{"sku":{"S":"a-1"},"n":{"N":"2"}}},{"M":{"sku":{"S":"b-7"},"n":{"N":"1"}}}]}}`)
	return []byte(s.String())
}

// writeText writes n characters: random ones of 64, or every second half of them always the same.
func writeText(s *strings.Builder, rnd *rand.Rand, n int, random bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	same := 0
	if !random {
		same = n / 2
		s.WriteString(strings.Repeat("in stock; ", n)[:same])
	}
	for n -= same; n > 0; n -= 8 {
		bits := rnd.Uint64()
		for range min(n, 8) {
			s.WriteByte(alphabet[bits%64])
			bits >>= 6
		}
	}
}

// copyBeside returns once all items are durable, with the lags of what was written meanwhile, and
// the items per second from the first durable ones on.
func (l copyLoad) copyBeside(b *testing.B, d *daemon) (lags []time.Duration, sustained float64) {
	b.Helper()
	copied := make(chan struct{})
	var writer sync.WaitGroup
	if l.writer {
		writer.Go(func() { lags = d.writeUntil(copied) })
	}
	first, begin := 0.0, time.Now()
	last, since := 0.0, begin
	for now := range time.Tick(250 * time.Millisecond) {
		v, _ := sample(d.metrics, "tailrace_copy_items_total{")
		if first == 0 {
			first, begin = v, now
		}
		if v >= float64(l.items) {
			break
		}
		if v > last {
			last, since = v, now
		} else if now.Sub(since) > 2*time.Minute {
			b.Fatalf("%.0f of %d items copied", v, l.items)
		}
	}
	close(copied)
	sustained = (float64(l.items) - first) / time.Since(begin).Seconds()
	writer.Wait()
	return lags, sustained
}

// writeUntil puts one item after the other, and waits until a reader of Bigtable sees each.
func (d *daemon) writeUntil(copied <-chan struct{}) (lags []time.Duration) {
	rows := d.open(targetName(0))
	for i := 0; ; i++ {
		select {
		case <-copied:
			return lags
		case <-time.After(time.Duration(100+17*(i%10)) * time.Millisecond): // at no fixed phase of the poll
		}
		begin := time.Now()
		item := fmt.Appendf(nil, `{"pk":{"S":"lag"},"sk":{"S":"%d"},"v":{"N":"1"},"w":{"N":"1"},"x":{"S":"%0999d"}}`, i, i)
		if err := d.sb.DynamoDB.Put(sourceName(0), item); err != nil {
			d.b.Error(err)
			return lags
		}
		for key := fmt.Sprintf("lag#%d", i); ; <-time.After(5 * time.Millisecond) {
			row, err := rows.ReadRow(d.b.Context(), key)
			if err != nil {
				d.b.Error(err)
				return lags
			}
			if len(row) > 0 {
				break
			}
		}
		lags = append(lags, time.Since(begin))
	}
}
