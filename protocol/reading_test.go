package protocol_test

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// log folds entries of one writer.
type log struct {
	*testing.T
	s *checkpoint.State
}

func (l *log) append(body any) {
	l.Helper()
	if err := l.s.CheckNext(body); err != nil {
		l.Fatal(err)
	}
	e := &checkpoint.Entry{Kind: checkpoint.KindOf(body), Epoch: 1, Prev: l.s.Hash, Body: body}
	msg, err := checkpoint.Encode(nil, e)
	if err != nil {
		l.Fatal(err)
	}
	if e, err := l.s.Apply(l.s.Seq+1, msg); err != nil || e == nil {
		l.Fatalf("%T folds as %v: %v", body, e, err)
	}
}

// A burst has run a shard's clock six minutes ahead of the time, then records were lost. The rows
// hold versions of the burst, and a repair below them would be skipped: so the resync that heals
// the gap reads only when its repairs are above every version that was given out, in each way that
// it can be ordered.
func TestRepairsAreAboveABurstThatEndsInAGap(t *testing.T) {
	const now, ahead = 1_790_000_000_000, 360_000
	feed := change.Feed{Stream: "arn", Shard: "a"}
	gap := &checkpoint.Gap{Feed: feed, From: change.Position{After: "1"}, Since: now - 1000, Until: now, Found: now}
	order := func(id string, gaps ...string) *checkpoint.Control {
		return &checkpoint.Control{Resync: &checkpoint.ResyncOrder{ID: id, Gaps: gaps}, At: now}
	}
	for name, orders := range map[string][]any{
		"gaps heal":           {order("r", gap.ID())},
		"resume, then resync": {&checkpoint.Control{Resume: true, At: now}, order("r")},
		"ordered again":       {order("r", gap.ID()), order("r2")},
	} {
		l := &log{t, checkpoint.NewState()}
		l.append(&checkpoint.Claim{Owner: "a", Format: checkpoint.Format})
		l.append(&checkpoint.Start{Stream: "arn", Date: now - 10_000, Shards: []checkpoint.ShardSeen{{ID: "a"}}})
		l.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: 1}}})
		l.append(&checkpoint.Frame{Pages: []checkpoint.PageHead{{Feed: feed, To: change.Position{After: "1"}, Records: 1,
			Clock: now + ahead, Date: now, Newest: now}}})
		l.append(gap)
		for _, body := range orders {
			l.append(body)
		}
		p := l.s.Resync
		if p == nil || len(p.Gaps) != 1 {
			t.Fatalf("%s: %+v, gaps %+v", name, p, l.s.Gaps)
		}
		begin, _ := protocol.ResyncFrom(p, protocol.RowFacts{GapsUntil: now})
		if v := protocol.Version(begin, l.s.Floor()); v < now+ahead || v < l.s.TopClock() {
			t.Errorf("%s: a repair that is read at the begin has version %d, %d ms below the burst", name, v, now+ahead-v)
		}
		if v := protocol.Version(begin-2000, l.s.Floor()); v >= now+ahead {
			t.Errorf("%s: it begins later than it must", name)
		}
	}
}

// TestReadingIsFreshForTwoMinutesBehindEachGap: neither clock makes it younger, and a gap that ends
// after it makes it old at once.
func TestReadingIsFreshForTwoMinutesBehindEachGap(t *testing.T) {
	const requested = 1_790_000_000_000
	wall := change.Millis(requested).Time()
	r := protocol.Reading{Requested: requested, At: protocol.Instant{Wall: wall, Mono: time.Hour}}
	for name, c := range map[string]struct {
		wall, mono time.Duration
		gaps       change.Millis
		want       bool
	}{
		"at once":                     {0, 0, 0, true},
		"before it is old":            {119 * time.Second, 119 * time.Second, requested - 1, true},
		"old":                         {120 * time.Second, 120 * time.Second, 0, false},
		"the machine was suspended":   {120 * time.Second, time.Second, 0, false},
		"the wall clock was set back": {-time.Hour, 120 * time.Second, 0, false},
		"a gap ends at the request":   {0, 0, requested, false},
		"a gap ends later":            {time.Second, time.Second, requested + 1000, false},
	} {
		now := protocol.Instant{Wall: wall.Add(c.wall), Mono: time.Hour + c.mono}
		if fresh := r.Fresh(now, c.gaps); fresh != c.want {
			t.Errorf("%s: fresh is %v", name, fresh)
		}
	}
}

// TestResyncReadsAboveWhatWasLostAndLate: repairs are a minute below their reading. What late
// owners may still write is two minutes and five seconds old at most, and a Date may be early by a
// second and a half.
func TestResyncReadsAboveWhatWasLostAndLate(t *testing.T) {
	const (
		asked  change.Millis = 1_790_000_000_000
		minute change.Millis = 60_000
		late                 = 2*minute + 5_000
		step   change.Millis = 1_500
	)
	gaps, burst := []string{"g"}, change.Version(asked+10*minute)
	for name, c := range map[string]struct {
		p     checkpoint.PendingResync
		until change.Millis // of the latest gap
		want  change.Millis
	}{
		"a comparison":                   {checkpoint.PendingResync{}, 0, asked},
		"a comparison right after a gap": {checkpoint.PendingResync{}, asked - 1000, asked - 1000 + minute},
		"a comparison after a burst":     {checkpoint.PendingResync{Above: burst}, 0, asked + 11*minute},
		"gaps":                           {checkpoint.PendingResync{Gaps: gaps}, asked - 1000, asked + late},
		"gaps that end later":            {checkpoint.PendingResync{Gaps: gaps}, asked + minute, asked + minute + late},
		"gaps after a burst":             {checkpoint.PendingResync{Gaps: gaps, Above: burst}, asked, asked + 11*minute},
		"a recovery":                     {checkpoint.PendingResync{Recover: true}, 0, asked + late},
		"a recovery: its floor is above": {checkpoint.PendingResync{Recover: true, Above: burst}, 0, asked + late},
		"a recovery with a gap and burst": {checkpoint.PendingResync{Recover: true, Gaps: gaps, Above: burst}, asked,
			asked + 11*minute},
	} {
		c.p.Asked = asked
		from, ok := protocol.ResyncFrom(&c.p, protocol.RowFacts{GapsUntil: c.until})
		if !ok || from != c.want+step {
			t.Errorf("%s: read from %d ms after the order on, want %d", name, from-asked, c.want+step-asked)
		}
		f := protocol.RowFacts{GapsUntil: c.until, OrderClosed: asked + 60*minute}
		if from, ok := protocol.ResyncFrom(&c.p, f); !ok || from < f.OrderClosed {
			t.Errorf("%s: read %d ms before the workers had ended", name, f.OrderClosed-from)
		}
		if _, ok := protocol.ResyncFrom(&c.p, protocol.RowFacts{WorkersMayWrite: true}); ok {
			t.Errorf("%s: read while workers may write", name)
		}
	}
}

// TestItemThatWasReadIsAboveTheFloorOfItsLife: the clock of the reading may be below what the log
// before gave out.
func TestItemThatWasReadIsAboveTheFloorOfItsLife(t *testing.T) {
	const read change.Millis = 1_790_000_000_000
	floor := change.Version(read) + 500_000
	if v := protocol.Version(read, floor); v <= floor || v != change.LowestRead(floor) {
		t.Errorf("version %d, the floor is %d", v, floor)
	}
	if v := protocol.Version(read, 0); v != change.Version(read)-60_000 {
		t.Errorf("version %d is not a minute below the reading", v)
	}
}
