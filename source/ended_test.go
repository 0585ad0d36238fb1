package source

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// endless is a page that anything may give: no record, and no iterator.
var endless = &wireReply{body: `{"Records":[]}`}

// done reads the page that ends a reader, with the records of some numbers.
func done(t *testing.T, r *Reader, want ...int) Denied {
	t.Helper()
	p := next(t, r)
	defer p.Release()
	var all []string
	for _, n := range want {
		all = append(all, seq(n))
	}
	if d := cmp.Diff(all, sequences(p)); d != "" || !p.Done {
		t.Fatalf("done: %v, records: %s", p.Done, d)
	}
	return r.Denied()
}

// TestEndedShardIsReadAtItsLastRecord: only a page that holds the last record alone can come from
// the shard and show its end.
func TestEndedShardIsReadAtItsLastRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 3).closed = true
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		if d := done(t, r, 0, 1, 2); d.LastHeld || d.LastNone || d.EndShown || d.After != after(2).After {
			t.Fatalf("%+v", d)
		}
		since := r.Denied().Since
		r.ReadAgain()
		if d := done(t, r); !d.LastHeld || d.LastNone || !d.EndShown || d.Since != since || d.Alike != since {
			t.Fatalf("%+v", d)
		}
		at, behind := w.count("GetShardIterator", "AT_SEQUENCE_NUMBER"), w.count("GetShardIterator", "AFTER_SEQUENCE_NUMBER")
		if at != 1 || behind != 0 {
			t.Fatal(w.calls)
		}
		if end := r.End(); end.To != after(2) || !end.Done {
			t.Fatalf("%+v", end.Page)
		}
	})
}

// TestFalseEndShowsNoLastRecord: what it hides is read, and is asked about in its turn.
func TestFalseEndShowsNoLastRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		sh := w.shard("a", "", 2)
		sh.closed = true
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		done(t, r, 0, 1)
		sh.add(seq(2)) // it was hidden
		w.script = func(c wireCall) *wireReply {
			if c.op == "GetRecords" {
				return endless
			}
			return nil
		}
		r.ReadAgain()
		for range 60 {
			if d := done(t, r); d.LastHeld || d.LastNone {
				t.Fatalf("%+v", d)
			}
			r.ReadOn()
		}
		w.script = nil
		if d := done(t, r, 2); d.LastHeld || d.Since != d.Answered {
			t.Fatalf("%+v", d)
		}
		r.ReadAgain()
		if d := done(t, r); !d.LastHeld || d.After != after(2).After {
			t.Fatalf("%+v", d)
		}
	})
}

// TestLastRecordWithAnIteratorProvesNothing: a page may end behind its first record, so it does not
// show that the shard is read up to its Date.
func TestLastRecordWithAnIteratorProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		sh := w.shard("a", "", 2)
		sh.closed = true
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		done(t, r, 0, 1)
		sh.closed = false
		r.ReadAgain()
		time.AfterFunc(150*time.Millisecond, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			sh.add(seq(2))
		})
		p := next(t, r)
		defer p.Release()
		if d := cmp.Diff([]string{seq(2)}, sequences(p)); d != "" || p.Done || r.Denied().EndShown {
			t.Fatalf("done: %v, %s", p.Done, d)
		}
	})
}

// TestIteratorsBehindTheEndOfAShard: the service may give further ones before none. The page that
// holds the last record shows that none follows, unless it may have been cut behind it.
func TestIteratorsBehindTheEndOfAShard(t *testing.T) {
	for name, size := range map[string]int{"small": 0, "large": smallRecord} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				sh := w.shard("a", "", 2)
				sh.records[1] = strings.Replace(sh.records[1], `"item-1"`, strconv.Quote(strings.Repeat("x", size)), 3)
				sh.closed = true
				r := open(t, w).NewReader(start("a", change.Position{}))
				defer r.Close()
				since := done(t, r, 0, 1).Since
				r.ReadAgain()
				iterators := 3
				w.script = func(c wireCall) *wireReply {
					if c.op != "GetRecords" || iterators == 0 {
						return nil
					}
					iterators--
					sh.closed = false
					defer func() { sh.closed = true }()
					return w.answer(c)
				}
				for {
					p := next(t, r)
					ended, empty := p.Done, len(p.Records) == 0
					if p.Release(); !empty {
						t.Fatal("a record again")
					}
					if ended {
						break
					}
				}
				if d := r.Denied(); d.LastHeld != (size == 0) || d.LastNone != (size > 0) || !d.EndShown || d.Since != since {
					t.Fatalf("%+v", d)
				}
				if n := w.count("GetShardIterator", "AT_SEQUENCE_NUMBER"); n != 1 || iterators > 0 {
					t.Fatalf("%d iterators at the last record: %v", n, w.calls)
				}
			})
		})
	}
}

// TestLastRecordThatIsGone: then its absence says nothing, and what is behind it is read.
func TestLastRecordThatIsGone(t *testing.T) {
	for _, code := range []string{"TrimmedDataAccessException", "ValidationException"} {
		for _, op := range []string{"GetShardIterator", "GetRecords"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWire()
				sh := w.shard("a", "", 2)
				sh.closed = true
				r := open(t, w).NewReader(start("a", change.Position{}))
				defer r.Close()
				done(t, r, 0, 1)
				kind := ""
				w.script = func(c wireCall) *wireReply {
					if c.op == "GetShardIterator" {
						kind = c.kind
					}
					if c.op == op && kind == "AT_SEQUENCE_NUMBER" {
						return refuse(code, "")
					}
					return nil
				}
				r.ReadAgain()
				if d := done(t, r); d.LastHeld || !d.LastNone || w.count("GetShardIterator", "TRIM_HORIZON") != 1 {
					t.Fatalf("%s of %s: %+v, %v", code, op, d, w.calls)
				}
				sh.add(seq(2))
				r.ReadOn()
				if d := done(t, r, 2); d.LastNone {
					t.Fatalf("%+v", d)
				}
			})
		}
	}
}

// TestDenialsOfAnotherKindAreCountedAnew: an answer lasts only while the same one comes.
func TestDenialsOfAnotherKindAreCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 2)
		r := open(t, w).NewReader(start("a", change.Position{}))
		defer r.Close()
		next(t, r).Release()
		code := "ResourceNotFoundException"
		w.script = func(c wireCall) *wireReply {
			if c.op == "GetRecords" {
				return refuse(code, "")
			}
			return nil
		}
		var all []Denied
		for range 3 {
			time.Sleep(time.Minute)
			if _, err := r.Next(t.Context()); err == nil {
				t.Fatal("no error")
			}
			all = append(all, r.Denied())
			code = "TrimmedDataAccessException"
			r.ReadOn()
		}
		if all[1].Since != all[0].Since || all[1].Alike != all[1].Answered || all[2].Alike != all[1].Alike {
			t.Fatalf("%+v", all)
		}
	})
}
