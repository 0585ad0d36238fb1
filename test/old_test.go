package test

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// fewItems are enough for pages of several segments.
const fewItems = 240

var oldItems = flag.Int("old.items", fewItems, "items of each table that is copied under kills; "+
	"more than the default are copied with the mappings of all worked examples, each by itself, and more kills")

// TestOldTablesAreCopiedUnderKills copies tables that are older than their streams while an
// application writes to them, shards split, and the daemon is killed with SIGKILL at random
// moments. Every cell must be equal in the end.
func TestOldTablesAreCopiedUnderKills(t *testing.T) {
	long(t, "10 s")
	seed := uint64(1)
	if *chaosSeed >= 0 {
		seed = uint64(*chaosSeed)
	} else if *oldItems > fewItems {
		seed = uint64(time.Now().UnixNano()) % 1e6
	}
	histories := 1
	if *oldItems > fewItems {
		histories = len(examples)
	}
	c := newChances(t, histories, len(examples), []string{goesOn}, "log claimed")
	if *oldItems <= fewItems {
		list := []*example{}
		for _, table := range []string{"Orders", "Videos", "Portal", "Devices", "Users"} {
			list = append(list, exampleOf(table))
		}
		w := newWorld(t, seed)
		w.traps.chances = c
		w.copyUnderKills(fewItems, seed, 2, list)
		return
	}
	for i := range examples {
		t.Run(examples[i].table, func(t *testing.T) {
			w := newWorld(t, seed)
			w.traps.chances = c
			w.copyUnderKills(*oldItems, seed, 5, []*example{&examples[i]})
		})
	}
}

// goesOn is the branch in which an owner finds marks of a copy.
const goesOn = "a copy goes on from what is marked as copied"

// copyUnderKills copies tables of n items each with so many kills of the daemon, and compares every
// cell.
func (w *world) copyUnderKills(n int, seed uint64, kills int, list []*example) {
	w.t.Helper()
	w.t.Logf("seed %d", seed)
	w.old(n, seed, list)
	w.Stream.Faults().RecordCut(time.Minute) // as some hosts of the service do
	rnd := rand.New(rand.NewPCG(seed, 12))
	stop := w.load(n, seed, 100*time.Millisecond, list)
	for life := range kills {
		// The part of the page that is held is not copied before the kill.
		hold := w.traps.set(point{op: "Scan", done: true}, 1+rnd.IntN(8*len(list)/(kills+1)), true)
		d := w.run()
		if n > fewItems { // until then no page is held
			hold.open()
			d.until("a further part is copied, with marks", func() bool {
				st := d.table(list[0].table)
				if st.State == "running" {
					w.t.Fatal("the copy is too fast for so many kills")
				}
				return st.Copy != nil && st.Copy.Items > int64((life+1)*n/(2*kills))
			})
			hold = w.traps.set(hold.at, 1+rnd.IntN(8), true)
		}
		d.untilHit(hold)
		if life == 0 || life == 2 {
			w.split(rnd, list)
		}
		at := beforeWrite
		at.table, at.done = target(list[rnd.IntN(len(list))].table), rnd.IntN(2) == 0
		write := w.traps.set(at, 1+rnd.IntN(30), rnd.IntN(2) == 0)
		d.untilHit(write)
		d.kill()
		hold.open()
		write.open()
	}
	running, copied := 0, int64(0) // the table whose page was held is not complete; which one that is, is chance
	for _, e := range list {
		if c := w.readLog(e.table).state.CopyRunning(); c != nil {
			running, copied = running+1, copied+c.Total().Items
			w.traps.chances.ReachedIf(c.Total().Items > 0, goesOn)
		}
	}
	if running == 0 || n > fewItems && copied == 0 {
		w.t.Errorf("%d copies are not complete before the last start, with %d items", running, copied)
	}
	d := w.run()
	names := []string{}
	for _, e := range list {
		names = append(names, e.table)
		d.until(e.table+" is copied", func() bool {
			st := d.table(e.table)
			return st.Copy == nil && st.State == "running"
		})
	}
	w.t.Logf("%d changes", stop())
	w.Clock.Advance(time.Minute)
	w.DynamoDB.ExpireNow(w.Clock.Now())
	d.settle(names...)
	d.checkClean()
	w.Equal(names...)
	d.stop()
}

// split splits a shard of each table.
func (w *world) split(rnd *rand.Rand, list []*example) {
	w.t.Helper()
	for _, e := range list {
		open := w.Stream.OpenShards(e.table)
		if _, err := w.Stream.Split(open[rnd.IntN(len(open))], 2); err != nil {
			w.t.Errorf("split: %v", err)
		}
	}
}

// load changes the tables of a list, which may be empty, while the daemon reads their streams, and
// moves the clock on, because a page waits for the stream to be read past it. The returned function
// ends it and returns the number of changes.
func (w *world) load(n int, seed uint64, step time.Duration, list []*example) (stop func() int) {
	wake, quit, done := make(chan struct{}, 1), make(chan struct{}), sync.WaitGroup{}
	w.traps.watch(func(p point) {
		if p.op == "GetRecords" && p.done {
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	})
	changes := 0
	done.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, 13))
		for {
			select {
			case <-quit:
				return
			case <-wake:
			}
			w.Clock.Advance(step)
			if len(list) > 0 {
				w.change(list[rnd.IntN(len(list))], n, rnd)
				changes++
			}
			if changes%20 == 1 {
				w.DynamoDB.ExpireNow(w.Clock.Now())
			}
		}
	})
	return func() int {
		w.traps.watch(nil)
		close(quit)
		done.Wait()
		return changes
	}
}
