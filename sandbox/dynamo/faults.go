package dynamo

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// Faults injects faults into reads of items: eventually consistent reads that lag, replies of
// BatchGetItem that leave keys unprocessed, repeat items or mix their order. All faults are off at
// first. Every method may be called at any time.
type Faults struct {
	mu          sync.Mutex
	rnd         *rand.Rand
	lag         time.Duration
	unprocessed Unprocessed
	disorder    bool
	repeat      float64
}

// Unprocessed is which keys BatchGetItem returns as UnprocessedKeys although they would fit.
type Unprocessed struct {
	Share float64 // probability that a key is left; 1: every key is
	Times int     // how many calls are concerned; 0: all until it is set again
}

func newFaults(seed uint64) *Faults { return &Faults{rnd: rand.New(rand.NewPCG(seed, 11))} }

// LagReads makes eventually consistent reads of all tables return what was there d of the sandbox's
// time ago, but nothing from before this call; 0 ends it.
func (f *Faults) LagReads(d time.Duration) { f.set(func() { f.lag = d }) }

// LeaveUnprocessed makes BatchGetItem leave keys unprocessed. The zero value ends it.
func (f *Faults) LeaveUnprocessed(u Unprocessed) { f.set(func() { f.unprocessed = u }) }

// Disorder makes BatchGetItem return items in random order instead of the order of the request. The
// service promises no order.
func (f *Faults) Disorder(on bool) { f.set(func() { f.disorder = on }) }

// Repeat makes BatchGetItem return each item twice with this probability, which the service never
// does.
func (f *Faults) Repeat(odds float64) { f.set(func() { f.repeat = odds }) }

// Calm withdraws all faults.
func (f *Faults) Calm() {
	f.set(func() { f.lag, f.unprocessed, f.disorder, f.repeat = 0, Unprocessed{}, false, 0 })
}

// set changes faults under the lock.
func (f *Faults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// readLag returns how far eventually consistent reads lag.
func (f *Faults) readLag() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lag
}

// left returns, for each of n keys of one call, whether the call leaves it unprocessed; nil when it
// leaves none.
func (f *Faults) left(n int) []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := &f.unprocessed
	if u.Share == 0 {
		return nil
	}
	all := make([]bool, n)
	for i := range all {
		all[i] = f.rnd.Float64() < u.Share
	}
	if u.Times > 0 {
		if u.Times--; u.Times == 0 {
			*u = Unprocessed{}
		}
	}
	return all
}

// arrange mixes and repeats the items of one reply, as the faults in force want.
func (f *Faults) arrange(items []*table.Record) []*table.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.repeat > 0 {
		for _, r := range items {
			if f.rnd.Float64() < f.repeat {
				items = append(items, r)
			}
		}
	}
	if f.disorder {
		f.rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	return items
}
