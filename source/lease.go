package source

// PageLease is the memory of one page. Reserve takes room for a page before it is read, Settle
// changes that to what the page holds, and Release gives it back. It belongs to the reader until
// the page is read and to the page afterwards. A nil Lease holds nothing and may be released.
// Leases are safe for concurrent use.
type PageLease struct {
	feed  *FeedMemory
	bytes int64 // the budget's mutex covers it
}

// Lease makes a lease that holds nothing.
func (f *FeedMemory) Lease() *PageLease { return &PageLease{feed: f} }

// Reserve makes the lease hold room for a page, unless it holds something already, and returns
// true. Where it has to wait it returns false; granted is called once the lease holds the room,
// from any goroutine and with no lock held. Release withdraws it before that.
func (l *PageLease) Reserve(granted func()) bool {
	b := l.feed.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grantNow(l) {
		return true
	}
	b.enqueue(l, granted)
	return false
}

// TryReserve is Reserve without waiting: it returns false where Reserve would wait.
func (l *PageLease) TryReserve() bool {
	b := l.feed.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grantNow(l)
}

// Settle changes what the lease holds to the n bytes of the page that was read. It never waits,
// even if these are more than were reserved, because the bytes are in memory already.
func (l *PageLease) Settle(n int64) {
	b := l.feed.budget
	b.mu.Lock()
	granted := b.resizeAndServe(l, n)
	b.mu.Unlock()
	for _, w := range granted {
		w.granted()
	}
}

// Release gives back what the lease holds, or withdraws a Reserve that waits. Releasing again
// changes nothing.
func (l *PageLease) Release() {
	if l == nil {
		return
	}
	b := l.feed.budget
	b.mu.Lock()
	b.withdraw(l)
	granted := b.resizeAndServe(l, 0)
	b.mu.Unlock()
	for _, w := range granted {
		w.granted()
	}
}
