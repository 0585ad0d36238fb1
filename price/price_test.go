package price

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestPollsOfIdleShards: a month has 2,628,000 seconds, and 100,000 calls cost two cents.
func TestPollsOfIdleShards(t *testing.T) {
	near(t, "polls every second", MonthlyPolls(time.Second), 2_628_000)
	near(t, "polls every 200 ms", MonthlyPolls(200*time.Millisecond), 13_140_000)
	near(t, "polls every minute", MonthlyPolls(time.Minute), 43_800)
	near(t, "one shard every second", StreamReadDollars(MonthlyPolls(time.Second)), 0.5256)
	near(t, "44 shards every second", StreamReadDollars(44*MonthlyPolls(time.Second)), 23.1264)
	near(t, "44 shards every minute", StreamReadDollars(44*MonthlyPolls(time.Minute)), 0.38544)
	near(t, "an account with fewer than the free ones", PaidStreamReadDollars(2_499_999), 0)
	near(t, "an account with 2.6 million", PaidStreamReadDollars(2_600_000), 0.02)
}

// TestIdleShardsOfATable: as `check` and `status --cost` have it.
func TestIdleShardsOfATable(t *testing.T) {
	if got, want := IdleOf(44, time.Second, 1), (Idle{44, 1, 115_632_000, 23.13}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := IdleOf(3, time.Minute, 1./60), (Idle{3, 60, 131_400, 0.03}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReadsExportsAndTransfer(t *testing.T) {
	near(t, "28 GiB by scan", ReadUnitDollars(28<<30/4096), 0.917504)
	near(t, "28 GiB by export", ExportDollars(28<<30), 3.444)
	near(t, "10 TiB to the other cloud", TransferDollars(10<<40), 921.6)
	near(t, "a node", NodeDollars(1), 474.5)
	near(t, "cents", Cents(0.125), 0.13)
}

// TestMonthOfRates: what a table costs is the sum of its parts, and a share of the nodes.
func TestMonthOfRates(t *testing.T) {
	r := Rates{StreamReads: 44, ReadUnits: 100, Writes: 1000, RowsRead: 500}
	m := r.Month()
	near(t, "stream reads", m.StreamReads, 23.1264)
	near(t, "read units", m.ReadUnits, 32.85)
	near(t, "share of the nodes", r.NodeShare(), (1000/17000.+1000/14000.+500/17000.)/0.7)
	near(t, "nodes", m.Nodes, r.NodeShare()*474.5)
	near(t, "total", m.Total, m.StreamReads+m.ReadUnits+m.Nodes)
	sum := r.Add(Rates{StreamReads: 1, ReadUnits: 2, Writes: 3, RowsRead: 4})
	if want := (Rates{StreamReads: 45, ReadUnits: 102, Writes: 1003, RowsRead: 504}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if (Rates{}).Month() != (Month{}) {
		t.Error("nothing costs something")
	}
}

// TestNodesAreTheLargerOfRateAndSize: a node with SSD writes 5,374 rows of 1 KB a second, and
// stores 5 TiB; with HDD 16, and tiered 32 or 64.
func TestNodesAreTheLargerOfRateAndSize(t *testing.T) {
	for _, x := range []struct {
		s      Storage
		writes float64
		bytes  float64
		want   int
	}{
		{SSD, 0, 0, 1}, {SSD, 5374, 0, 1}, {SSD, 5375, 0, 2}, {SSD, 0, 5 << 40, 1}, {SSD, 0, 5<<40 + 1, 2},
		{SSD, 20_000, 12 << 40, 4}, {SSD, 5000, 12 << 40, 3},
		{HDD, 0, 100 << 40, 7}, {HDD, 1000, 1 << 40, 4},
		{Tiered, 0, 100 << 40, 4}, {Tiered, 20_000, 32 << 40, 4}, {Tiered, 0, 32 << 40, 1}, {Tiered, 0, 33 << 40, 2},
		{TieredPlus, 0, 100 << 40, 2}, {TieredPlus, 0, 64 << 40, 1}, {TieredPlus, 0, 65 << 40, 2},
	} {
		if got := x.s.Nodes(x.writes, x.bytes); got != x.want {
			t.Errorf("%s, %v rows/s, %v bytes: %d nodes, want %d", x.s.Name, x.writes, x.bytes, got, x.want)
		}
	}
}

// TestWholeComparisonByStorage: 10 TB are 77 node hours of infrequent access, and 12.6 of SSD.
func TestWholeComparisonByStorage(t *testing.T) {
	all := Choices(0, 10e12)
	if len(all) != 4 {
		t.Fatalf("%d kinds of storage", len(all))
	}
	for i, want := range []struct {
		nodes          int
		dollars, hours float64
	}{{2, 8.21, 10e12 / 220e6 / 3600 / 2}, {1, 10.03, 10e12 / 180e6 / 3600}, {1, 50.15, 10e12 / 36e6 / 3600},
		{1, 50.15, 10e12 / 36e6 / 3600}} {
		c := all[i]
		near(t, c.Storage+": dollars", c.VerifyDollars, want.dollars)
		near(t, c.Storage+": hours", c.VerifyHours, want.hours)
		near(t, c.Storage+": dollars of the nodes", c.NodeDollars, float64(want.nodes)*474.5)
		if tiered := i > 1; c.Nodes != want.nodes || (c.Dollars == nil) != tiered {
			t.Errorf("%+v", c)
		}
	}
	near(t, "SSD", *all[0].Dollars, Cents(10e12/(1<<30)*0.17))
}

// TestNumbersOfTheDocumentAreComputed: docs/day-one.md has those that this package returns.
func TestNumbersOfTheDocumentAreComputed(t *testing.T) {
	page, err := os.ReadFile("../docs/day-one.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, poll := range []time.Duration{200 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		one, many := IdleOf(1, poll, 1/poll.Seconds()), IdleOf(44, poll, 1/poll.Seconds())
		reads := humanize.Comma(int64(one.Reads))
		rows = append(rows, fmt.Sprintf(" | %s | %.2f | %.2f | ", reads, one.Dollars, many.Dollars))
	}
	storages := []*Storage{&SSD, &HDD, &Tiered, &TieredPlus}
	for i, c := range Choices(0, 100<<40) {
		rows = append(rows, fmt.Sprintf("\n| %s | %d TiB | %d | ", c.Storage, storages[i].PerNode>>40, c.Nodes),
			fmt.Sprintf(" | %.0f node hours, %.0f $", c.VerifyHours*float64(c.Nodes), c.VerifyDollars))
	}
	for _, row := range rows {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/day-one.md has no %q", row)
		}
	}
}
