package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

func next(t *testing.T, r *Reader) *Page {
	t.Helper()
	p, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRecordsComeWithTheMissingIterator(t *testing.T) {
	w := newWire()
	w.shard("a", "", 3).closed = true
	r := open(t, w).NewReader(start("a", change.Position{}))
	defer r.Close()
	p := next(t, r)
	if len(p.Records) != 3 || !p.Done || p.To.After != after(2).After {
		t.Fatalf("%d records, done %v, to %v", len(p.Records), p.Done, p.To)
	}
	if p.Clock != p.Records[2].Version || p.ClockFrom != 0 || p.From != (change.Position{}) {
		t.Fatalf("clock %d..%d, from %v", p.ClockFrom, p.Clock, p.From)
	}
	p.Release()
	if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestVersionsGrowWithinASecond(t *testing.T) {
	w := newWire()
	w.shard("a", "", 5).closed = true
	clock := time.Now().Add(time.Hour).UnixMilli() // a clock that bursts drove ahead of time
	st := start("a", change.Position{})
	st.Clock = change.Version(clock)
	r := open(t, w).NewReader(st)
	defer r.Close()
	p := next(t, r)
	defer p.Release()
	for i, rec := range p.Records {
		if want := clock + 1 + int64(i); rec.Version != change.Version(want) {
			t.Fatalf("record %d has version %d, not %d", i, rec.Version, want)
		}
	}
}

// A body that is cut, or that is not a page at all, must be read again and must not end the shard.
func TestMalformedRepliesAreReadAgain(t *testing.T) {
	for name, bad := range map[string]func(full string) *wireReply{
		"cut":          func(full string) *wireReply { return &wireReply{body: full, cut: len(full) / 2} },
		"cut, no more": func(full string) *wireReply { return &wireReply{body: full[:len(full)/2]} },
		"empty":        func(string) *wireReply { return &wireReply{body: ""} },
		"not a page":   func(string) *wireReply { return &wireReply{body: "{}"} },
		"HTML":         func(string) *wireReply { return &wireReply{body: "<html>"} },
		"null":         func(string) *wireReply { return &wireReply{body: "null"} },
		"wrong sum": func(full string) *wireReply {
			return &wireReply{body: full, header: map[string]string{"X-Amz-Crc32": "1"}}
		},
		"proxy's error": func(string) *wireReply { return &wireReply{status: 502, body: "<html>"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			w.shard("a", "", 3).closed = true
			first := true
			w.script = func(c wireCall) *wireReply {
				if c.op != "GetRecords" || !first {
					return nil
				}
				first = false
				return bad(w.answer(c).body)
			}
			server := httptest.NewServer(w)
			defer server.Close()
			r := open(t, server.URL).NewReader(start("a", change.Position{}))
			defer r.Close()
			p := next(t, r)
			defer p.Release()
			if len(p.Records) != 3 || !p.Done {
				t.Fatalf("%d records, done %v", len(p.Records), p.Done)
			}
			if n := w.count("GetRecords", ""); n != 2 {
				t.Fatalf("%d calls", n)
			}
		})
	}
}

func TestPageMalformedForGoodIsFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 3)
		w.script = func(c wireCall) *wireReply {
			if c.op == "GetRecords" {
				return &wireReply{body: `{"Records":[{"eventName":"INSERT"}]}`}
			}
			return nil
		}
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		_, err := r.Next(t.Context())
		if Classify(err) != failure.Fatal || !errors.Is(err, change.ErrMalformed) || Hint(err) == "" {
			t.Fatalf("%v: %v", Classify(err), err)
		}
	})
}

func TestExpiredIteratorGoesOnAfterTheLastRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		sh := w.shard("a", "", 3)
		w.lifetime = time.Minute // shorter than we trust it
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		next(t, r).Release()
		sh.add(seq(10))
		time.Sleep(2 * time.Minute)
		p := next(t, r)
		defer p.Release()
		if diff := cmp.Diff([]string{seq(10)}, sequences(p)); diff != "" {
			t.Fatal(diff)
		}
		if w.count("GetShardIterator", "AFTER_SEQUENCE_NUMBER") != 1 {
			t.Fatal(w.calls)
		}
	})
}

// Before anything was read there is no sequence number to go on after: the start is asked for
// again.
func TestExpiredIteratorBeforeAnyRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		sh := w.shard("a", "", 0)
		w.lifetime = time.Minute
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		next(t, r).Release()
		sh.add(seq(1))
		time.Sleep(2 * time.Minute)
		p := next(t, r)
		defer p.Release()
		if len(p.Records) != 1 || w.count("GetShardIterator", "TRIM_HORIZON") != 2 {
			t.Fatal(w.calls)
		}
	})
}

// A reader that waits for memory longer than an iterator lives takes a new one, and never shows the
// old.
func TestBackPressureLongerThanAnIteratorLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 2500)
		s := open(t, w, func(o *Options) { o.MemoryPerFeed, o.MemoryTotal = 1, 1 })
		r := s.NewReader(start("a", change.Position{}))
		defer r.Close()
		held := next(t, r)
		got := make(chan *Page)
		go func() {
			p, err := r.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- p
		}()
		time.Sleep(time.Hour)
		if n := w.count("GetRecords", ""); n != 1 {
			t.Fatalf("%d reads while no memory was free", n)
		}
		held.Release()
		p := <-got
		defer p.Release()
		if string(p.Records[0].SequenceNumber) != seq(1000) {
			t.Fatalf("goes on at %s", p.Records[0].SequenceNumber)
		}
		if n := w.count("GetShardIterator", "AFTER_SEQUENCE_NUMBER"); n != 1 {
			t.Fatalf("%d new iterators", n)
		}
		if n := w.count("GetRecords", ""); n != 2 {
			t.Fatalf("%d reads: an old iterator was tried", n)
		}
		if s.logs.FilterMessage("shard waited for memory").Len() != 1 {
			t.Fatal("a park of an hour left no trace")
		}
	})
}

func TestTrimmedIsAGapNotAJump(t *testing.T) {
	w := newWire()
	sh := w.shard("a", "", 0)
	old := time.Now().Add(-20 * time.Hour).Unix()
	sh.records = []string{record(seq(7), old, `{"pk":{"S":"x"}}`)}
	w.script = func(c wireCall) *wireReply {
		if c.kind == "AFTER_SEQUENCE_NUMBER" {
			return refuse("TrimmedDataAccessException", "The requested sequence number is beyond the trim point")
		}
		return nil
	}
	st := start("a", after(2))
	r := open(t, w).NewReader(st)
	defer r.Close()
	_, err := r.Next(t.Context())
	var gap *GapError
	if !errors.As(err, &gap) || !errors.Is(err, ErrTrimmed) || Classify(err) != failure.Gone ||
		classLabel(err) != "trimmed" {
		t.Fatal(err)
	}
	if gap.Position.After != after(2).After || gap.To != change.Millis(old*1000) ||
		gap.Horizon.First != change.SequenceNumber(seq(7)) {
		t.Fatalf("%+v", gap)
	}
}

// The trim point may pass between the iterator and the read.
func TestTrimmedBetweenIteratorAndRead(t *testing.T) {
	w := newWire()
	w.shard("a", "", 3)
	w.script = func(c wireCall) *wireReply {
		if c.op == "GetRecords" {
			return refuse("TrimmedDataAccessException", "trimmed")
		}
		return nil
	}
	r := open(t, w).NewReader(start("a", change.Position{}))
	defer r.Close()
	_, err := r.Next(t.Context())
	var gap *GapError
	if !errors.As(err, &gap) || !gap.Horizon.Nothing {
		t.Fatalf("%+v", err)
	}
}

// A shard of which nothing was read for more than a day may have lost its first records; neither
// the trim horizon nor a time would tell.
func TestShardThatWaitedLongerThanRetention(t *testing.T) {
	began := time.Now().Add(-Retention - 2*time.Hour).UnixMilli()
	for _, pos := range []change.Position{{}, {At: change.Millis(began)}} {
		for age, want := range map[time.Duration]bool{Retention - time.Hour: false, Retention + time.Hour: true} {
			w := newWire()
			w.shard("a", "", 3)
			st := start("a", pos)
			st.Since = change.MillisOf(time.Now().Add(-age))
			r := open(t, w).NewReader(st)
			p, err := r.Next(t.Context())
			gap := (*GapError)(nil)
			if errors.As(err, &gap) != want {
				t.Errorf("from %+v, age %v: %v", pos, age, err)
			}
			oldest := change.Millis(createdOf(w.shards[0].records[0]) * 1000)
			if want && (gap.From != st.Since || gap.Horizon.Nothing || gap.To != oldest ||
				!errors.Is(err, ErrTrimmed)) {
				t.Errorf("from %+v: %+v", pos, gap)
			}
			if p != nil {
				p.Release()
			}
			r.Close()
		}
	}
}

// A process that cannot reach the service for more than a day, and an idle shard: what came and was
// trimmed meanwhile is in no page, and a new iterator at the trim horizon or at a time would not
// tell.
func TestIdleShardAfterAnOutageLongerThanRetention(t *testing.T) {
	for _, pos := range []change.Position{{}, {At: change.MillisOf(time.Now())}} {
		for outage, want := range map[time.Duration]bool{20 * time.Hour: false, 25 * time.Hour: true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				w.shard("a", "", 0)
				st := start("a", pos)
				st.Since = change.MillisOf(time.Now())
				r := open(t, w).NewReader(st)
				defer r.Close()
				for range 3 {
					next(t, r).Release()
				}
				read := time.Now()
				w.script = func(c wireCall) *wireReply {
					if time.Since(read) < outage {
						return refuse("InternalServerError", "away")
					}
					return nil
				}
				p, err := r.Next(t.Context())
				gap := (*GapError)(nil)
				if errors.As(err, &gap) != want {
					t.Fatalf("from %+v, away for %v: %v", pos, outage, err)
				}
				if want && gap.From < change.MillisOf(read.Add(-time.Minute)) {
					t.Errorf("the gap begins at %v, the last empty page was at %v", gap.From.Time(), read)
				}
				if p != nil {
					p.Release()
				}
			})
		}
	}
}

// The machine was suspended for 25 hours: its clock for the time since the last reply stood still,
// so only the Date of the first reply afterwards says that the retention has passed.
func TestIdleShardOfASuspendedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 0)
		st := start("a", change.Position{})
		st.Since = change.MillisOf(time.Now())
		r := open(t, w).NewReader(st)
		defer r.Close()
		for range 3 {
			next(t, r).Release()
		}
		expired := false
		w.script = func(c wireCall) *wireReply {
			reply := w.answer(c)
			if !expired && c.op == "GetRecords" {
				expired, reply = true, refuse("ExpiredIteratorException", "The shard iterator has expired")
			}
			reply.header = map[string]string{"Date": time.Now().Add(25 * time.Hour).UTC().Format(http.TimeFormat)}
			return reply
		}
		_, err := r.Next(t.Context())
		if gap := (*GapError)(nil); !errors.As(err, &gap) || !errors.Is(err, ErrTrimmed) {
			t.Fatalf("not a gap: %v", err)
		}
	})
}

// An idle child is read at its horizon for days: that is no gap, not even with a new iterator.
func TestIdleChildIsNotAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 0)
		st := start("a", change.Position{})
		st.Since = change.MillisOf(time.Now())
		r := open(t, w).NewReader(st)
		defer r.Close()
		for range 5 {
			next(t, r).Release()
			time.Sleep(20 * time.Hour)
		}
	})
}

func TestShardGone(t *testing.T) {
	r := open(t, newWire()).NewReader(start("a", after(1)))
	defer r.Close()
	_, err := r.Next(t.Context())
	if !errors.Is(err, ErrShardGone) || Classify(err) != failure.Gone {
		t.Fatal(err)
	}
}

func TestDeniedIsReturnedWithAHint(t *testing.T) {
	w := newWire()
	w.shard("a", "", 1)
	w.script = func(c wireCall) *wireReply { return refuse("AccessDeniedException", "no") }
	r := open(t, w).NewReader(start("a", change.Position{}))
	defer r.Close()
	_, err := r.Next(t.Context())
	if Classify(err) != failure.Denied || Hint(err) == "" {
		t.Fatalf("%v: %v", Classify(err), err)
	}
}

// LATEST is lossy and must never be asked for, whatever happens to a reader.
func TestLatestIsNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 5)
		w.lifetime = time.Second
		s := open(t, w)
		for _, pos := range []change.Position{{}, {At: change.MillisOf(time.Now())}, after(1)} {
			r := s.NewReader(start("a", pos))
			for range 5 {
				next(t, r).Release()
				time.Sleep(time.Minute)
			}
			r.Close()
		}
		for _, c := range w.calls {
			if c.kind == "LATEST" || c.kind == "AT_SEQUENCE_NUMBER" {
				t.Fatal(c.kind)
			}
		}
	})
}

func TestStartAtATime(t *testing.T) {
	for _, c := range []struct {
		supported bool
		later     time.Duration // in the second of the first record that is read
	}{{true, 0}, {true, 900 * time.Millisecond}, {false, 0}, {false, 900 * time.Millisecond}} {
		supported := c.supported
		w := newWire()
		sh := w.shard("a", "", 0)
		t0 := time.Now().Truncate(time.Minute)
		for i, at := range []time.Duration{-time.Hour, -2 * time.Minute, 0, -time.Hour, time.Second} {
			sh.records = append(sh.records, record(seq(i), t0.Add(at).Unix(), `{"pk":{"S":"x"}}`))
		}
		w.script = func(c wireCall) *wireReply {
			if c.kind == "AT_TIMESTAMP" && !supported {
				return refuse("ValidationException", "Invalid ShardIteratorType")
			}
			return nil
		}
		at := change.MillisOf(t0.Add(c.later))
		r := open(t, w).NewReader(start("a", change.Position{At: at}))
		p := next(t, r)
		if diff := cmp.Diff([]string{seq(2), seq(3), seq(4)}, sequences(p)); diff != "" {
			t.Fatalf("%+v: %s", c, diff)
		}
		if want := after(4); p.To != want || p.From.At != at {
			t.Fatalf("from %v to %v", p.From, p.To)
		}
		p.Release()
		r.Close()
	}
}

// While everything is skipped the position stays the start time: a restart must skip again, not go
// on with old records.
func TestRestartWhileSkipping(t *testing.T) {
	w := newWire()
	sh := w.shard("a", "", 0)
	sh.records = []string{record(seq(0), time.Now().Add(-time.Hour).Unix(), `{"pk":{"S":"x"}}`)}
	w.script = func(c wireCall) *wireReply {
		if c.kind == "AT_TIMESTAMP" {
			return refuse("ValidationException", "Invalid ShardIteratorType")
		}
		return nil
	}
	at := change.Position{At: change.MillisOf(time.Now())}
	r := open(t, w).NewReader(start("a", at))
	defer r.Close()
	p := next(t, r)
	if len(p.Records) != 0 || p.To != at {
		t.Fatalf("%d records, to %v", len(p.Records), p.To)
	}
	reads := 0
	w.mu.Lock()
	for _, c := range w.calls {
		if c.op == "GetRecords" {
			reads++
		}
	}
	w.mu.Unlock()
	if reads < 2 {
		t.Error("a page of which all was skipped was passed off as an empty one: it proves nothing")
	}
	p.Release()
	w.mu.Lock()
	sh.add(seq(1))
	w.mu.Unlock()
	p = next(t, r)
	defer p.Release()
	if diff := cmp.Diff([]string{seq(1)}, sequences(p)); diff != "" {
		t.Fatal(diff)
	}
}

// A time-out, a reset and a throttle are repeated inside; the caller sees the page.
func TestTransientFailuresAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 1)
		replies := []*wireReply{
			refuse("ProvisionedThroughputExceededException", ""), refuse("LimitExceededException", ""),
			refuse("ThrottlingException", ""),
			{status: 500, body: `{"__type":"InternalServerError"}`}, {status: 503}, {status: 500, body: "oops"},
		}
		w.script = func(c wireCall) *wireReply {
			if c.op != "GetRecords" || len(replies) == 0 {
				return nil
			}
			first := replies[0]
			replies = replies[1:]
			return first
		}
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		next(t, r).Release()
	})
}

func TestCanceledReaderEnds(t *testing.T) {
	w := newWire()
	w.shard("a", "", 0)
	r := open(t, w).NewReader(start("a", change.Position{}))
	defer r.Close()
	next(t, r).Release()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("shutting down")
	cancel(why)
	_, err := r.Next(ctx)
	if !errors.Is(err, why) || Classify(err) != failure.Canceled {
		t.Fatal(err)
	}
}

// Page.Date must not promise more than the moment the request began.
func TestDateIsNotLaterThanTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 0)
		w.script = func(c wireCall) *wireReply {
			if c.op == "GetRecords" {
				time.Sleep(3 * time.Second) // a slow reply
			}
			return nil
		}
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		begin := time.Now().UnixMilli()
		p := next(t, r)
		defer p.Release()
		if p.Date > change.Millis(begin) || p.Date < change.Millis(begin-2000) {
			t.Fatalf("date %d, request %d", p.Date, begin)
		}
	})
}
