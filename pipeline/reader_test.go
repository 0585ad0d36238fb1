package pipeline_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// pairs writes items whose attributes a and b are equal, and larger than those of every write
// before.
type pairs struct {
	w  *world
	mu sync.Mutex
	n  int
}

// put puts an item with the next number in both attributes.
func (p *pairs) put(pk, sk string) {
	p.w.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.w.put("Orders", pk, sk, fmt.Sprintf(`"a":{"N":"%d"},"b":{"N":"%d"},"v":{"S":"v%d"}`, p.n, p.n, p.n%3))
}

// keepWriting changes, deletes and inserts a few items until stop is called.
func (p *pairs) keepWriting() (stop func()) {
	ctx, cancel := context.WithCancel(p.w.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			pk, sk := fmt.Sprint("w", i%3), fmt.Sprint(i%211)
			if i%4 == 3 {
				p.w.delete("Orders", pk, sk)
			} else {
				p.put(pk, sk)
			}
			p.w.pause(ctx, pace)
		}
	})
	return func() { cancel(); done.Wait() }
}

// watcher is a plain reader that polls all the time.
type watcher struct {
	r    *run
	seen map[string]int // the newest number of each item
	gone map[string]bool
	stop func()
}

// cellOfPair matches a cell of pairs: what comes before the attribute's name tells apart the items
// of one row.
var cellOfPair = regexp.MustCompile(`^(.*[":/])([ab])"="(\d+)"$`)

// watch polls the target until stop is called. It fails the test when an item's number goes back,
// when an item comes back without a new number, and when a row mixes two states of an item.
func (r *run) watch() *watcher {
	x := &watcher{r: r, seen: map[string]int{}, gone: map[string]bool{}}
	x.stop = x.poll()
	return x
}

// seen returns a watcher that has looked once.
func (r *run) seen() *watcher {
	x := r.watch()
	x.stop()
	x.look(r.stored("Orders"))
	return x
}

// follow goes on with what a watcher has seen in another run; nil: it looks no more.
func (x *watcher) follow(r *run) { x.r = r }

// poll looks all the time until stop is called.
func (x *watcher) poll() (stop func()) {
	if x.r == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(x.r.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			x.look(x.r.stored("Orders"))
			x.r.pause(ctx, max(pace, 3*time.Since(began)))
		}
	})
	return func() { cancel(); done.Wait() }
}

func (x *watcher) look(rows map[string][]string) {
	now := map[string]map[string]int{}
	for row, cells := range rows {
		for _, c := range cells {
			m := cellOfPair.FindStringSubmatch(c)
			if m == nil {
				continue
			}
			item := row + " " + m[1]
			if now[item] == nil {
				now[item] = map[string]int{}
			}
			now[item][m[2]], _ = strconv.Atoi(m[3])
		}
	}
	for item, n := range now {
		switch {
		case n["a"] != n["b"]:
			x.r.t.Errorf("item %q mixes two states: a %d, b %d", item, n["a"], n["b"])
		case n["a"] < x.seen[item]:
			x.r.t.Errorf("item %q stepped back from %d to %d", item, x.seen[item], n["a"])
		case n["a"] == x.seen[item] && x.gone[item]:
			x.r.t.Errorf("item %q is back with %d after it was gone", item, n["a"])
		}
		x.seen[item] = max(x.seen[item], n["a"])
	}
	for item := range x.seen {
		x.gone[item] = now[item] == nil
	}
}
