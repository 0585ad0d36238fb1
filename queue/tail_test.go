package queue

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// TestTailOfAFastLog: readers keep behind the block that is being written while all logs together
// grow fast and their own log fills a block in two seconds. In virtual time.
func TestTailOfAFastLog(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		others int // bytes that another log has appended
		size   int // of each of 20 entries
		every  time.Duration
		behind time.Duration // of the time after the last entry
	}{
		"fast":                  {0, mib, 10 * time.Millisecond, 160 * time.Millisecond},
		"large entries":         {0, 5 * mib, time.Second, longestFill},
		"little altogether":     {0, mib / 2, 10 * time.Millisecond, 0},
		"with others":           {16 * mib, mib / 2, 10 * time.Millisecond, 320 * time.Millisecond},
		"large and less often":  {0, 5 * mib, 3 * longestFill / 4, longestFill},
		"slow":                  {16 * mib, mib, time.Second, 0},
		"others long ago":       {0, mib / 2, 600 * time.Millisecond, 0},
		"many of a few seconds": {0, 3 * mib, 1100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newTails(16 * mib)
				all.of("other").note(1, c.others, time.Now())
				log := all.of("log")
				for i := range 20 {
					<-time.After(c.every)
					log.note(uint64(i+1), c.size, time.Now())
				}
				finished, behind, _ := log.look()
				if got := max(0, time.Until(behind)); got != c.behind {
					t.Errorf("readers keep behind for another %v, want %v", got, c.behind)
				}
				// The block that is being written holds at most 8 MiB.
				if want := uint64(20 - blockBytes/c.size); finished != want {
					t.Errorf("finished up to %d, want %d", finished, want)
				}
			})
		})
	}
}

// TestTailOfSmallEntriesIsShort: small entries are noted in runs. An entry that may be in the block
// that is being written is not finished, and one that lies a run further back is.
func TestTailOfSmallEntriesIsShort(t *testing.T) {
	log := newTails(0).of("log")
	random := rand.New(rand.NewPCG(1, 2))
	to := []int{0} // bytes up to each entry
	for i := range 50_000 {
		size := 100 + random.IntN(2000)
		if i/500%10 == 9 {
			size = random.IntN(3 * runBytes)
		}
		to = append(to, to[len(to)-1]+size)
		log.note(uint64(i+1), size, time.Now())
		finished, _, _ := log.look()
		if last := to[len(to)-1]; finished > 0 && last-to[finished-1] <= blockBytes {
			t.Fatalf("entry %d is finished, and one block holds it and all behind it: %d bytes", finished, last-to[finished-1])
		} else if open := last - to[finished]; open > blockBytes+runBytes {
			t.Fatalf("entry %d is not finished, with %d bytes behind it", finished+1, open)
		}
		if n := len(log.newest); n > 2*blockBytes/runBytes+2 {
			t.Fatalf("%d notes", n)
		}
	}
}

// TestAwaitedTailMoves: a reader that waits goes on when a block is finished, when the log is no
// longer fast, and when its context ends. In virtual time.
func TestAwaitedTailMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newTails(0).of("log")
		fill := func(seq uint64) {
			<-time.After(longestFill / 4)
			log.note(seq, blockBytes, time.Now())
		}
		fill(1)
		fill(2)
		_, behind, moved := log.look()
		done := make(chan error)
		ctx, cancel := context.WithCancelCause(t.Context())
		wait := func() { done <- awaitMoved(ctx, moved, time.Until(behind)) }
		go wait()
		synctest.Wait()
		fill(3)
		if err := <-done; err != nil || time.Until(behind) != longestFill/4 {
			t.Error("a finished block:", err)
		}
		_, behind, moved = log.look()
		go wait()
		if err := <-done; err != nil || time.Until(behind) > 0 {
			t.Error("the end of the time:", err)
		}
		behind = time.Now().Add(time.Hour)
		cancel(errCanceled)
		go wait()
		if err := <-done; !errors.Is(err, errCanceled) {
			t.Error("the end of the context:", err)
		}
	})
}

var errCanceled = errors.New("canceled")

// hold has the readers of a log keep behind, as if the log were fast; or no longer.
func (t *tail) hold(behind time.Time) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.behind = behind
	close(t.moved)
	t.moved = make(chan struct{})
}

// appendMiB appends n entries of a MiB.
func appendMiB(t testing.TB, w *Writer, n int) {
	t.Helper()
	for range n {
		appendPage(t, w, 1, 1<<20)
	}
}

// TestReaderKeepsBehindAFastLog: it gets every entry of the finished blocks, requests none of the
// block that is being written, and gets those too once the log is no longer fast.
func TestReaderKeepsBehindAFastLog(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	tail := w.Log().tail
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	next := func() uint64 {
		t.Helper()
		seq, _, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	last, held := next(), 0
	readTo := func(to uint64) {
		t.Helper()
		for ; last < to; last++ {
			if seq := next(); seq != last+1 {
				t.Fatalf("entry %d after %d", seq, last)
			}
		}
	}
	for range 2 { // the reader is at the end of the log, and goes back there
		readTo(w.State().Seq)
		tail.hold(time.Now().Add(time.Hour))
		for range 2 {
			appendMiB(t, w, 10)
			finished, _, _ := tail.look()
			readTo(finished)
			if r.requested > finished {
				continue // since before the log was fast
			}
			held++
			if d := cmp.Diff(finished, deliveredTo(t, r)); d != "" {
				t.Fatal("requested:", d)
			}
			ended, cancel := context.WithCancelCause(ctx)
			cancel(errCanceled)
			if err := r.request(ended); !errors.Is(err, errCanceled) {
				t.Fatalf("the reader does not wait behind entry %d: %v", last, err)
			}
		}
		tail.hold(time.Time{})
	}
	if held < 2 {
		t.Fatal("the reader has waited", held, "times")
	}
}

// TestReaderRequestsFinishedBlocksOnly: behind a fast log a reader requests no entry of the block
// that is being written, however small the entries are. One that reads to a known end waits for no
// block: none may come.
func TestReaderRequestsFinishedBlocksOnly(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	for range 20 {
		appendPage(t, w, 1, 1)
	}
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	first, _, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for r.seq < r.requested {
		if _, _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	log, end := w.Log().tail, first+7
	log.hold(time.Now().Add(time.Hour))
	log.all.mu.Lock()
	log.finished = end
	log.all.mu.Unlock()
	if err := r.request(ctx); err != nil || r.requested != end {
		t.Fatalf("requested up to entry %d, want %d: %v", r.requested, end, err)
	}
	for r.seq < end {
		if _, _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errCanceled)
	if err := r.request(ended); !errors.Is(err, errCanceled) || r.requested != end {
		t.Fatalf("requested up to entry %d behind the finished blocks: %v", r.requested, err)
	}
	r.EndAt(w.State().Seq)
	for {
		if _, _, err := r.Next(ctx); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if r.seq != w.State().Seq {
		t.Errorf("read up to entry %d of %d", r.seq, w.State().Seq)
	}
	r.EndAt(0)
	log.hold(time.Now().Add(100 * time.Millisecond))
	log.all.mu.Lock()
	log.finished = r.seq
	log.all.mu.Unlock()
	if err := r.request(ctx); err != nil || r.requested != r.seq+firstPulled {
		t.Errorf("requested up to entry %d behind %d, once the log is no longer fast: %v", r.requested, r.seq, err)
	}
}

// deliveredTo returns the last entry that the server has sent to a reader.
func deliveredTo(t testing.TB, r *Reader) uint64 {
	t.Helper()
	readers := r.l.stream.ListConsumers(testContext(t))
	seq := uint64(0)
	for info := range readers.Info() {
		seq = max(seq, info.Delivered.Stream)
	}
	if err := readers.Err(); err != nil {
		t.Fatal(err)
	}
	return seq
}

// TestReaderBesideAFastWriter: with both at work nothing is missed, and the reader comes to the end
// by itself.
func TestReaderBesideAFastWriter(t *testing.T) {
	ctx := testContext(t)
	q := embeddedIn(t, t.TempDir(), func(o *Options) { o.BlocksMaxBytes = 1 })
	w := owned(t, q)
	from := w.State().Seq
	r, err := w.Log().Read(ctx, from+1, w.State().Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	const n = 24
	done := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			if seq, _, err := r.Next(ctx); err != nil || seq != from+1+i {
				done <- errors.Join(err, errors.New("not the next entry"))
				return
			}
		}
		done <- nil
	}()
	appendMiB(t, w, n)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestServerKeepsNoBlockThatWasReadWhenFinished: what the embedded server keeps of a fast log stays
// within a few blocks. Read at its end, the log would be in memory for ten seconds. So it would be
// after small entries, if the reader had requested as many of those that follow.
func TestServerKeepsNoBlockThatWasReadWhenFinished(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	for range 2 * pulledMessages {
		appendPage(t, w, 1, 1)
	}
	most := uint64(0)
	for r.seq < w.State().Seq {
		if _, _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
		most = max(most, r.requested-r.seq)
	}
	if most < pulledMessages/2 {
		t.Errorf("at most %d small entries were requested at once", most)
	}
	for r.seq < r.requested {
		appendPage(t, w, 1, 1)
		if _, _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.request(ctx); err != nil { // as Next does at the end
		t.Fatal(err)
	}
	w.Log().tail.hold(time.Now().Add(time.Hour))
	before := alive()
	const mib = 64
	for range mib {
		appendMiB(t, w, 1)
		for finished, _, _ := w.Log().tail.look(); r.seq < finished; {
			if _, _, err := r.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if more := alive() - before; more > mib/2<<20 {
		t.Errorf("%d MiB are in memory after %d MiB were appended", more>>20, mib)
	}
}

// alive returns the bytes of live objects. Pools keep theirs for two collections, and what a
// collection finds dead goes to a pool first.
func alive() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
