package protocol

import (
	"testing"
	"time"
)

const ttl = 15 * time.Second

// history drives a watch along a virtual clock.
type history struct {
	*testing.T
	w          ClaimWatch
	now        time.Time
	connection uint64
	seq        uint64

	appended                time.Time // when seq was
	last                    time.Time // of the owner's messages
	lastSeq, lastConnection uint64
}

func newHistory(t *testing.T) *history {
	h := &history{T: t, now: time.Unix(1e9, 0), appended: time.Unix(1e9, 0), seq: 7, connection: 1}
	h.w = ClaimWatch{TTL: ttl, Random: func(d time.Duration) time.Duration { return d - 1 }} // the longest waits
	return h
}

// look lets time pass, with a look at the log at the end of each second. The last message of the
// owner is still known.
func (h *history) look(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(time.Second)
		if !h.last.IsZero() {
			h.w.Heard(h.last, h.lastSeq, h.last.Sub(h.appended), h.lastConnection)
		}
		h.w.Saw(h.now, h.seq, h.connection)
	}
}

// hear lets time pass in which the owner is heard every two seconds, and appends when grows.
func (h *history) hear(d time.Duration, grows bool) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(PresencePeriod)
		if grows {
			h.seq, h.appended = h.seq+1, h.now
		}
		h.w.Heard(h.now, h.seq, h.now.Sub(h.appended), h.connection)
		h.last, h.lastSeq, h.lastConnection = h.now, h.seq, h.connection
	}
}

func (h *history) may() bool {
	silent := h.w.Silent(h.now)
	return h.w.May("b", WatchedLog{Seq: h.seq, Owned: true, Connection: h.connection}, silent, 0, h.now)
}

func (h *history) want(what string, may bool) {
	h.Helper()
	if got := h.may(); got != may {
		h.Errorf("%s: may claim %v, want %v", what, got, may)
	}
}

// While the server is away the owner cannot beat, and while the claimer is stopped it sees no
// beats: a log that did not grow in such a time does not mean that its owner is gone. The owner may
// need until its next beat to show it.
func TestSilenceCountsOnlyWhileItIsObserved(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(h *history)
		more  time.Duration // until the log may be claimed
	}{
		{"looked all the time", func(h *history) { h.look(16 * time.Second) }, 0},
		{"one look failed", func(h *history) {
			h.look(8 * time.Second)
			h.now = h.now.Add(2 * time.Second)
			h.look(6 * time.Second)
		}, 0},
		{"claimer stopped", func(h *history) {
			h.look(8 * time.Second)
			h.now = h.now.Add(time.Minute)
			h.look(time.Second)
		}, 20 * time.Second},
		{"connected again", func(h *history) {
			h.look(14 * time.Second)
			h.connection++
			h.look(time.Second)
		}, 20 * time.Second},
		{"the log has grown", func(h *history) { h.look(14 * time.Second); h.seq++; h.look(time.Second) }, 16 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(t)
			h.look(time.Second)
			if c.after(h); c.more > 0 {
				h.want("at once", false)
				h.look(c.more - time.Second)
				h.want("a second before its time", false)
				h.look(time.Second)
			}
			h.want("at its time", true)
		})
	}
}

// TestOwnerThatIsGoneIsReplacedSooner: four messages of the owner's process are missing, and its
// log is silent for longer than an idle owner's. Each of the two alone means nothing.
func TestOwnerThatIsGoneIsReplacedSooner(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(h *history)
		wait   time.Duration
	}{
		{"gone", func(h *history) { h.hear(time.Minute, true) }, 10 * time.Second},
		{"gone, idle before", func(h *history) {
			h.hear(4*time.Second, true)
			h.hear(4*time.Second, false)
		}, 8 * time.Second},
		{"never heard", func(h *history) { h.look(time.Second) }, 16 * time.Second},
		{"the connection is young", func(h *history) {
			h.hear(time.Minute, true)
			h.connection++
			h.hear(PresencePeriod, true)
		}, 13 * time.Second},
		{"heard on the former connection only", func(h *history) {
			h.hear(time.Minute, true)
			h.connection++
			h.look(time.Second)
		}, 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(t)
			h.hear(20*time.Second, true)
			if c.name == "never heard" {
				h = newHistory(t)
			}
			c.before(h)
			died := h.now
			for !h.may() {
				if h.look(time.Second); h.now.Sub(died) > time.Minute {
					t.Fatal("never claimed")
				}
			}
			if took := h.now.Sub(died); took > c.wait+time.Second || took < c.wait-2*time.Second {
				t.Errorf("claimed after %s, want about %s", took, c.wait)
			}
		})
	}
}

// TestHeardOwnerWhoseLogStandsStillIsReplaced: the process lives, and what appends to this log does
// not.
func TestHeardOwnerWhoseLogStandsStillIsReplaced(t *testing.T) {
	h := newHistory(t)
	h.hear(10*time.Second, true)
	if h.w.Look(h.now) {
		t.Error("the log is looked at although its owner says that it grows")
	}
	h.hear(10*time.Second, false)
	if !h.w.Look(h.now) {
		t.Error("the log is not looked at although its owner appends nothing")
	}
	h.want("before TTL", false)
	h.look(15 * time.Second) // TTL, from the first look on: before it, nobody has looked at the log
	h.want("after TTL", true)
}

// TestLogIsLookedAtWhenItsOwnerIsNotHeard: the next message is due after two seconds.
func TestLogIsLookedAtWhenItsOwnerIsNotHeard(t *testing.T) {
	h := newHistory(t)
	h.hear(10*time.Second, true)
	h.now = h.now.Add(2400 * time.Millisecond)
	if !h.w.Look(h.now) {
		t.Error("not looked at before the silence would count as a break")
	}
	if h.w.Saw(h.now, h.seq, h.connection); h.w.since.After(h.now) {
		t.Error("the look counts as the first one after a break")
	}
}

// TestHandedOverLogIsLeftToItsAddressee for two seconds.
func TestHandedOverLogIsLeftToItsAddressee(t *testing.T) {
	h := newHistory(t)
	h.look(time.Second)
	l := WatchedLog{Seq: h.seq, HandedTo: "c"}
	if !h.w.May("c", l, false, time.Hour, h.now) {
		t.Error("the addressee must wait")
	}
	if h.w.May("b", l, false, 0, h.now) || h.w.May("b", l, false, 0, h.now.Add(1900*time.Millisecond)) {
		t.Error("another one may claim it at once")
	}
	if !h.w.May("b", l, false, 0, h.now.Add(2*time.Second)) {
		t.Error("nobody else may claim it later")
	}
	if l.HandedTo = ""; !h.w.May("b", l, false, 0, h.now) {
		t.Error("a log that is released to nobody is not claimed")
	}
}

// TestFoldThatTookLongProvesNothing: the log has grown meanwhile, or the connection was lost.
func TestFoldThatTookLongProvesNothing(t *testing.T) {
	h := newHistory(t)
	h.look(17 * time.Second)
	h.want("as it was looked at", true)
	if h.w.May("b", WatchedLog{Seq: h.seq + 1, Owned: true, Connection: h.connection}, true, 0, h.now) {
		t.Error("claimed although the log has grown")
	}
	if h.w.May("b", WatchedLog{Seq: h.seq, Owned: true, Connection: h.connection + 1}, true, 0, h.now) {
		t.Error("claimed after another connection")
	}
}

// TestYoungConnectionProvesNothing: what broke the last one may have cut off the owner, too, though
// it was heard.
func TestYoungConnectionProvesNothing(t *testing.T) {
	h := newHistory(t)
	h.w.Random = func(time.Duration) time.Duration { return 0 } // the shortest waits
	h.hear(time.Minute, true)
	h.connection++
	h.now = h.now.Add(100 * time.Millisecond)
	h.seq++
	h.w.Heard(h.now, h.seq, 0, h.connection)
	h.last, h.lastSeq, h.lastConnection, h.appended = h.now, h.seq, h.connection, h.now
	h.look(9 * time.Second)
	h.want("nine seconds after the connection was made", false)
	h.look(time.Second)
	h.want("ten seconds after", true)
}

// TestHearingIsNoLookAtTheLog: the owner is heard all the time, and says that it cannot append,
// because the log has no leader: nobody can look at the log either. Its silence was not observed
// then, and the owner must have its time.
func TestHearingIsNoLookAtTheLog(t *testing.T) {
	h := newHistory(t)
	h.look(2 * time.Second)
	h.hear(20*time.Second, true)
	h.hear(time.Minute, false) // each look fails meanwhile
	h.look(time.Second)        // the first one that succeeds
	h.want("at the first look after the log was away", false)
}

// TestMessageThatCameLateChangesNothing: the log was looked at since, or a newer message was heard.
func TestMessageThatCameLateChangesNothing(t *testing.T) {
	h := newHistory(t)
	h.hear(20*time.Second, true)
	h.w.Heard(h.now.Add(-8*time.Second), h.seq-4, 0, h.connection)
	if h.w.Look(h.now) {
		t.Error("an older message makes the owner count as silent")
	}
	if h.w.Heard(h.now.Add(time.Second), h.seq-1, time.Second, h.connection) || h.w.Seq() != h.seq {
		t.Errorf("a message from before the newest entry: the log ends at %d, and not at %d", h.w.Seq(), h.seq)
	}

	h = newHistory(t)
	h.look(10 * time.Second)
	h.w.Heard(h.now.Add(-900*time.Millisecond), h.seq, 0, h.connection)
	h.now = h.now.Add(1500 * time.Millisecond) // the next look is 2.5 s after the last one: no break
	h.look(6 * time.Second)
	h.want("a message from before the look makes no break", true)
}

// TestMessageWithoutTimeIsNoLook: how long ago the owner appended is unknown, so it may be silent.
func TestMessageWithoutTimeIsNoLook(t *testing.T) {
	h := newHistory(t)
	h.look(2 * time.Second)
	for range 10 {
		h.now = h.now.Add(PresencePeriod)
		h.w.Heard(h.now, h.seq, -1, h.connection)
	}
	h.look(time.Second)
	h.want("at the first look since", false)
}

// TestFreeLogIsLeftToOthersForTheWholeTurn: from when it is seen to be free, with the entries that
// it holds then.
func TestFreeLogIsLeftToOthersForTheWholeTurn(t *testing.T) {
	h := newHistory(t)
	if h.w.Silent(h.now) {
		t.Error("a log that was never looked at is silent")
	}
	h.look(time.Second)
	const turn = 10 * time.Second
	for _, step := range []struct {
		after time.Duration
		seq   uint64
		may   bool
	}{
		{0, 7, false}, {9 * time.Second, 7, false},
		{time.Second, 9, false}, // another one has claimed and released it meanwhile
		{9 * time.Second, 9, false}, {time.Second, 9, true},
	} {
		h.now = h.now.Add(step.after)
		for _, me := range []string{"b", ""} { // a release that names no process names none without a name
			if may := h.w.May(me, WatchedLog{Seq: step.seq}, false, turn, h.now); may != step.may {
				t.Errorf("process %q, entry %d, at %s: may claim %v", me, step.seq, h.now, may)
			}
		}
	}
}

// TestFirstConnectionIsYoung: a process that has just started may be cut off from the owner, whatever
// number its connection has. What it finds at first has not grown.
func TestFirstConnectionIsYoung(t *testing.T) {
	h := newHistory(t)
	h.w.Random = func(time.Duration) time.Duration { return 0 } // the shortest waits
	h.connection = 0
	if h.w.Saw(h.now, h.seq, h.connection) {
		t.Error("a log that was never looked at has grown")
	}
	h.w.Heard(h.now.Add(1), h.seq, 0, h.connection)
	h.last, h.lastSeq, h.lastConnection, h.appended = h.now.Add(1), h.seq, h.connection, h.now
	h.look(9 * time.Second)
	h.want("nine seconds after the connection was made", false)
	h.look(time.Second)
	h.want("ten seconds after", true)
}

// TestSilentLogIsLeftToOthersAnew: an owner that was found alive meanwhile ends the turn.
func TestSilentLogIsLeftToOthersAnew(t *testing.T) {
	h := newHistory(t)
	h.look(time.Second)
	const turn = 10 * time.Second
	for _, step := range []struct {
		after       time.Duration
		silent, may bool
	}{
		{0, true, false}, {9 * time.Second, true, false}, {time.Second, false, false},
		{time.Second, true, false}, {9 * time.Second, true, false}, {time.Second, true, true},
	} {
		h.now = h.now.Add(step.after)
		l := WatchedLog{Seq: h.seq, Owned: true, Connection: h.connection}
		if may := h.w.May("b", l, step.silent, turn, h.now); may != step.may {
			t.Errorf("silent %t, at %s: may claim %t", step.silent, h.now, may)
		}
	}
}

// TestOwnerMayNotWriteOnceAnotherMayClaim: an owner whose process was heard may be replaced before
// TTL is over.
// Rule 12: when it wakes up, it may not write.
func TestOwnerMayNotWriteOnceAnotherMayClaim(t *testing.T) {
	for _, ttl := range []time.Duration{3 * time.Second, ttl, time.Minute} {
		h := newHistory(t)
		h.w.TTL = ttl
		h.w.Random = func(time.Duration) time.Duration { return 0 } // the shortest waits
		h.hear(time.Minute, true)
		died := h.now // right after its last append
		for !h.may() {
			h.look(time.Second)
		}
		sent := InstantOf(died, died)
		ago := h.now.Sub(died) - min(time.Second, ttl/4)
		if MayWrite(ttl, sent, InstantOf(died.Add(ago), died)) {
			t.Errorf("claims of %s: another process may claim the log %s after the last append, and its owner still "+
				"writes to Bigtable", ttl, ago)
		}
		if !MayWrite(ttl, sent, InstantOf(died.Add(ttl/3+min(time.Second, ttl/4)), died)) {
			t.Errorf("claims of %s: an idle owner's claim is not valid", ttl)
		}
	}
}
