package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

const anHour = change.Millis(3_600_000)

// expiring returns a frame of records that TTL deleted.
func expiring(from, to change.SequenceNumber, date change.Millis, c CountsByHour) *Frame {
	return &Frame{Pages: []PageHead{{
		Feed: change.Feed{Stream: "arn", Shard: "a"}, From: change.Position{After: from}, To: change.Position{After: to},
		Clock: change.Version(date), Date: date, Records: 1, Expired: c,
	}}}
}

func TestDeletionsByTTLAreCountedForAWeek(t *testing.T) {
	w := owned(t, ShardSeen{ID: "a"})
	now := 500_000 * anHour
	for _, f := range []*Frame{
		expiring("", "1", now, CountsByHour{500_000: 2}),
		expiring("1", "2", now, CountsByHour{500_000: 3, 499_999: 1}),
	} {
		f.Pages[0].ClockFrom = w.s.Shards["a"].Clock
		f.Pages[0].Clock = max(f.Pages[0].Clock, f.Pages[0].ClockFrom+1)
		w.must(t, f)
	}
	head := &ArchiveHead{N: 7, Hash: "abc"}
	w.must(t, &Marks{Sinks: map[string]Mark{"archive": {Seq: w.s.Seq, Hash: w.s.Hash}}, Archive: head})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*State{"folded": w.l.fold(t), "restored": w.l.restored(t)} {
		if d := cmp.Diff(ExpiredCounts{Hours: CountsByHour{500_000: 5, 499_999: 1}, Head: head}, s.Expired); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		n, known := s.Expired.Of(500_000, now)
		if _, of := s.Expired.Of(500_000-8*24, now); n != 5 || !known || of {
			t.Errorf("%s: %d, %v; eight days ago: %v", what, n, known, of)
		}
	}
	late := expiring("2", "3", now+8*24*anHour, CountsByHour{500_000 + 8*24: 1})
	late.Pages[0].ClockFrom = w.s.Shards["a"].Clock
	if w.must(t, late); len(w.s.Expired.Hours) != 1 {
		t.Errorf("after eight days: %v", w.s.Expired.Hours)
	}
}

// TestRecoveryCountsFromItsNextHourOn: what it reads again may be trimmed in part.
func TestRecoveryCountsFromItsNextHourOn(t *testing.T) {
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Date: 500_000*anHour + 1, Recover: true, Shards: []ShardSeen{{ID: "a"}}})
	if w.s.Expired.Since != 500_001 {
		t.Errorf("counted since %d", w.s.Expired.Since)
	}
}
