package bigtable

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// modelService is a service in virtual time, and clients that have always another call to make.
type modelService struct {
	latency  time.Duration // of a call that need not wait
	jitter   bool          // p99 is five times p50
	capacity float64       // calls a second
	refuses  bool          // what is above the capacity is refused; else it waits
	broken   float64       // share of calls that fail, whatever the load

	bound bound
	now   time.Duration
	calls modelCalls
	free  time.Duration // when the service takes the next call that waits
	spare float64       // calls above the capacity that are still taken, at most a tenth of a second's
	rnd   *rand.Rand
}

func newModel(latency time.Duration, capacity float64, seed uint64) *modelService {
	return &modelService{
		latency: latency, capacity: capacity, rnd: rand.New(rand.NewPCG(1, seed)), bound: newBound(8, 64, 2048),
	}
}

type modelCall struct {
	sent, ends time.Duration
	signal     loadSignal
}

type modelCalls []modelCall

func (c modelCalls) Len() int           { return len(c) }
func (c modelCalls) Less(i, j int) bool { return c[i].ends < c[j].ends }
func (c modelCalls) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *modelCalls) Push(x any)        { *c = append(*c, x.(modelCall)) }
func (c *modelCalls) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// send begins a call.
func (m *modelService) send() {
	c := modelCall{sent: m.now, ends: m.now + m.takes()}
	every := time.Duration(float64(time.Second) / m.capacity)
	switch {
	case m.rnd.Float64() < m.broken:
		c.signal = loadOverload
	case !m.refuses:
		m.free = max(m.free, m.now) + every
		c.ends += m.free - every - m.now
	default:
		m.spare = min(m.spare+(m.now-m.free).Seconds()*m.capacity, m.capacity/10)
		m.free = m.now
		if m.spare < 1 {
			c.signal = loadOverload
		} else {
			m.spare--
		}
	}
	heap.Push(&m.calls, c)
}

func (m *modelService) takes() time.Duration {
	if !m.jitter {
		return m.latency
	}
	// Log-normal, with a 99th percentile of five times the median.
	return time.Duration(float64(m.latency) * math.Exp(0.69*m.rnd.NormFloat64()))
}

// run lets clients call until a time, and returns the share of the capacity that was used and the
// share of calls that were refused, in the last part of it.
func (m *modelService) run(until, counted time.Duration) (used, refused float64) {
	taken, failed := 0, 0
	for m.now < until {
		for float64(len(m.calls))+1 <= m.bound.calls {
			m.send()
		}
		inFlight := len(m.calls)
		c := heap.Pop(&m.calls).(modelCall)
		m.now = c.ends
		m.bound.ended(m.now, c.ends-c.sent, c.signal, inFlight)
		if m.now >= until-counted {
			if c.signal == loadQuick {
				taken++
			} else {
				failed++
			}
		}
	}
	return float64(taken) / counted.Seconds() / m.capacity, float64(failed) / float64(taken+failed)
}

// TestBoundSettlesNearTheLimitOfTheService: at 90 % of what the service gives or more, with less
// than 1 % of the calls refused; and ten seconds after it gives four times as much, at 90 % of that.
func TestBoundSettlesNearTheLimitOfTheService(t *testing.T) {
	for _, latency := range []time.Duration{3 * time.Millisecond, 20 * time.Millisecond} {
		for i := range 4 {
			refuses, jitter, seed := i%2 == 0, i/2%2 == 0, uint64(i)
			t.Run(fmt.Sprintf("%s refuses=%t jitter=%t seed=%d", latency, refuses, jitter, seed), func(t *testing.T) {
				m := newModel(latency, 5000, seed)
				m.refuses, m.jitter = refuses, jitter
				used, refused := m.run(20*time.Second, 10*time.Second)
				if used < 0.9 || refused >= 0.01 {
					t.Errorf("settles at %.2f of the capacity with %.4f refused, bound %.0f", used, refused, m.bound.calls)
				}
				m.capacity = 20_000
				used, refused = m.run(36*time.Second, 6*time.Second)
				if used < 0.9 || refused >= 0.01 {
					t.Errorf("10 s after the limit grew: %.2f of it with %.4f refused, bound %.0f", used, refused, m.bound.calls)
				}
			})
		}
	}
}

// TestBoundIsFoundInSeconds: of a service far away that takes all calls.
func TestBoundIsFoundInSeconds(t *testing.T) {
	m := newModel(20*time.Millisecond, 1e6, 1)
	if m.run(time.Second, time.Second); m.bound.calls != m.bound.high {
		t.Errorf("bound %.0f after a second", m.bound.calls)
	}
}

// TestBoundRecoversFromAnOutage: while the service is away the bound is the lowest, and seconds
// after it is back the bound is what it was.
func TestBoundRecoversFromAnOutage(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		m := newModel(10*time.Millisecond, 10_000, 1)
		m.refuses = refuses
		m.run(10*time.Second, time.Second)
		m.broken = 1
		if m.run(40*time.Second, time.Second); m.bound.calls != m.bound.low {
			t.Errorf("bound %.0f in an outage", m.bound.calls)
		}
		m.broken = 0
		if used, refused := m.run(44*time.Second, 2*time.Second); used < 0.9 || refused >= 0.01 {
			t.Errorf("%.2f of the capacity after the outage with %.4f refused, bound %.0f", used, refused, m.bound.calls)
		}
	}
}

// TestBoundFollowsALastingChangeOfLatency: as after a fail-over to a cluster that is far away.
func TestBoundFollowsALastingChangeOfLatency(t *testing.T) {
	m := newModel(3*time.Millisecond, 10_000, 1)
	m.run(10*time.Second, time.Second)
	m.latency = 60 * time.Millisecond
	if used, _ := m.run(16*time.Second, 2*time.Second); used < 0.9 {
		t.Errorf("%.2f of the capacity 6 s after the change, bound %.0f", used, m.bound.calls)
	}
}

// TestCallsThatFailWhateverTheLoad do not keep the bound low.
func TestCallsThatFailWhateverTheLoad(t *testing.T) {
	for seed := range uint64(4) {
		for _, broken := range []float64{0.002, 0.02, 0.05} {
			m := newModel(10*time.Millisecond, 20_000, seed)
			m.broken = broken
			if used, _ := m.run(30*time.Second, 20*time.Second); used < 0.9 {
				t.Errorf("seed %d: with %.3f of the calls failing, %.2f of the capacity is used", seed, broken, used)
			}
		}
	}
}

// TestBoundThatIsNotUsedDoesNotGrow: what it might be is not known.
func TestBoundThatIsNotUsedDoesNotGrow(t *testing.T) {
	b := newBound(8, 32, 2048)
	b.round(0, time.Millisecond) // in which it is used
	for i := range 10_000 {
		b.ended(time.Duration(i)*time.Millisecond, time.Millisecond, loadQuick, 32)
	}
	if b.calls != 64 {
		t.Errorf("bound %.1f although half of it was used", b.calls)
	}
}

// round ends a round in which the bound was used in full, and calls took so long.
func (b *bound) round(at, took time.Duration) {
	for range max(int(b.calls), leastRound) {
		b.ended(at, took, loadQuick, int(b.calls))
	}
}

// TestBoundGrowsSlowlyBehindItsStart: a round in which the service is crowded ends the doubling. The
// bound stays then, and a round counts for a second at most: one that waited for calls for an hour
// has shown no more. However fast the curve is, the bound grows by half in a round.
func TestBoundGrowsSlowlyBehindItsStart(t *testing.T) {
	b, at := newBound(8, 64, 1e6), time.Second
	b.round(at, 20*time.Millisecond)
	if b.calls != 128 {
		t.Errorf("bound %.0f after the first round", b.calls)
	}
	b.round(at, 60*time.Millisecond)
	b.round(at+time.Millisecond, 20*time.Millisecond)
	if b.calls != 128 {
		t.Errorf("bound %.0f, which was 128 when the service was crowded", b.calls)
	}
	if b.round(at+time.Hour, 20*time.Millisecond); b.calls > 129 {
		t.Errorf("bound %.0f after an hour without calls", b.calls)
	}
	for at += time.Hour; b.calls < b.high; {
		before := b.calls
		at += time.Second
		if b.round(at, 20*time.Millisecond); b.calls > 1.5*before {
			t.Fatalf("bound %.0f after %.0f", b.calls, before)
		}
	}
}

// TestBoundDoesNotGrowWhileTheProcessorsAreShort: it stays what it is, and grows afterwards.
func TestBoundDoesNotGrowWhileTheProcessorsAreShort(t *testing.T) {
	m := newModel(20*time.Millisecond, 1e6, 1)
	m.bound.held = true
	before := m.bound.calls
	if m.run(2*time.Second, time.Second); m.bound.calls != before {
		t.Errorf("bound %.0f, was %.0f", m.bound.calls, before)
	}
	m.bound.held = false
	if m.run(20*time.Second, time.Second); m.bound.calls < 1000 {
		t.Errorf("bound %.0f afterwards", m.bound.calls)
	}
}

// TestBoundThatTheProcessorsHeldDoublesNoMore: what it might be with more of them is not known, so it
// grows slowly from there.
func TestBoundThatTheProcessorsHeldDoublesNoMore(t *testing.T) {
	b, at := newBound(8, 64, 2048), time.Second
	b.held = true
	b.round(at, 20*time.Millisecond)
	b.held = false
	if b.round(at+time.Millisecond, 20*time.Millisecond); b.calls != 64 {
		t.Errorf("bound %.0f, which was 64 when the processors were short", b.calls)
	}
}

// TestSearchBeginsAnewWhereLessLoadIsNoFaster: after the bound has shrunk three times in a row. A
// round that is faster, or not slow, begins the count again.
func TestSearchBeginsAnewWhereLessLoadIsNoFaster(t *testing.T) {
	for name, c := range map[string]struct {
		ms    []time.Duration // of slow rounds behind a start at 20 ms
		times []float64       // what the bound is multiplied by in each
	}{
		"as slow": {[]time.Duration{200, 200, 200, 200, 200}, []float64{0.5, 0.75, 0.75, 1, 2}},
		"faster once": {
			[]time.Duration{300, 300, 300, 200, 200, 200, 200}, []float64{0.5, 0.75, 0.75, 0.75, 0.75, 0.75, 1},
		},
		"not slow meanwhile": {[]time.Duration{200, 200, 200, 60, 200, 200}, []float64{0.5, 0.75, 0.75, 1, 0.75, 0.75}},
	} {
		b, at := newBound(8, 64, 1024), time.Second
		for range 5 {
			b.round(at, 20*time.Millisecond)
		}
		for i, ms := range c.ms {
			before := b.calls
			b.round(at, ms*time.Millisecond)
			if b.calls != before*c.times[i] {
				t.Fatalf("%s: bound %.1f after %.1f and round %d", name, b.calls, before, i)
			}
			if b.shrunk {
				b.round(at, ms*time.Millisecond) // its calls were sent before
			}
		}
	}
}
