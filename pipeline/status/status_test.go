package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

func TestLowRetentionIsRed(t *testing.T) {
	for behind, red := range map[time.Duration]bool{17 * time.Hour: false, 19 * time.Hour: true} {
		now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
		s := checkpoint.NewState()
		s.Owner, s.Date = "a", change.Millis(now)
		s.Streams = []*checkpoint.Stream{{ARN: "arn", Date: change.Millis(now - behind.Milliseconds())}}
		s.Listed = change.Millis(now)
		s.Shards["s"] = &checkpoint.Shard{ID: "s", Stream: "arn", Phase: checkpoint.PhaseOpen,
			Watermark: change.Millis(now - behind.Milliseconds())}
		s.Reindex()
		st := Of(Seen{State: s, Now: change.Millis(now), ClaimTTL: time.Minute})
		if got := strings.Contains(strings.Join(st.Reasons, "; "), "unread changes are lost in"); got != red {
			t.Errorf("%v behind: reasons %q, want a word about it: %v", behind, st.Reasons, red)
		}
	}
}

// open is the state of a table with one shard, read and applied through a time.
func open(now, through int64) *checkpoint.State {
	s := checkpoint.NewState()
	s.Format, s.Owner, s.Epoch, s.Date, s.Listed = 1, "a", 1, change.Millis(now), change.Millis(now)
	s.Streams = []*checkpoint.Stream{{ARN: "arn", Date: change.Millis(now - time.Hour.Milliseconds())}}
	s.Shards["s"] = &checkpoint.Shard{ID: "s", Stream: "arn", Phase: checkpoint.PhaseOpen,
		Watermark: change.Millis(through)}
	s.Reindex()
	s.Marks["bigtable"] = checkpoint.Mark{Seq: 5}
	s.Watermarks = []checkpoint.Watermark{{Seq: 5, Time: change.Millis(through)}}
	return s
}

// TestWrittenBehindAFenceIsNotReady: a fence alone is, and a certificate is shown as soon as the
// log has it.
func TestWrittenBehindAFenceIsNotReady(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	of := func(f checkpoint.Fence) Table {
		s := open(now.UnixMilli(), now.UnixMilli())
		f.ID, f.Seq, f.Last, f.At = "f1", 6, 5, change.MillisOf(now)
		s.Fence = &f
		return Of(Seen{Source: "Orders", State: s, Now: change.MillisOf(now), ClaimTTL: time.Minute})
	}
	st := of(checkpoint.Fence{Certified: change.MillisOf(now)})
	if st.State != "fenced" || len(st.Reasons) > 0 || st.BehindFence != nil || st.Fence.Certified == nil ||
		!st.Fence.Certified.Equal(now) {
		t.Errorf("a certified fence: %+v, %+v", st, st.Fence)
	}
	since := now.Add(-time.Minute)
	st = of(checkpoint.Fence{Behind: 3, BehindSince: change.MillisOf(since)})
	if st.State != WrittenBehindFence || st.BehindFence == nil || st.BehindFence.Changes != 3 ||
		!st.BehindFence.Since.Equal(since) || st.Fence.Certified != nil || st.Since == nil || !st.Since.Equal(since) {
		t.Errorf("3 changes behind the fence: %+v, %+v", st, st.BehindFence)
	}
	want := []string{"was written to behind the fence of cutover f1: 3 changes since 2026-01-01T23:59:00Z, and Bigtable " +
		"does not get them"}
	if d := cmp.Diff(want, st.Reasons); d != "" {
		t.Error(d)
	}
}

// TestLagsGrowWhileNothingIsHeard: the numbers of an outage must not be those of its beginning.
func TestLagsGrowWhileNothingIsHeard(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	o := Observe(Seen{Source: "Orders", State: open(now.UnixMilli(), now.UnixMilli()), Now: change.MillisOf(now),
		ClaimTTL: 15 * time.Second}, nil)
	o.own = true
	for silence, want := range map[time.Duration]string{
		time.Second: "",
		time.Minute: "nothing could be stored in the log for 1 m 00 s",
		5 * time.Minute: "nothing could be stored in the log for 5 m 00 s; " +
			"nothing shows that what was written in the last 5 m 00 s has been read",
	} {
		st := o.At(now.Add(silence), o.lookedAt.Add(silence))
		if st.SourceLag != silence.Seconds() || st.AppliedLag != silence.Seconds() ||
			st.Retention != (24*time.Hour-silence).Seconds() {
			t.Errorf("after %v: lags %v and %v, retention %v", silence, st.SourceLag, st.AppliedLag, st.Retention)
		}
		if got := strings.Join(st.Reasons, "; "); got != want {
			t.Errorf("after %v: not ready because %q, want %q", silence, got, want)
		}
	}
}

// TestBehindIsReadyOnlyWhileItMoves: Rule 10. A table that catches up progresses, one that stands
// still does not.
func TestBehindIsReadyOnlyWhileItMoves(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	past := now.Add(-time.Hour).UnixMilli()
	look := func(through int64, mark uint64, before *Observed) *Observed {
		s := open(now.UnixMilli(), through)
		s.Watermarks[0].Time = change.Millis(past)
		s.LastFrame, s.Marks["bigtable"] = 9, checkpoint.Mark{Seq: mark}
		return Observe(Seen{State: s, Now: change.MillisOf(now), ClaimTTL: time.Minute}, before)
	}
	for _, c := range []struct {
		name string
		o    *Observed
		want []string
	}{
		{"moves", look(past+1, 6, look(past, 5, nil)), nil},
		{"stands still", look(past, 5, look(past, 5, nil)), []string{
			"nothing shows that what was written in the last 1 h 00 m has been read",
			"4 entries of the log wait for sink bigtable, the oldest for 1 h 00 m"}},
		{"applies", look(past, 6, look(past, 5, nil)),
			[]string{"nothing shows that what was written in the last 1 h 00 m has been read"}},
		{"reads", look(past+1, 5, look(past, 5, nil)),
			[]string{"4 entries of the log wait for sink bigtable, the oldest for 1 h 00 m"}},
	} {
		st := c.o.At(now, c.o.lookedAt)
		if diff := cmp.Diff(c.want, st.Reasons); diff != "" {
			t.Errorf("%s: reasons (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestStatusOfADeadDaemonSaysSo: what the log holds of a process that died is not the state of one
// that runs.
func TestStatusOfADeadDaemonSaysSo(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		silent time.Duration
		edit   func(*checkpoint.State)
		state  string
		want   string
	}{
		{"alive", time.Second, nil, "running", ""},
		{"killed", time.Hour, nil, "waiting", "no sign of life of the owner for 1 h 00 m"},
		{"drained", time.Minute, func(s *checkpoint.State) { s.Released = true }, "waiting", "no owner"},
		{"halted, and tried again within the minute", 50 * time.Second, halted, "halted", "halted: no permission"},
		{"halted, and dead since", 10 * time.Minute, halted, "halted", "no owner"},
	} {
		s := open(now.Add(-c.silent).UnixMilli(), now.UnixMilli())
		if c.edit != nil {
			c.edit(s)
		}
		st := Of(Seen{State: s, Now: change.MillisOf(now), ClaimTTL: 15 * time.Second, Retry: time.Minute})
		if why := strings.Join(st.Reasons, "; "); st.State != c.state || !strings.HasPrefix(why, c.want) ||
			(c.want == "") != (why == "") {
			t.Errorf("%s: %s because %q, want %s because %q", c.name, st.State, why, c.state, c.want)
		}
	}
}

// TestProcessKnowsMoreOfTheOwnerThanTheLog: a process that owns the log, or that reports that it
// carries the table, and one that halts it and could not store that.
func TestProcessKnowsMoreOfTheOwnerThanTheLog(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	seen := func(carried bool) *Observed {
		s := open(now.UnixMilli(), now.UnixMilli())
		s.Released = true
		return Observe(Seen{State: s, Now: change.MillisOf(now), ClaimTTL: 15 * time.Second, Retry: time.Minute,
			Carried: carried}, nil)
	}
	own, halt := seen(false), &checkpoint.Halt{Sink: outcome.Pipeline, Reason: "no permission", At: change.MillisOf(now)}
	own.SetOwn(true)
	for name, c := range map[string]struct {
		o    *Observed
		want string
	}{
		"released":      {seen(false), "no owner: no replicator carries the table"},
		"carried":       {seen(true), ""},
		"own":           {own, ""},
		"halts it here": {seen(false).With(Now{Halt: halt}), "halted: no permission"},
		"deleted before the start": {
			seen(false).With(Now{Halt: &checkpoint.Halt{
				Sink: outcome.Pipeline, Reason: "no table", Code: outcome.CodeSourceGone, At: halt.At,
			}}),
			"vanished: DynamoDB has no table of this name any more; halted: no table",
		},
	} {
		if why := strings.Join(c.o.At(now, c.o.lookedAt).Reasons, "; "); why != c.want {
			t.Errorf("%s: not ready because %q, want %q", name, why, c.want)
		}
	}
}

func halted(s *checkpoint.State) {
	h := &checkpoint.Halt{Sink: outcome.Pipeline, Reason: "no permission", At: s.Date}
	s.Released, s.Halts = true, map[string]*checkpoint.Halt{h.Sink: h}
}

// TestPendingIsLeftOutWhereItIsUnknown: a backlog without a number is not a backlog of zero.
func TestPendingIsLeftOutWhereItIsUnknown(t *testing.T) {
	seven := uint64(7)
	for name, c := range map[string]struct {
		change func(*Seen)
		want   *uint64
	}{
		"all is applied":        {func(*Seen) {}, new(uint64)},
		"no sink runs":          {func(x *Seen) { x.State.LastFrame = 6 }, nil},
		"no target":             {func(x *Seen) { clear(x.State.Marks) }, nil},
		"the daemon reports it": {func(x *Seen) { x.State.LastFrame, x.Live = 6, &Table{Pending: &seven} }, &seven},
		"the sink knows": {func(x *Seen) {
			x.State.LastFrame, x.State.Changes = 6, 10
			x.Pending = func(changes uint64) (uint64, bool) { return changes - 3, true }
		}, &seven},
		"the sink does not know": {func(x *Seen) {
			x.State.LastFrame = 6
			x.Pending = func(uint64) (uint64, bool) { return 3, false }
		}, nil},
	} {
		x := Seen{State: open(1000, 1000), Now: 1000, ClaimTTL: time.Minute}
		c.change(&x)
		if diff := cmp.Diff(c.want, Of(x).Pending); diff != "" {
			t.Errorf("%s: want (-), got (+): %s", name, diff)
		}
	}
}

// TestStreamEndsOnceAllOfItIsApplied: a table that is taken for read to its end too early is never
// read again.
func TestStreamEndsOnceAllOfItIsApplied(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).UnixMilli()
	ended := func(spoil func(s *checkpoint.State)) bool {
		s := open(now, now)
		s.Streams[0].Disabled, s.LastFrame = true, 5
		s.Shards["s"].Phase, s.Shards["s"].LastAlive = checkpoint.PhaseFinished, change.Millis(now)
		spoil(s)
		s.Reindex()
		return Of(Seen{State: s, Now: change.Millis(now), ClaimTTL: time.Minute}).Ended
	}
	if !ended(func(*checkpoint.State) {}) {
		t.Error("it has not ended")
	}
	for what, spoil := range map[string]func(s *checkpoint.State){
		"the stream takes writes":         func(s *checkpoint.State) { s.Streams[0].Disabled = false },
		"a shard is open":                 func(s *checkpoint.State) { s.Shards["s"].Phase = checkpoint.PhaseOpen },
		"a sink is behind":                func(s *checkpoint.State) { s.LastFrame = 6 },
		"children may not be listed yet":  func(s *checkpoint.State) { s.Listed = change.Millis(now - 1) },
		"nothing has been started at all": func(s *checkpoint.State) { s.Streams = nil },
	} {
		if ended(spoil) {
			t.Errorf("%s: it has ended", what)
		}
	}
}
