// Package memory divides the bytes that pages may take among the feeds of several tables.
//
// Rule 9: back-pressure is bounded in bytes, per feed and in total, and no table takes another's part. What a read
// may bring is taken out of the budget before the read, or, where the last page was empty, before the first record is
// kept; it comes back when the consumer releases the page.
package memory

import (
	"container/heap"
	"slices"
	"sync"
	"time"
)

// Budget shares bytes among the feeds of several tables. What is in memory cannot be taken back, and a table whose
// log is full gives nothing back for hours. So each table has a part that no other can take, an equal one of half the
// total; the other half is for whoever comes first, so that one busy table among idle ones has more than half. A
// table alone has all.
//
// promised sums up, table by table, what it holds or its part, whichever is more. A table gets a page
//   - if promised stays as it is: the page is within the table's part;
//   - if promised stays within the total: the page is of the common half, and all that others may still take of
//     their parts remains;
//   - if the table holds nothing: so every table goes on, with many of them or a small total slowly, page by page.
//
// Never is more in use than promised. Only the last rule drives promised above the total, for each table by as much
// as a page is larger than its part. All parts together are half of the total, so what is in use stays within the
// total, or within half of it and one page for each table if that is more: of 24 MiB, 8 tables never exceed 24, and
// 20 tables never 42.
//
// Within a table it is first come, first served, but a feed at its own limit makes nobody wait; the common half goes
// to whoever of all tables has waited longest. What an operation costs grows with the tables, hardly with the feeds.
type Budget struct {
	total, perFeed int64
	page           int64 // what every reservation takes
	part           int64 // of each table that was announced
	announced      int

	mu       sync.Mutex
	used     int64
	promised int64
	tables   []*tableShare
	turns    uint64 // claims ever made
}

// tableShare is what the feeds of one table have together. The budget's mutex covers it.
type tableShare struct {
	name    string
	part    int64
	used    int64 // reserved included
	waiting claims
}

// Share is what one feed has of the budget. The budget's mutex covers it.
type Share struct {
	table    *tableShare
	used     int64 // reserved included
	reserved int64 // for the read to come
	claim    *claim
}

// New makes a Budget for so many tables. More of them may come: those have no part, only the first page.
func New(total, perFeed, page int64, tables int) *Budget {
	tables = max(tables, 1)
	part := total / 2 / int64(tables)
	return &Budget{total: total, perFeed: perFeed, page: page, part: part, announced: tables, promised: part * int64(tables)}
}

// Share makes the share of one feed of the table.
func (b *Budget) Share(table string) Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.tables, func(t *tableShare) bool { return t.name == table })
	if i < 0 {
		i = len(b.tables)
		t := &tableShare{name: table}
		if i < b.announced {
			t.part = b.part
		}
		b.tables = append(b.tables, t)
	}
	return Share{table: b.tables[i]}
}

func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Parked returns how many feeds wait, and since when the first does.
func (b *Budget) Parked() (n int, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tables {
		for _, c := range t.waiting {
			if n == 0 || c.since.Before(since) {
				since = c.since
			}
			n++
		}
	}
	return n, since
}

// Reserve makes sure that the feed has a page reserved and returns true; or it returns false and calls granted,
// from any goroutine and with no lock held, once it has. drop takes either back.
func (b *Budget) Reserve(feed *Share, granted func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grantNow(feed) {
		return true
	}
	b.turns++
	feed.claim = &claim{feed: feed, turn: b.turns, since: time.Now(), atLimit: b.atLimit(feed), granted: granted}
	heap.Push(&feed.table.waiting, feed.claim)
	return false
}

// grantNow reserves a page for the feed if it needs not wait. Nobody is overtaken: whoever of the table came before
// and still waits is at a limit of its own, or there is no page for the table. The mutex is held.
func (b *Budget) grantNow(feed *Share) bool {
	if feed.reserved == 0 {
		if b.atLimit(feed) || !b.fits(feed.table) {
			return false
		}
		b.grant(feed)
	}
	return true
}

// Try is reserve without waiting: false when no page is free for the feed.
func (b *Budget) Try(feed *Share) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grantNow(feed)
}

// Drop gives the feed's reservation back, or withdraws its claim.
func (b *Budget) Drop(feed *Share) {
	b.mu.Lock()
	if c := feed.claim; c != nil {
		heap.Remove(&feed.table.waiting, c.index)
		feed.claim = nil
	}
	b.mu.Unlock()
	b.Settle(feed, 0)
}

// Settle turns the feed's reservation into the n bytes that the read brought, without waiting even if they
// are more: what is in memory is in memory.
func (b *Budget) Settle(feed *Share, n int64) {
	b.mu.Lock()
	less := feed.reserved - n
	feed.reserved = 0
	b.mu.Unlock()
	b.Release(feed, less)
}

// Release gives n bytes of the feed back.
func (b *Budget) Release(feed *Share, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	b.count(feed, -n)
	if c := feed.claim; c != nil && c.atLimit != b.atLimit(feed) {
		c.atLimit = !c.atLimit
		heap.Fix(&feed.table.waiting, c.index)
	}
	ready := b.serve()
	b.mu.Unlock()
	for _, c := range ready {
		c.granted()
	}
}

// serve grants what can be granted. Afterwards nobody waits who could be served.
func (b *Budget) serve() (ready []*claim) {
	for {
		var first *claim
		for _, t := range b.tables {
			if c := t.waiting.first(); c != nil && (first == nil || c.turn < first.turn) && b.fits(t) {
				first = c
			}
		}
		if first == nil {
			return ready
		}
		heap.Pop(&first.feed.table.waiting)
		first.feed.claim = nil
		b.grant(first.feed)
		ready = append(ready, first)
	}
}

// grant reserves a page for the feed.
func (b *Budget) grant(feed *Share) {
	feed.reserved = b.page
	b.count(feed, b.page)
}

// count adds n bytes to what the feed holds.
func (b *Budget) count(feed *Share, n int64) {
	t := feed.table
	b.promised += max(t.used+n, t.part) - max(t.used, t.part)
	b.used += n
	t.used += n
	feed.used += n
}

// fits says whether the table may have one more page; why, stands at Budget.
func (b *Budget) fits(t *tableShare) bool {
	more := max(t.used+b.page, t.part) - max(t.used, t.part)
	return t.used == 0 || more == 0 || b.promised+more <= b.total
}

// atLimit says whether the feed holds so much itself that it gets no more. One page it may always have.
func (b *Budget) atLimit(feed *Share) bool { return feed.used > 0 && feed.used+b.page > b.perFeed }

// claim is a feed that waits.
type claim struct {
	feed    *Share
	turn    uint64
	since   time.Time
	atLimit bool // the feed waits for itself
	granted func()
	index   int
}

// claims is a heap by turn; behind those who wait for the total come the feeds at their own limit.
type claims []*claim

// first returns whose turn it is, nil if there is nobody but feeds at their own limit.
func (h claims) first() *claim {
	if len(h) == 0 || h[0].atLimit {
		return nil
	}
	return h[0]
}

func (h claims) Len() int { return len(h) }

func (h claims) Less(i, j int) bool {
	if h[i].atLimit != h[j].atLimit {
		return h[j].atLimit
	}
	return h[i].turn < h[j].turn
}

func (h claims) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *claims) Push(x any) {
	c := x.(*claim)
	c.index = len(*h)
	*h = append(*h, c)
}

func (h *claims) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return c
}
