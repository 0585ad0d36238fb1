package source

import (
	"container/heap"
	"slices"
	"sync"
	"time"
)

// PageMemory shares the bytes that pages may take among the feeds of several tables. Each page has a
// PageLease.
//
// Rule 9: back-pressure is bounded in bytes, per feed and in total, and no table takes another's part.
// A lease reserves what a read may bring before the read or, where the feed's last page was empty,
// before the first record is kept. The page carries the lease, and its consumer releases it.
//
// Memory that a page holds cannot be revoked, and a table with a full log may release none for
// hours. So half of the total is divided among the tables, as parts that no other table can take.
// The other half is common: a table that holds more than its part borrows from it, so that one busy
// table among idle ones has more than half. A single table has the whole total. (Dividing the whole
// total into parts would be simpler, but leaves a busy table among twenty a tenth of the
// throughput: BenchmarkBusyAmongTwenty.)
//
// A table gets a page
//   - if its part has room for the page;
//   - if the common half has room for what the page takes beyond the part;
//   - if the table holds nothing. So every table makes progress, page by page, when there are many tables or the total
//     is small.
//
// Only the last rule borrows more than the common half, for each table by as much as a page is larger than its part.
// So what is in use stays within the total, or within half of it and one page for each table if that is more: of
// 24 MiB, 8 tables never exceed 24, and 20 tables never 42.
//
// Feeds of a table are served in the order of their requests, but a feed at its own limit does not delay the others.
// The common half goes to the feed that has waited longest. The cost of an operation grows with the number of tables,
// and hardly with the number of feeds.
type PageMemory struct {
	total, perFeed int64
	page           int64 // what every reservation takes
	part           int64 // of each table that was announced
	common         int64 // the total without the parts
	announced      int

	mu       sync.Mutex
	used     int64
	borrowed int64 // what the tables hold beyond their parts, in total
	tables   []*tableMemory
	tickets  uint64 // number of the newest waiter
}

// tableMemory is what the feeds of one table hold together. The budget's mutex covers it.
type tableMemory struct {
	name    string
	part    int64
	used    int64 // reserved included
	waiting waiters
}

// excess returns what the table would hold beyond its part if it held n bytes more.
func (t *tableMemory) excess(n int64) int64 { return max(0, t.used+n-t.part) }

// FeedMemory is what one feed holds of the budget. At most one of its leases waits at any time.
type FeedMemory struct {
	budget *PageMemory
	table  *tableMemory
	used   int64   // reserved included; the budget's mutex covers it and waiter
	waiter *waiter // nil: no lease waits
}

// NewPageMemory makes a PageMemory of total bytes for the given number of tables, where every
// reservation takes page bytes and a feed holds perFeed bytes at most, or one page. Any further
// table has no part, only the first page.
func NewPageMemory(total, perFeed, page int64, tables int) *PageMemory {
	tables = max(tables, 1)
	part := total / 2 / int64(tables)
	return &PageMemory{
		total: total, perFeed: perFeed, page: page, part: part, common: total - part*int64(tables), announced: tables,
	}
}

// Feed makes a feed of the table.
func (b *PageMemory) Feed(tableName string) *FeedMemory {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.tables, func(t *tableMemory) bool { return t.name == tableName })
	if i < 0 {
		i = len(b.tables)
		t := &tableMemory{name: tableName}
		if i < b.announced {
			t.part = b.part
		}
		b.tables = append(b.tables, t)
	}
	return &FeedMemory{budget: b, table: b.tables[i]}
}

// InUse returns the bytes that all leases hold.
func (b *PageMemory) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Parked returns how many feeds wait, and since when the first one does.
func (b *PageMemory) Parked() (n int, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tables {
		for _, w := range t.waiting {
			if n == 0 || w.since.Before(since) {
				since = w.since
			}
			n++
		}
	}
	return n, since
}

// grantNow grants a page to the lease unless it must wait. It overtakes no waiter: an earlier one
// of the table belongs to a feed at its own limit, or else the table gets no page. The mutex is
// held.
func (b *PageMemory) grantNow(l *PageLease) bool {
	if l.bytes > 0 {
		return true
	}
	if b.atLimit(l.feed) || !b.fits(l.feed.table) {
		return false
	}
	b.resize(l, b.page)
	return true
}

// enqueue makes the lease wait for a page. The mutex is held.
func (b *PageMemory) enqueue(l *PageLease, granted func()) {
	b.tickets++
	w := &waiter{lease: l, ticket: b.tickets, since: time.Now(), atLimit: b.atLimit(l.feed), granted: granted}
	l.feed.waiter = w
	heap.Push(&l.feed.table.waiting, w)
}

// resizeAndServe changes the lease to n bytes, and grants pages to waiting leases if memory became
// free. It returns their waiters; the caller calls granted of each without the mutex. The mutex is
// held.
func (b *PageMemory) resizeAndServe(l *PageLease, n int64) (granted []*waiter) {
	if n == l.bytes {
		return nil
	}
	b.resize(l, n)
	if w := l.feed.waiter; w != nil && w.atLimit != b.atLimit(l.feed) {
		w.atLimit = !w.atLimit
		heap.Fix(&l.feed.table.waiting, w.index)
	}
	return b.serve()
}

// serve grants pages to waiting leases, the longest-waiting first, until none of them fits. The
// mutex is held.
func (b *PageMemory) serve() (granted []*waiter) {
	for {
		var first *waiter
		for _, t := range b.tables {
			if w := t.waiting.first(); w != nil && (first == nil || w.ticket < first.ticket) && b.fits(t) {
				first = w
			}
		}
		if first == nil {
			return granted
		}
		b.withdraw(first.lease)
		b.resize(first.lease, b.page)
		granted = append(granted, first)
	}
}

// withdraw removes the lease from the waiting ones, if it waits. The mutex is held.
func (b *PageMemory) withdraw(l *PageLease) {
	if w := l.feed.waiter; w != nil && w.lease == l {
		heap.Remove(&l.feed.table.waiting, w.index)
		l.feed.waiter = nil
	}
}

// resize counts n bytes for the lease instead of what it held. The mutex is held.
func (b *PageMemory) resize(l *PageLease, n int64) {
	more := n - l.bytes
	t := l.feed.table
	b.borrowed += t.excess(more) - t.excess(0)
	b.used += more
	t.used += more
	l.feed.used += more
	l.bytes = n
}

// fits reports whether the table may have one more page, by the three rules of Budget.
func (b *PageMemory) fits(t *tableMemory) bool {
	more := t.excess(b.page) - t.excess(0)
	return t.used == 0 || more == 0 || b.borrowed+more <= b.common
}

// atLimit reports whether the feed itself holds so much that it gets no more. It may always have
// one page.
func (b *PageMemory) atLimit(f *FeedMemory) bool { return f.used > 0 && f.used+b.page > b.perFeed }
