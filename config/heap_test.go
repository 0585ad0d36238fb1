package config

import (
	"math"
	"testing"
)

// TestHeapNeed: the figures of check for the loads of BenchmarkMemory, and what each term adds.
func TestHeapNeed(t *testing.T) {
	for _, c := range []struct {
		tables      int
		queue       string
		total       Size
		usual, most int64 // MiB
	}{
		{1, "", 96 << 20, 300, 300 + 128},
		{1, "nats://x", 96 << 20, 300, 300},
		{1, "nats://x", 16 << 20, 128, 128},       // the least
		{1, "", 256 << 20, 3*256 + 12, 780 + 128}, // memory.total
		{2, "nats://x", 96 << 20, 308, 308 + 8},
		{2, "", 96 << 20, 312, 312 + 128 + 4 + 8 + 32},
		{10, "", 96 << 20, 408, 408 + 128 + 9*(4+8+32)},
		{10, "nats://x", 96 << 20, 372, 372 + 9*8},
		// 16 MiB of pages are ten tables that are at work.
		{100, "", 96 << 20, 300 + 99*12, 300 + 99*12 + 128 + 99*4 + 10*(8+32)},
		{100, "nats://x", 96 << 20, 300 + 99*8, 300 + 99*8 + 10*8},
		{100, "nats://x", 192 << 20, 588 + 99*8, 588 + 99*8 + 21*8},
	} {
		cfg := Default()
		cfg.Tables, cfg.Queue.URL, cfg.Memory.Total = make([]Table, c.tables), c.queue, c.total
		want := HeapNeed{Usual: c.usual << 20, Most: c.most << 20, Copy: 2 * 128 << 20}
		if got := cfg.HeapNeed(); got != want {
			t.Errorf("%d tables, queue %q, total %s: %d to %d MiB, want %d to %d", c.tables, c.queue, c.total,
				got.Usual>>20, got.Most>>20, c.usual, c.most)
		}
	}
}

// TestLimitFollowsTheLiveBytes: the limit is 1.5 times the live bytes and all stacks, within the
// bounds of the need.
func TestLimitFollowsTheLiveBytes(t *testing.T) {
	n := HeapNeed{Usual: 150 << 20, Most: 300 << 20, Copy: 100 << 20}
	for alive, want := range map[int64]int64{0: 150, 50: 150, 100: 150, 150: 225, 200: 300, 500: 400} {
		if got := n.Limit(alive<<20, 0); got != want<<20 {
			t.Errorf("limit %d MiB at %d alive, want %d", got>>20, alive, want)
		}
	}
	if got := n.Limit(150<<20, 60<<20); got != 285<<20 {
		t.Errorf("limit %d MiB at 150 alive and 60 of stacks", got>>20)
	}
}

// TestShortageNamesTheLimitThatIsTooLow: $GOMEMLIMIT and the control group are compared with the
// need.
func TestShortageNamesTheLimitThatIsTooLow(t *testing.T) {
	n := HeapNeed{Usual: 300 << 20, Most: 700 << 20}
	for _, c := range []struct {
		goLimit, container int64
		want               string
	}{
		{math.MaxInt64, math.MaxInt64, ""},
		{200 << 20, math.MaxInt64, "the heap needs 300 MiB, $GOMEMLIMIT is 200 MiB"},
		{math.MaxInt64, 350 << 20, "the process needs 364 MiB, its control group has 350 MiB"},
		{math.MaxInt64, 400 << 20, ""},
	} {
		if got := n.shortage(c.goLimit, c.container); got != c.want {
			t.Errorf("%d, %d: %q", c.goLimit>>20, c.container>>20, got)
		}
	}
}
