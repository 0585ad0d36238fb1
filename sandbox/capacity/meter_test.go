package capacity

import (
	"testing"
	"time"
)

// rig is a meter on a clock that the test moves.
type rig struct {
	*Meter
	at time.Time
}

func newRig() *rig {
	r := &rig{Meter: New(), at: time.Unix(1_795_000_000, 0)}
	r.now = func() time.Time { return r.at }
	return r
}

// consume reads pages of so many units as fast as it is let, for a number of seconds, and returns
// what it consumed.
func (r *rig) consume(read Read, units float64, seconds int) float64 {
	sum := 0.0
	for end := r.at.Add(time.Duration(seconds) * time.Second); r.at.Before(end); r.at = r.at.Add(time.Millisecond) {
		if r.Admit(read) {
			r.Charge(read, units)
			sum += units
		}
	}
	return sum
}

func TestReadsStayBelowTheProvisionedCapacity(t *testing.T) {
	r := newRig()
	read := Read{Table: "Orders", Provisioned: 100}
	if got := r.consume(read, 256, 1); got != 256*1000 {
		t.Errorf("without a limit: %v units", got)
	}
	r.Limit("Orders", Limit{Provisioned: true})
	// one burst of a second, and one page that is begun with the last unit
	if got := r.consume(read, 256, 60); got < 100*60-256 || got > 100*61+256 {
		t.Errorf("%v units in a minute, want about 6000", got)
	}
	if refused := r.Seconds("Orders")[5].Refused; refused == 0 {
		t.Error("no refusal was counted")
	}
	read.Provisioned = 0
	if got := r.consume(read, 1, 1); got != 1000 {
		t.Errorf("on demand: %v units", got)
	}
}

func TestOneHotPartitionRefusesWhileOthersServe(t *testing.T) {
	r := newRig()
	r.Limit("Orders", Limit{Hot: 10, Partitions: 4})
	hot, cold := Read{Table: "Orders", Hash: 1}, Read{Table: "Orders", Hash: 1 << 62}
	if got := r.consume(cold, 2, 10); got != 20_000 {
		t.Errorf("another partition: %v units", got)
	}
	if got := r.consume(hot, 2, 10); got < 90 || got > 120 {
		t.Errorf("the hot partition: %v units in ten seconds, want about 100", got)
	}
	r.Calm()
	if got := r.consume(hot, 2, 1); got != 2000 {
		t.Errorf("after calm: %v units", got)
	}
}

func TestUnitsAreCountedBySecond(t *testing.T) {
	r := newRig()
	from := r.at
	read := Read{Table: "Orders"}
	r.Charge(read, 1.5)
	r.at = r.at.Add(1500 * time.Millisecond)
	r.Charge(read, 2)
	r.Charge(read, 0.5)
	got := r.Seconds("Orders")
	if len(got) != 2 || got[0].Units != 1.5 || got[1].Units != 2.5 || got[1].At.Sub(got[0].At) != time.Second {
		t.Errorf("seconds %+v", got)
	}
	if sum := r.Units("Orders", from.Add(time.Second)); sum != 2.5 {
		t.Errorf("%v units since the second second", sum)
	}
}
