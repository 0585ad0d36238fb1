package source

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// feed is a feed of the model: what it should hold.
type feed struct {
	*FeedMemory
	next           *PageLease // of the read to come
	waiting, holds bool
	pages          []page
}

// page is a page that a feed has read.
type page struct {
	bytes int64
	lease *PageLease
}

const modelPage = 10

func (f *feed) has() int64 {
	sum := int64(0)
	if f.holds {
		sum = modelPage
	}
	for _, p := range f.pages {
		sum += p.bytes
	}
	return sum
}

// model is what the budget promises, by counting anew after each step.
type model struct {
	*rapid.T
	b         *PageMemory
	announced int
	tables    [][]*feed
	waiting   [][]*feed // by table, in the order in which they came
}

func newModel(t *rapid.T) *model {
	m := &model{T: t, tables: make([][]*feed, 3), waiting: make([][]*feed, 3)}
	m.announced = rapid.IntRange(1, len(m.tables)).Draw(t, "announced")
	total, perFeed := rapid.Int64Range(5, 150).Draw(t, "total"), rapid.Int64Range(5, 50).Draw(t, "per feed")
	m.b = NewPageMemory(total, perFeed, modelPage, m.announced)
	for i := range m.tables {
		for range 4 {
			m.tables[i] = append(m.tables[i], &feed{FeedMemory: m.b.Feed(string(rune('a' + i)))})
		}
	}
	return m
}

func (m *model) part(table int) int64 {
	if table < m.announced {
		return m.b.total / 2 / int64(m.announced)
	}
	return 0
}

// parts returns what is kept for the announced tables.
func (m *model) parts() (sum int64) {
	for i := range m.announced {
		sum += m.part(i)
	}
	return sum
}

func (m *model) held(table int) (sum int64) {
	for _, f := range m.tables[table] {
		sum += f.has()
	}
	return sum
}

func (m *model) atLimit(f *feed) bool { return f.has() > 0 && f.has()+modelPage > m.b.perFeed }

// reserve asks for a page for the feed, and checks that the feed overtakes no other one of its
// table.
func (m *model) reserve(table int, f *feed) {
	m.waiting[table] = append(m.waiting[table], f)
	granted := func() {
		for _, other := range m.waiting[table] {
			if other == f {
				break
			}
			if !m.atLimit(other) {
				m.Fatalf("table %d: a feed was served before another that came first", table)
			}
		}
		f.holds = true
		m.forget(table, f)
	}
	f.next = f.Lease()
	if f.next.Reserve(granted) {
		granted()
	} else {
		f.waiting = true
	}
}

// try makes a claim that does not wait.
func (m *model) try(table int, f *feed) {
	m.waiting[table] = append(m.waiting[table], f)
	f.next = f.Lease()
	if f.holds = f.next.TryReserve(); f.holds {
		for _, other := range m.waiting[table] {
			if other != f && !m.atLimit(other) {
				m.Fatalf("table %d: a feed was served at once before another that waited", table)
			}
		}
	} else {
		m.checkWaiting(table, m.b.borrowed+m.parts())
	}
	m.forget(table, f)
}

func (m *model) forget(table int, f *feed) {
	f.waiting = false
	m.waiting[table] = slices.DeleteFunc(m.waiting[table], func(x *feed) bool { return x == f })
}

// read ends the feed's read, which brought n bytes.
func (m *model) read(f *feed, n int64) {
	f.holds = false
	f.next.Settle(n)
	if n > 0 {
		f.pages = append(f.pages, page{n, f.next})
	}
}

func (m *model) release(f *feed) {
	p := f.pages[0]
	f.pages = f.pages[1:]
	p.lease.Release()
	p.lease.Release() // a second time changes nothing
}

func (m *model) step() {
	table := rapid.IntRange(0, len(m.tables)-1).Draw(m.T, "table")
	f := m.tables[table][rapid.IntRange(0, len(m.tables[table])-1).Draw(m.T, "feed")]
	switch {
	case f.holds && rapid.Bool().Draw(m.T, "read"):
		m.read(f, rapid.Int64Range(0, modelPage).Draw(m.T, "page"))
	case len(f.pages) > 0 && rapid.Bool().Draw(m.T, "release"):
		m.release(f)
	case f.holds || f.waiting:
		if rapid.IntRange(0, 3).Draw(m.T, "drop") == 0 {
			m.forget(table, f)
			f.holds = false
			f.next.Release()
		}
	case rapid.Bool().Draw(m.T, "wait"):
		m.reserve(table, f)
	default:
		m.try(table, f)
	}
}

// check holds the budget to its word.
func (m *model) check() {
	var used, promised int64
	bound := m.b.total
	for i, feeds := range m.tables {
		held := m.held(i)
		used, promised = used+held, promised+max(held, m.part(i))
		bound += max(0, modelPage-m.part(i))
		for _, f := range feeds {
			if f.has() > max(m.b.perFeed, modelPage) {
				m.Fatalf("a feed has %d of %d", f.has(), m.b.perFeed)
			}
		}
	}
	if used > bound {
		m.Fatalf("%d in use, %d allowed", used, bound)
	}
	if m.b.used != used || m.b.borrowed+m.parts() != promised {
		m.Fatalf("%d in use and %d promised, counted as %d and %d", used, promised, m.b.used, m.b.borrowed+m.parts())
	}
	n, _ := m.b.Parked()
	for i := range m.tables {
		n -= len(m.waiting[i])
		m.checkWaiting(i, promised)
	}
	if n != 0 {
		m.Fatalf("%d feeds wait that the model does not know", n)
	}
}

// checkWaiting checks that every feed that waits has to wait.
func (m *model) checkWaiting(table int, promised int64) {
	held, part := m.held(table), m.part(table)
	for _, f := range m.waiting[table] {
		switch {
		case m.atLimit(f):
		case held == 0:
			m.Fatalf("table %d starves", table)
		case held+modelPage <= part:
			m.Fatalf("table %d waits with %d of its part of %d", table, held, part)
		case promised-max(held, part)+max(held+modelPage, part) <= m.b.total:
			m.Fatalf("table %d waits with %d of %d promised", table, promised, m.b.total)
		}
	}
}

// goOn lets the tables read and release for many rounds, and returns how many of their feeds still
// wait.
func (m *model) goOn(tables ...int) (wait int) {
	for _, i := range tables {
		for range 2 * len(m.tables[i]) { // in one round a feed releases, in another it may be served
			for _, f := range m.tables[i] {
				if f.holds {
					m.read(f, 0)
				}
				for len(f.pages) > 0 {
					m.release(f)
				}
				m.check()
			}
		}
		wait += len(m.waiting[i])
	}
	return wait
}

// Whatever feeds reserve, read, release and withdraw: the budget stays within its bound, no feed
// waits that could be served, the feeds of a table are served in order, no table blocks another
// one, and in the end all memory is free.
func TestBudgetIsBoundedAndNoTableStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			m.step()
			m.check()
		}
		if n := m.goOn(1, 2); n > 0 { // table 0 gives nothing back any more
			t.Fatalf("%d feeds wait for another table", n)
		}
		if n := m.goOn(0); n > 0 || m.b.used != 0 {
			t.Fatalf("%d feeds wait and %d is in use, though all is free", n, m.b.used)
		}
	})
}

// One table alone has the whole total, and never more.
func TestOnlyTableHasTheWholeBudget(t *testing.T) {
	b := NewPageMemory(100, 1000, modelPage, 1)
	for i := range 11 {
		if got, want := b.Feed("a").Lease().Reserve(func() {}), i < 10; got != want {
			t.Fatalf("page %d of 10: served %v", i+1, got)
		}
	}
}

// Who is busy alone has what the others need not be kept, half of the total at least.
func TestBusyTableAmongIdleOnesHasMoreThanHalf(t *testing.T) {
	b := NewPageMemory(100*modelPage, 1e6, modelPage, 10)
	n := 0
	for b.Feed("a").Lease().Reserve(func() {}) {
		n++
	}
	if n != 55 { // the half that is common, and a tenth of the other one
		t.Fatalf("%d pages of 100", n)
	}
	if !b.Feed("b").Lease().Reserve(func() {}) {
		t.Fatal("the other one waits")
	}
}

// crowd are ten thousand feeds of some tables, of which all but a few wait.
func crowd(tables int) (leases []*PageLease, turn *[]*PageLease) {
	b := NewPageMemory(16*reservation, 8<<20, reservation, tables)
	leases, turn = make([]*PageLease, 10_000), new([]*PageLease)
	for i := range leases {
		leases[i] = b.Feed(string(rune('a' + i%tables))).Lease()
		await(leases[i], turn)
	}
	return leases, turn
}

// await queues the lease behind those in turn once it holds a page.
func await(l *PageLease, turn *[]*PageLease) {
	if l.Reserve(func() { *turn = append(*turn, l) }) {
		*turn = append(*turn, l)
	}
}

// BenchmarkBudgetTurn is a page of one of ten thousand feeds: read, released, the next one granted,
// and the feed at the end of the queue again.
func BenchmarkBudgetTurn(b *testing.B) {
	for name, tables := range map[string]int{"1 table": 1, "20 tables": 20} {
		b.Run(name, func(b *testing.B) {
			_, turn := crowd(tables)
			b.ReportAllocs()
			for b.Loop() {
				l := (*turn)[0]
				*turn = (*turn)[1:]
				l.Settle(1 << 20)
				l.Release()
				await(l.feed.Lease(), turn)
			}
		})
	}
}

// BenchmarkBudgetEnd is the end of a pool of ten thousand feeds that wait.
func BenchmarkBudgetEnd(b *testing.B) {
	for b.Loop() {
		leases, _ := crowd(1)
		for _, l := range leases {
			l.Release()
		}
	}
}

// BenchmarkBudgetFree reserves and releases a page while no other feed waits.
func BenchmarkBudgetFree(b *testing.B) {
	f := NewPageMemory(16*reservation, 8<<20, reservation, 1).Feed("a")
	b.ReportAllocs()
	for b.Loop() {
		l := f.Lease()
		l.Reserve(func() {})
		l.Settle(1 << 20)
		l.Release()
	}
}
