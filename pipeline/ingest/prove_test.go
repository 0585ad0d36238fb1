package ingest

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
)

// The service's clock is an estimate that may be behind, by hours after the machine was suspended.
// Whoever waits for a time that it reaches much later gets its listing nevertheless, and that
// corrects it.
func TestProofDoesNotWaitForAClockThatIsBehind(t *testing.T) {
	v := newProver(zap.NewNop())
	began := time.Now()
	const now = change.Millis(1_000_000)
	patience := 10 * time.Second
	v.waiting = []*proof{{Proof: protocol.Proof{Through: now + 3_600_000}, asked: began}}
	for _, c := range []struct {
		after, proved time.Duration // since began
		want          time.Duration
	}{
		{after: 0, proved: -time.Hour, want: patience},
		{after: 4 * time.Second, proved: -time.Hour, want: 6 * time.Second},
		{after: 11 * time.Second, proved: -time.Hour, want: 0},
		{after: 11 * time.Second, proved: 10 * time.Second, want: 9 * time.Second}, // not a listing for each look
	} {
		wait, needed := v.nextListing(0, now, began.Add(c.proved), began.Add(c.after), patience)
		if !needed || wait != c.want {
			t.Errorf("after %v: %v, %v, want %v", c.after, wait, needed, c.want)
		}
	}
	// The clock catches up before: then the listing is due at once.
	if wait, _ := v.nextListing(0, now+3_602_000, began.Add(-time.Hour), began, patience); wait != 0 {
		t.Errorf("a listing is due in %v although the time has come", wait)
	}
}

// One listing serves all calls that wait for an earlier time; the next one is due when the next
// call's time has come.
func TestOneListingServesManyProofs(t *testing.T) {
	v := newProver(zap.NewNop())
	for i := range 10 {
		v.add(change.Millis(1000 * (i + 1)))
	}
	at := time.Now()
	if wait, needed := v.nextListing(0, 0, at.Add(-time.Hour), at, time.Hour); !needed || wait != 2*time.Second {
		t.Errorf("first listing in %v, %v", wait, needed)
	}
	if wait, needed := v.nextListing(9000, 9000, at, at, time.Hour); !needed || wait != 2*time.Second {
		t.Errorf("behind a listing that serves nine: %v, %v, want the tenth's time and the precision of Date", wait, needed)
	}
	if _, needed := v.nextListing(10_000, 10_000, at, at, time.Hour); needed {
		t.Error("a listing is due although one served all")
	}
}

// Once a listing serves calls, all shards are read at the moment from which an empty page of each
// serves these calls too, and once only.
func TestShardsAreReadAtOnceForProofs(t *testing.T) {
	v := newProver(zap.NewNop())
	for i := range 10 {
		v.add(change.Millis(1000 * (i + 1)))
	}
	if wait, needed := v.nextRead(0, 0); needed {
		t.Errorf("reads in %v without a listing", wait)
	}
	if wait, needed := v.nextRead(3500, 3500); !needed || wait != 2500*time.Millisecond {
		t.Errorf("behind a listing that serves three: %v, %v, want 2 s and a Date's precision behind the third", wait, needed)
	}
	v.noteRead(3500)
	if wait, needed := v.nextRead(3500, 5000); needed {
		t.Errorf("reads again in %v for the same calls", wait)
	}
	if wait, needed := v.nextRead(4000, 8000); !needed || wait > 0 {
		t.Errorf("behind the next listing: %v, %v", wait, needed)
	}
}

// A proof has three parts: a complete listing begun after the time, reads that reach past it, and
// Bigtable's mark. While one is missing the reason says what, also in front of a gap and of a full
// log.
func TestProofNeedsItsThreeParts(t *testing.T) {
	ctx := t.Context()
	_, _, w := claimedLog(t, 4<<20)
	const begin = change.Millis(1_790_000_000_000)
	v := newProver(zap.NewNop())
	var p *proof
	expect := func(want string, mark uint64, paused string, bodies ...any) {
		t.Helper()
		for _, body := range bodies {
			if _, err := w.Append(ctx, body, nil); err != nil {
				t.Fatal(err)
			}
		}
		v.look(w.State(), mark, paused)
		met := false
		select {
		case <-p.met:
			met = true
		default:
		}
		if why := v.reason(); met != (want == "") || !strings.Contains(why, want) {
			t.Errorf("met: %v, waits because %q; want %q", met, why, want)
		}
	}
	beat := func(listed, read change.Millis) *checkpoint.Beat {
		return &checkpoint.Beat{Date: begin + max(listed, read), Listed: begin + listed, Watermark: begin + read}
	}
	start := &checkpoint.Start{Stream: "arn", Date: begin, Shards: []checkpoint.ShardSeen{{ID: "a"}, {ID: "b"}}}
	p = v.add(begin + 60_000)
	expect("listing", 0, "", start)
	w.State().LastFrame = 7
	expect("listing", 0, "", beat(59_999, 90_000))
	expect("reading pauses: the log is full", 0, "the log is full")
	expect("entry 7", 6, "", beat(60_000, 90_000))
	expect("", 7, "")
	p = v.add(begin + 120_000)
	expect("not read so far", 7, "", beat(130_000, 110_000))
	expect("1 shards stand before a gap", 7, "", &checkpoint.Gap{
		Feed: change.Feed{Stream: "arn", Shard: "b"}, Since: begin, Until: begin + 100_000, Reason: "trimmed", Found: begin,
	})
}
