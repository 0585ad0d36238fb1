package source

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
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
	expect := func(kind pageKind, want time.Duration) {
		t.Helper()
		if got := read(kind); got > want || got < want*89/100 {
			t.Errorf("after %v: due in %v, not %v", now.Sub(time.Unix(0, 0)), got, want)
		}
	}
	idle := func() {
		t.Helper()
		for _, ms := range []time.Duration{400, 800, 1000, 1000} {
			expect(pageEmpty, ms*time.Millisecond)
		}
	}
	active := func() {
		t.Helper()
		for last := now; p.Due.Sub(last) < activeTime; {
			expect(pageEmpty, activePoll)
		}
	}
	expect(pageEmpty, activePoll) // it never had a record
	idle()
	for range 3 {
		expect(pageFull, activePoll)
	}
	active()
	idle()
	expect(pagePart, activePoll)
	active()
	idle()
}

// Shards with one record in several seconds each, which a table with 200 changes a second has by
// the hundred, are read as soon with an idle poll of a second as with the least one.
func TestSlowShardIsReadAsSoonAsABusyOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	now := time.Unix(0, 0)
	p := Pace{Rate: 5, Due: now}
	var all []time.Duration
	for record := now; len(all) < 20_000; {
		kind := pageEmpty
		now = p.Due
		p.ReadStarted(now)
		for ; !record.After(now); kind = pagePart {
			all = append(all, now.Sub(record))
			record = record.Add(time.Duration(random.ExpFloat64() * float64(2*time.Second)))
		}
		p.ReadSucceeded(now, 5, kind, false, time.Second)
	}
	slices.Sort(all)
	if p99 := all[len(all)*99/100]; p99 > activePoll {
		t.Errorf("p99 of the wait is %v", p99)
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

// TestReadsOfAnIdleShardArePredicted: for intervals and heartbeats as they are configured, by a
// Pace in virtual time. Reads are due up to a tenth earlier, so that those of many shards come
// together.
func TestReadsOfAnIdleShardArePredicted(t *testing.T) {
	for _, c := range []struct {
		idle, heartbeat time.Duration
		want            float64 // a second
	}{
		{time.Second, 0, 1}, {200 * time.Millisecond, 0, 5}, {time.Minute, 0, 1.0 / 60}, {10 * time.Second, 0, 0.1},
		{time.Minute, 10 * time.Second, 5}, {time.Second, 20 * time.Second, 3}, {time.Second, time.Minute, 5./6 + 5./6},
	} {
		if got := IdleReads(c.idle, c.heartbeat); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v, a heartbeat every %v: %v reads a second, want %v", c.idle, c.heartbeat, got, c.want)
		}
		const day = 24 * time.Hour
		begin := time.Unix(0, 0)
		p, reads, next := Pace{Rate: 5, Due: begin}, 0, begin.Add(c.heartbeat)
		for p.Due.Sub(begin) < day {
			now, kind := p.Due, pageEmpty
			for ; c.heartbeat > 0 && !next.After(now); next = next.Add(c.heartbeat) {
				kind = pagePart
			}
			p.ReadStarted(now)
			p.ReadSucceeded(now, 5, kind, false, c.idle)
			reads++
		}
		got := float64(reads) / day.Seconds()
		if got < c.want*0.95 || got > c.want*1.12 {
			t.Errorf("%v, a heartbeat every %v: %v reads a second in a day, predicted %v", c.idle, c.heartbeat, got, c.want)
		}
	}
}

// TestTableHasItsOwnIdlePoll, and others have the common one: an hour of an idle shard of each.
func TestTableHasItsOwnIdlePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		s := open(t, w, func(o *Options) {
			o.IdlePoll, o.IdlePolls = 2*time.Second, map[string]time.Duration{"slow": time.Minute}
		})
		s.UseIdlePoll("found", 10*time.Second)
		for table, want := range map[string]float64{"slow": 60, "found": 360, "other": 1800} {
			w.shard(table, "", 0)
			x := start(table, change.Position{})
			x.Table = table
			r := s.NewReader(x)
			for end := time.Now().Add(time.Hour); time.Now().Before(end); {
				next(t, r).Release()
			}
			r.Close()
			// It is read more often until it counts as idle, and up to a tenth more often then.
			if got := float64(s.Reads(table).All); got < want || got > want*1.12+70 {
				t.Errorf("%s: %v reads in an hour, want about %v", table, got, want)
			}
		}
	})
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
		p := Pace{Rate: 5, Due: now, idle: time.Second}
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
