package raw

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// machine is a service and a machine in virtual time: each second of the service a reply comes.
type machine struct {
	dates   Dates
	service change.Millis // the true time of the service
	wrong   change.Millis // by how much its Dates are wrong
	mono    time.Duration
	wall    change.Millis
}

func newMachine(trust time.Duration) *machine {
	return &machine{dates: Dates{Trust: trust}, service: 1_000_000_000, wall: 1_000_000_000}
}

func (m *machine) pass(d time.Duration) {
	m.service, m.wall, m.mono = m.service+change.Millis(d.Milliseconds()), m.wall+change.Millis(d.Milliseconds()), m.mono+d
}

// reply returns the judgement of a reply after another second.
func (m *machine) reply() Judgement {
	m.pass(time.Second)
	date := m.service + m.wrong
	return m.dates.Judge(date-date%1000, Instant{m.mono, m.wall}, 20)
}

// replies returns how often each judgement was made in so many seconds.
func (m *machine) replies(n int) (judged [DateBelieved + 1]int) {
	for range n {
		judged[m.reply()]++
	}
	return judged
}

// TestWrongDatesAreDropped: for 8 seconds Dates are 100 s ahead or behind, and right before and
// after. None of them counts, and the right ones are good at once.
func TestWrongDatesAreDropped(t *testing.T) {
	for _, wrong := range []change.Millis{100_000, -100_000, 31_100, -33_000} {
		m := newMachine(2 * time.Minute)
		m.replies(5)
		m.wrong = wrong
		if got := m.replies(8); got[DateDropped] != 8 {
			t.Errorf("%d ms: %v", wrong, got)
		}
		if m.wrong = 0; m.reply() != DateGood || m.dates.Uncertain() {
			t.Errorf("%d ms: the right Date is not good", wrong)
		}
		m.wrong = 29_000
		if got := m.replies(3); got[DateGood] != 3 {
			t.Errorf("29 s: %v", got)
		}
	}
}

// TestSteadyDatesAreBelieved when they have advanced with the monotonic clock for two minutes, and
// not one that comes and goes, or jumps about.
func TestSteadyDatesAreBelieved(t *testing.T) {
	m := newMachine(2 * time.Minute)
	m.replies(5)
	m.wrong = 26 * 3600 * 1000
	if got := m.replies(120); got[DateDropped] != 120 {
		t.Errorf("within two minutes: %v", got)
	}
	if got := m.reply(); got != DateBelieved {
		t.Errorf("after two minutes: %v", got)
	}
	if got := m.replies(10); got[DateGood] != 10 {
		t.Errorf("then: %v", got)
	}
	for i := range 300 { // of two hosts behind one address, one has a wrong clock
		m.wrong = 26*3600*1000 - change.Millis(i%2)*100_000
		if got := m.reply(); got == DateBelieved {
			t.Fatalf("believed after %d replies of which every other one is right", i)
		}
	}
	m.wrong = 0
	for i := range 300 { // each Date is wrong by another minute
		m.wrong += 60_000
		if got := m.reply(); got != DateDropped && m.wrong != 26*3600*1000 {
			t.Fatalf("reply %d: %v", i, got)
		}
	}
	m = newMachine(2 * time.Minute)
	m.replies(5)
	m.wrong = 3_600_000
	m.reply()
	for range 130 { // others come between, so that one is not steady
		m.wrong += 60_000
		m.reply()
	}
	if m.wrong = 3_600_000; m.reply() != DateDropped {
		t.Error("a Date is believed that came once two minutes ago")
	}
}

// TestSuspendedProcessGoesOn: its monotonic clock stood still for an hour, its wall clock did not.
// And a wall clock that is set does no harm, because the monotonic one goes on.
func TestSuspendedProcessGoesOn(t *testing.T) {
	m := newMachine(2 * time.Minute)
	m.replies(5)
	m.service, m.wall = m.service+3_600_000, m.wall+3_600_000
	if got := m.reply(); got != DateGood {
		t.Errorf("after an hour: %v", got)
	}
	m.wall -= 7_200_000
	if got := m.replies(5); got[DateGood] != 5 {
		t.Errorf("after the clock was set: %v", got)
	}
}

// TestFirstDateFarFromTheWallClockIsUncertain until Dates have advanced with the monotonic clock
// for two minutes; also where it was the first Date that was wrong.
func TestFirstDateFarFromTheWallClockIsUncertain(t *testing.T) {
	for _, stays := range []bool{true, false} {
		m := newMachine(2 * time.Minute)
		m.wrong = 100_000
		if got := m.reply(); got != DateApart || !m.dates.Uncertain() {
			t.Errorf("the first one: %v, uncertain %v", got, m.dates.Uncertain())
		}
		if apart := m.dates.Apart(); apart < 99_000 || apart > 100_000 {
			t.Errorf("the first one is %d ms apart", apart)
		}
		if !stays {
			m.replies(7)
			m.wrong = 0
		}
		seconds := 0
		for ; m.dates.Uncertain(); seconds++ {
			m.reply()
		}
		if seconds < 119 || seconds > 122 {
			t.Errorf("the Date stays %v: certain after %d s", stays, seconds)
		}
		if got := m.reply(); got != DateGood || (m.dates.Apart() > 30_000) != stays {
			t.Errorf("then %v, %d ms apart", got, m.dates.Apart())
		}
	}
	m := newMachine(0)
	m.wrong = 100_000
	if got := m.reply(); got != DateFirst || m.dates.Uncertain() || m.dates.Apart() != 0 {
		t.Errorf("without trust: %v", got)
	}
	m.wrong = -100_000
	if got := m.reply(); got != DateBelieved {
		t.Errorf("without trust: %v", got)
	}
}

// TestDroppedDateMovesNoClock: the estimate stays, and what the reply proves is the earlier of
// both.
func TestDroppedDateMovesNoClock(t *testing.T) {
	for _, wrong := range []time.Duration{100 * time.Second, -100 * time.Second} {
		var c Clock
		c.Trust(2 * time.Minute)
		at := time.Now()
		date := at.Truncate(time.Second)
		reply := func(after, wrong time.Duration) (change.Millis, Judgement) {
			return c.Observe(Timing{Sent: at.Add(after), Replied: at.Add(after), Server: date.Add(after + wrong)})
		}
		reply(0, 0)
		requested, judged := reply(5*time.Second, wrong)
		want := change.MillisOf(date.Add(5*time.Second+min(wrong, 0))) - 1
		if judged != DateDropped || requested != want {
			t.Errorf("%v: %v, requested %d, want %d", wrong, judged, requested, want)
		}
		if now, _ := c.Read(at.Add(5 * time.Second)); now != change.MillisOf(date.Add(5*time.Second)) {
			t.Errorf("%v: the clock reads %s", wrong, fmt.Sprint(now.Time()))
		}
	}
}
