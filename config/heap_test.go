package config

import (
	"math"
	"testing"
)

// TestHeapNeedGrowsWithTheTables: with the limit of one table, garbage collection would use up the
// CPU at ten.
func TestHeapNeedGrowsWithTheTables(t *testing.T) {
	need := func(tables int, url string) HeapNeed {
		cfg := Default()
		cfg.Tables, cfg.Queue.URL = make([]Table, tables), url
		return cfg.HeapNeed()
	}
	one, ten, fifty := need(1, ""), need(10, ""), need(50, "")
	if one.Usual != 300<<20 {
		t.Errorf("one table needs %d MiB", one.Usual>>20)
	}
	// Ten tables with a backlog have 110 to 130 MiB alive, one of 100 KB items 150.
	if ten.Usual < 2*130<<20 || fifty.Usual < 2*ten.Usual || one.Most < 2*150<<20 {
		t.Errorf("10 tables need %d MiB, 50 %d, one of large items %d", ten.Usual>>20, fifty.Usual>>20, one.Most>>20)
	}
	if out := need(10, "nats://x"); out.Usual >= ten.Usual {
		t.Errorf("without a server inside 10 tables need %d MiB", out.Usual>>20)
	}
}

// TestLimitFollowsTheLiveBytes: the limit is 1.5 times the live bytes and all stacks, within the
// bounds of the need.
func TestLimitFollowsTheLiveBytes(t *testing.T) {
	n := HeapNeed{Usual: 150 << 20, Most: 400 << 20}
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
