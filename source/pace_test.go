package source

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPaceOfAShard(t *testing.T) {
	now := time.Unix(0, 0)
	p := Pace{Rate: 5, Due: now}
	read := func(kind pageKind) time.Duration {
		now = p.Due
		p.ReadStarted(now)
		p.ReadSucceeded(now, 5, kind, false, time.Second)
		return p.Due.Sub(now)
	}
	for i, step := range []struct {
		kind pageKind
		want time.Duration
	}{
		{pageFull, 200}, {pageFull, 200}, {pagePart, 200},
		{pageEmpty, 200}, {pageEmpty, 200}, {pageEmpty, 200}, {pageEmpty, 200}, {pageEmpty, 200},
		{pageEmpty, 400},
		{pageEmpty, 800}, {pageEmpty, 1000}, {pageEmpty, 1000}, {pagePart, 200}, {pageEmpty, 200},
		{pageFull, 200}, {pageEmpty, 200}, {pageEmpty, 200},
	} {
		want := step.want * time.Millisecond
		if got := read(step.kind); got > want || got < want*89/100 {
			t.Errorf("step %d: due in %v, not %v", i, got, want)
		}
	}
}

// A shard that gets eight batches a second, at random moments, is read as soon with an idle poll of
// ten seconds as with the least one.
func TestBusyShardIsReadAsSoonWhateverTheIdlePoll(t *testing.T) {
	lags := func(idlePoll time.Duration) (median, p99 time.Duration) {
		random := rand.New(rand.NewPCG(1, 1))
		now := time.Unix(0, 0)
		p := Pace{Rate: 5, Due: now}
		var all []time.Duration
		for batch := now; len(all) < 20_000; {
			kind := pageEmpty
			now = p.Due
			p.ReadStarted(now)
			for ; !batch.After(now); kind = pagePart {
				all = append(all, now.Sub(batch))
				batch = batch.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / 8))
			}
			p.ReadSucceeded(now, 5, kind, false, idlePoll)
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)*99/100]
	}
	least, least99 := lags(activePoll)
	median, p99 := lags(10 * time.Second)
	if median > least*11/10 || p99 > least99*11/10 {
		t.Errorf("median %v and p99 %v, with the least idle poll %v and %v", median, p99, least, least99)
	}
}

func TestThrottledShardSlowsDownAndComesBack(t *testing.T) {
	now := time.Unix(0, 0)
	p := Pace{Rate: 5, Due: now}
	for range 100 {
		now = p.Due
		p.ReadStarted(now)
		p.ReadFailed(now, true)
	}
	if d := p.Due.Sub(now); d < 5*time.Second || d > 13*time.Second {
		t.Fatalf("due in %v after a hundred throttles", d)
	}
	for range 60 {
		now = p.Due
		p.ReadStarted(now)
		p.ReadSucceeded(now, 5, pageFull, false, time.Second)
	}
	if d := p.Due.Sub(now); d.Round(time.Millisecond) != 200*time.Millisecond {
		t.Fatalf("due in %v after sixty reads", d)
	}
}

// A closed shard gets nothing new: an empty page in it is no reason to wait.
func TestClosedShardIsReadWithoutPauses(t *testing.T) {
	now := time.Unix(0, 0)
	p := Pace{Rate: 5, Due: now}
	for range 10 {
		now = p.Due
		p.ReadStarted(now)
		p.ReadSucceeded(now, 5, pageEmpty, true, time.Second)
	}
	if d := p.Due.Sub(now); d != 200*time.Millisecond {
		t.Fatal(d)
	}
}

// Idle shards that were read at any moments are due at few of them, and none later than the idle
// poll.
func TestIdleShardsAreDueTogether(t *testing.T) {
	moments := map[time.Time]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		now := time.Unix(0, random.Int64N(int64(time.Second)))
		p := Pace{Rate: 5, Due: now, idle: time.Second, quiet: quietPages}
		p.ReadSucceeded(now, 5, pageEmpty, false, time.Second)
		if wait := p.Due.Sub(now); wait > time.Second {
			t.Fatalf("due in %v", wait)
		}
		moments[p.Due] = true
	}
	if len(moments) > 25 { // of a second and the tenth that jitter adds
		t.Errorf("due at %d moments", len(moments))
	}
}
