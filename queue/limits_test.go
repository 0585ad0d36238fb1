package queue

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/embedded"
)

// stall fills a log as a long stall does: frames, then listings and beats, each until it is
// refused, with a state of many shards whose snapshot needs more room than a beat. It returns how
// many changes are stored.
func stall(t testing.TB, w *Writer) uint64 {
	t.Helper()
	for refused := false; !refused; {
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 100, 1500))[0]
		refused = refuses(t, w, frame.Body, frame.Data)
	}
	for before := uint64(0); before != w.State().Seq; { // what the writer reckons is more than what is stored
		before = w.State().Seq
		pressure(t, w)
		report(t, w)
	}
	return w.State().Changes
}

// fillToServerLimit fills the log up to the server's own limit, as earlier builds without a reserve
// did.
func fillToServerLimit(t testing.TB, w *Writer) {
	t.Helper()
	w.folded.info.MaxBytes = 0 // blind to the reserve
	report(t, w)
}

func report(t testing.TB, w *Writer) {
	t.Helper()
	for _, shards := range []int{500, 20} {
		listing := &checkpoint.Graph{Stream: stream, Date: second, Complete: true}
		for i := range shards {
			listing.Shards = append(listing.Shards, checkpoint.ShardSeen{ID: fmt.Sprintf("shard-later-%03d", i),
				Parent: "shard-1"})
		}
		for !refuses(t, w, listing, nil) {
		}
	}
	for !refuses(t, w, &checkpoint.Beat{Date: second}, nil) {
	}
}

// refuses appends the entry and reports whether the log has no room for it.
func refuses(t testing.TB, w *Writer, body any, data []byte) bool {
	t.Helper()
	_, err := w.Append(testContext(t), body, data)
	if err != nil && !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	return err != nil
}

func pressure(t testing.TB, w *Writer) Pressure {
	t.Helper()
	p, err := w.Pressure(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Rule 9, and what follows from it: only what lets the log be trimmed and owned may use its last
// tenth.
func TestBeatsListingsAndSnapshotsLeaveAFullLogItsReserve(t *testing.T) {
	w := owned(t, embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = 8 << 20 }))
	stall(t, w)
	if p := pressure(t, w); p.Fraction < 0.899 || p.Fraction > 0.9 || !p.Pause {
		t.Fatalf("%.4f of the limit in use, pause %v; beats should stop at 0.9", p.Fraction, p.Pause)
	}
	full := pressure(t, w).Bytes
	var seen []checkpoint.ShardSeen
	for i := range 100 {
		seen = append(seen, checkpoint.ShardSeen{ID: fmt.Sprintf("shard-new-%03d", i), Parent: "shard-1"})
	}
	if !refuses(t, w, &checkpoint.Graph{Stream: stream, Date: second, Shards: seen}, nil) {
		t.Error("a listing was stored")
	}
	if err := w.snapshot(testContext(t), false); !errors.Is(err, ErrFull) {
		t.Errorf("periodic snapshot: %v, want full", err)
	}
	if got := pressure(t, w).Bytes; got != full {
		t.Errorf("what was refused left %d bytes in the log", got-full)
	}
	s := w.State()
	mustAppend(t, w, &checkpoint.Gap{Feed: change.Feed{Stream: stream, Shard: "shard-1"}, Since: second,
		Reason: "trimmed", Found: second}, nil)
	mustAppend(t, w, &checkpoint.Control{Resume: true, By: "test"}, nil)
	mustAppend(t, w, &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {Seq: s.Seq, Hash: s.Hash}}}, nil)
	if err := w.Release(testContext(t)); err != nil {
		t.Fatal(err)
	}
	next := claim(t, w.Log(), "b")
	sameState(t, fold(t, w.Log()), next.State())
}

// Only one more snapshot lets the log be trimmed, because the last one lies below all entries that
// are applied now.
func TestStalledLogIsTrimmedAlthoughItsSnapshotLiesBelowTheFirstMark(t *testing.T) {
	for name, limit := range map[string]int64{"no snapshot yet": 4 << 20, "an old snapshot": 8 << 20} {
		t.Run(name, func(t *testing.T) {
			q := embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = limit })
			w := owned(t, q)
			changes := stall(t, w)
			if _, ok := w.State().Marks["bigtable"]; ok || (w.State().SnapshotFirst > 0) != (limit == 8<<20) {
				t.Fatalf("the stall left a snapshot at %d: the test shows nothing", w.State().SnapshotFirst)
			}
			markAll(t, w)              // the sink is back
			trim(t, w, math.MaxUint64) // up to an old snapshot, if there is one
			trim(t, w, math.MaxUint64)
			if p := pressure(t, w); p.Fraction > shortenWindowAt {
				t.Fatalf("%.2f of the limit in use after trimming", p.Fraction)
			}
			appendPage(t, w, 100, 1500)
			sameState(t, fold(t, w.Log()), w.State())
			if got := w.State().Changes; got != changes+100 {
				t.Fatalf("%d changes, want %d", got, changes+100)
			}
		})
	}
}

// A log that is full to the last byte takes marks, while running and after a restart, and is
// trimmed by them.
func TestLogAtTheServersLimitRecovers(t *testing.T) {
	long(t, "3 s")
	for name, limit := range map[string]int64{"while running": 0, "after a restart": 8 << 20,
		"with a larger limit": 64 << 20, "with a smaller limit": 4 << 20} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			q := embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = 8 << 20 })
			w := owned(t, q)
			changes := stall(t, w)
			fillToServerLimit(t, w)
			if limit == 0 {
				limit = 8 << 20
				pressure(t, w) // no longer blind
			} else {
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
				q = embeddedIn(t, q.opts.Dir, func(o *Options) { o.MaxBytes = limit })
				l, err := q.Log(ctx, "Orders")
				if err != nil {
					t.Fatal(err)
				}
				w = claim(t, l, "b")
			}
			if p := pressure(t, w); p.Limit != uint64(limit) || p.Pause != (limit <= 8<<20) {
				t.Fatalf("limit %d, pause %v at %.2f of it", p.Limit, p.Pause, p.Fraction)
			}
			frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 100, 1500))[0]
			if refused := refuses(t, w, frame.Body, frame.Data); refused != (limit <= 8<<20) {
				t.Fatalf("append of a frame at limit %d: refused %v", limit, refused)
			}
			if info, err := w.Log().Info(ctx); err != nil || name != "while running" &&
				info.serverLimit < info.Bytes+minTrimVolume {
				t.Fatalf("the server refuses more than %d bytes, the log holds %d: %v", info.serverLimit, info.Bytes, err)
			}
			markAll(t, w)
			if limit > 8<<20 {
				return // it has room, nothing asks for trimming
			}
			trim(t, w, math.MaxUint64) // up to the last snapshot, which then lies below the mark
			trim(t, w, math.MaxUint64)
			if p := pressure(t, w); p.Pause || p.Fraction > shortenWindowAt {
				t.Fatalf("%.2f of the limit in use after trimming", p.Fraction)
			}
			if info, err := w.Log().Info(ctx); err != nil || info.serverLimit != uint64(limit) {
				t.Fatalf("the server's limit is %d afterwards, want %d: %v", info.serverLimit, limit, err)
			}
			appendPage(t, w, 100, 1500)
			if d := cmp.Diff(changes+100, fold(t, w.Log()).Changes); d != "" {
				t.Fatal(d)
			}
		})
	}
}

// A claim that is refused for another reason has raised the limit all the same: it does not depend
// on the claim.
func TestLimitIsRaisedBeforeTheClaim(t *testing.T) {
	ctx := testContext(t)
	q := embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = 8 << 20 })
	l := createLog(t, q)
	f, err := l.fold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	claim(t, l, "a")
	q.opts.MaxBytes = 16 << 20
	if _, err := (&claimer{l: l, o: ClaimOptions{Owner: "b"}}).appendClaim(ctx, f); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("claim after another one: %v, want an unknown outcome", err)
	}
	if info, err := l.Info(ctx); err != nil || info.serverLimit != 16<<20 {
		t.Fatalf("limit %d: %v", info.serverLimit, err)
	}
}

// Above the ceiling of beats an owner with rivals still beats, as rarely as its claim allows,
// because a log that does not grow is claimed by another process.
func TestFullLogTakesBeatsThatAClaimNeeds(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	q := connectTo(t, srv.addr(), func(o *Options) { o.MaxBytes = 4 << 20 })
	w := owned(t, q)
	w.ttl = defaultTTL
	stall(t, w)
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrFull) {
		t.Fatalf("beat right after another one: %v, want full", err)
	}
	w.sentBefore(defaultTTL)
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	w.l.q.embedded = &embedded.Server{}
	defer func() { w.l.q.embedded = nil }()
	w.sentBefore(defaultTTL)
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrFull) {
		t.Fatalf("beat without rivals: %v, want full", err)
	}
}

func TestReserveHoldsTwoSnapshots(t *testing.T) {
	const snapshot = 3 << 20
	least := uint64(MinMaxBytes(snapshot))
	for _, limit := range []uint64{snapshot, 2 * snapshot, 10 * snapshot, least, 100 * snapshot} {
		i := Info{MaxBytes: limit, serverLimit: limit}
		reports, frames := i.ceiling(checkpoint.KindBeat, snapshot), i.ceiling(checkpoint.KindFrame, snapshot)
		if limit-reports < min(limit, 2*snapshot) || frames > reports || i.ceiling(checkpoint.KindMarks, snapshot) < limit {
			t.Errorf("limit %d: frames to %d, reports to %d", limit, frames, reports)
		}
		if limit >= least && (frames < limit/5*4-1 || reports < limit/10*9-10) {
			t.Errorf("limit %d is large enough, yet frames stop at %d and reports at %d", limit, frames, reports)
		}
	}
}
