package checkpoint

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestHeadMovesWithWhatItSays: entries of the archive's stream alone are no reason to store it, or
// marks would be stored for ever; fewer of them are.
func TestHeadMovesWithWhatItSays(t *testing.T) {
	known := ArchiveHead{N: 3, Hash: "c", End: 100, Open: 7}
	for name, x := range map[string]struct {
		head ArchiveHead
		from *ArchiveHead
		want bool
	}{
		"nothing is known":  {known, nil, true},
		"the same":          {known, &known, false},
		"more entries":      {ArchiveHead{N: 3, Hash: "c", End: 101, Open: 7}, &known, false},
		"fewer entries":     {ArchiveHead{N: 3, Hash: "c", End: 99, Open: 7}, &known, true},
		"an hour is closed": {ArchiveHead{N: 3, Hash: "c", End: 100, Open: 8}, &known, true},
		"a manifest":        {ArchiveHead{N: 4, Hash: "d", End: 100, Open: 7}, &known, true},
	} {
		if got := x.head.Moved(x.from); got != x.want {
			t.Errorf("%s: moved is %v", name, got)
		}
	}
}

// TestForgottenHourIsNotCountedAsEmpty: a bucket that was away for weeks lets hours be closed that
// are forgotten by then.
func TestForgottenHourIsNotCountedAsEmpty(t *testing.T) {
	at := func(h Hour) change.Millis { return change.Millis(int64(h) * 3_600_000) }
	s := &ExpiredCounts{}
	s.Add(CountsByHour{1000: 3}, at(1000))
	s.Add(CountsByHour{1001 + hoursCounted: 5}, at(1001+hoursCounted))
	for hour, want := range map[Hour]int64{1000: -1, 1001: 0, 1001 + hoursCounted: 5} {
		n, known := s.Of(hour, at(1001+hoursCounted))
		if known != (want >= 0) || known && n != want {
			t.Errorf("hour %d: %d, known: %v", hour, n, known)
		}
	}
}
