package test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// writer is an application that changes a table while daemons start and end: puts, partial updates,
// deletes, expiring items, a few hot items, and shards that split and rotate. It writes some
// changes at each read of the daemon, so that the two keep pace.
type writer struct {
	w     *world
	table string
	rnd   *rand.Rand
	n     int
	calm  bool // no splits and no rotations
	// sessions says that every other change is one of many items that expire, whom the sandbox
	// sweeps or a user deletes.
	sessions bool

	wake chan struct{}
	quit chan struct{}
	done sync.WaitGroup
}

// writer returns a writer whose changes depend on the seed alone.
func (w *world) writer(table string, seed uint64) *writer {
	return &writer{
		w: w, table: table, rnd: rand.New(rand.NewPCG(seed, 7)), wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

// start writes in the background until stop.
func (a *writer) start() {
	a.w.traps.watch(func(p point) {
		if p.op != "GetRecords" || p.done {
			return
		}
		select {
		case a.wake <- struct{}{}:
		default:
		}
	})
	a.done.Go(func() {
		for {
			select {
			case <-a.quit:
				return
			case <-a.wake:
				a.write(2 + a.rnd.IntN(8))
			}
		}
	})
}

// stop ends the background writes and returns the number of attempted changes.
func (a *writer) stop() int {
	a.w.traps.watch(nil)
	close(a.quit)
	a.done.Wait()
	return a.n
}

// write attempts n changes.
func (a *writer) write(n int) {
	for range n {
		a.n++
		a.change()
		if !a.calm && a.rnd.IntN(60) == 0 {
			a.reshard()
		}
	}
}

// change attempts one random change of one of 40 items, of which three are hot.
func (a *writer) change() {
	if a.sessions && a.rnd.IntN(2) == 0 {
		a.session()
		return
	}
	item := a.rnd.IntN(40)
	if a.rnd.IntN(4) == 0 {
		item = a.rnd.IntN(3) // hot
	}
	pk, sk := fmt.Sprintf("p#%d", item%7), fmt.Sprintf("s%d", item)
	update := func(expression string, args ...any) {
		a.w.Update(a.table, pk, sk, fmt.Sprintf(expression, args...), fmt.Sprintf(`":u":{"N":"%d"}`, a.n))
	}
	switch a.rnd.IntN(12) {
	case 0, 1:
		a.w.Delete(a.table, pk, sk)
	case 2, 3:
		update("SET u = :u REMOVE a%d", a.rnd.IntN(4))
	case 4:
		update("ADD seen :u")
	case 5:
		a.w.Put(a.table, pk, sk, fmt.Sprintf(`"v":{"N":"%d"},"expires":{"N":"%d"}`, a.n, a.w.Clock.Now().Unix()+1))
		if a.rnd.IntN(2) == 0 {
			a.w.DynamoDB.ExpireNow(a.w.Clock.Now().Add(time.Minute))
		}
	default:
		text, flag := a.rnd.IntN(2), 2+a.rnd.IntN(2)
		a.w.Put(a.table, pk, sk, fmt.Sprintf(`"v":{"N":"%d"},"a%d":{"S":"%d"},"a%d":{"BOOL":true}`, a.n, text, a.n, flag))
	}
}

// session writes an item that expires, or lets a user delete one, which may have expired but not
// been swept.
func (a *writer) session() {
	pk, sk := "sessions", fmt.Sprint("n", a.rnd.IntN(300))
	if a.rnd.IntN(4) == 0 {
		a.w.Delete(a.table, pk, sk)
		return
	}
	at := a.w.Clock.Now().Unix() - 1 + int64(a.rnd.IntN(3))
	a.w.Put(a.table, pk, sk, fmt.Sprintf(`"v":{"N":"%d"},"expires":{"N":"%d"}`, a.n, at))
}

// reshard rotates all shards or splits one.
func (a *writer) reshard() {
	open := a.w.Stream.OpenShards(a.table)
	if len(open) > 6 || a.rnd.IntN(3) == 0 {
		a.w.Stream.Rotate(a.table)
		return
	}
	if _, err := a.w.Stream.Split(open[a.rnd.IntN(len(open))], 2); err != nil {
		a.w.t.Errorf("split: %v", err)
	}
}
