package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/request"
)

func openRequests(t *testing.T, l *Log) *request.Store {
	t.Helper()
	s, err := l.Requests(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func itemsOf(n int) (items []request.Item) {
	for i := range n {
		items = append(items, request.Item{Key: json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%06d"}}`, i))})
	}
	return items
}

var asked = time.Unix(1_790_000_000, 0).UTC()

func TestRequestIsDoneAgainUntilItsOutcomeIsStored(t *testing.T) {
	ctx, l := testContext(t), createLog(t, embeddedQueue(t))
	if s, err := l.ExistingRequests(ctx); s != nil || err != nil {
		t.Fatalf("before anyone asked: %v, %v", s, err)
	}
	asker := openRequests(t, l)
	chunks := request.Split(request.Resync, "test", itemsOf(3), asked)
	chunks = append(chunks, request.Split(request.Letters, "test", itemsOf(1), asked)...)
	for _, c := range chunks {
		for range 2 { // an acknowledgement that was lost
			if err := asker.Ask(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 2 { // the first owner is killed before the outcome is stored
		owner, err := l.ExistingRequests(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := owner.Next(ctx, asked)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(chunks[0], got); d != "" {
			t.Fatal(d)
		}
		if round == 1 {
			if err := owner.Finish(ctx, got, &request.Outcome{Done: asked, Written: 2, Hot: 1}); err != nil {
				t.Fatal(err)
			}
			if err := owner.Finish(ctx, got, &request.Outcome{Done: asked, Written: 9}); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := asker.Await(ctx, chunks[0].ID)
	if err != nil || out.Written != 2 || out.Hot != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := asker.Await(ctx, chunks[0].ID); !errors.Is(err, request.ErrNotFound) {
		t.Errorf("fetched twice: %v", err)
	}
	if got, err := asker.Next(ctx, asked); err != nil || got.ID != chunks[1].ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOutcomeIsFetchedWithoutItsCleanUp: Rule 15. What was done is known although the request
// cannot be deleted.
func TestOutcomeIsFetchedWithoutItsCleanUp(t *testing.T) {
	ctx, l := testContext(t), createLog(t, embeddedQueue(t))
	s := openRequests(t, l)
	c := request.Split(request.Resync, "test", itemsOf(1), asked)[0]
	if err := s.Ask(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(ctx, c, &request.Outcome{Done: asked, Written: 1}); err != nil {
		t.Fatal(err)
	}
	name, err := l.q.conn.JS.StreamNameBySubject(ctx, l.subject.Requests+c.ID)
	if err != nil {
		t.Fatal(err)
	}
	st, err := l.q.conn.JS.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := st.CachedInfo().Config
	cfg.DenyPurge = true
	if _, err := l.q.conn.JS.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	if err := s.Withdraw(ctx, c.ID); err == nil {
		t.Fatal("the request can be deleted: this shows nothing")
	}
	if out, err := s.Await(ctx, c.ID); err != nil || out.Written != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

// A withdrawn request stays away, and one that nobody fetches goes after a day.
func TestRequestsLeaveNothingBehind(t *testing.T) {
	ctx, l := testContext(t), createLog(t, embeddedQueue(t))
	s := openRequests(t, l)
	chunks := request.Split(request.Resync, "test", itemsOf(1), asked)
	other := request.Split(request.Resync, "test", itemsOf(1), asked)
	for _, c := range append(chunks, other...) {
		if err := s.Ask(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Withdraw(ctx, chunks[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(ctx, chunks[0], &request.Outcome{Done: asked}); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(ctx, other[0], &request.Outcome{Done: asked}); err != nil {
		t.Fatal(err)
	}
	if err := l.q.conn.NC.Publish(l.subject.Requests+"foreign", []byte("nats pub")); err != nil {
		t.Fatal(err)
	}
	if err := l.q.conn.NC.Flush(); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Next(ctx, asked.Add(time.Hour)); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if n, err := s.Count(ctx); n != 1 || err != nil {
		t.Errorf("%d kept, %v", n, err)
	}
	if c, err := s.Next(ctx, asked.Add(25*time.Hour)); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if n, err := s.Count(ctx); n != 0 || err != nil {
		t.Errorf("%d kept after a day, %v", n, err)
	}
}

// bulky returns requests of about 190 KB that do not compress.
func bulky(t *testing.T, n int) (chunks []*request.Chunk) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for i := range n {
		var items []request.Item
		for k := range 40 {
			row := make([]byte, 2200)
			_, _ = random.Read(row) // never fails
			key := json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%d-%d"}}`, i, k))
			items = append(items, request.Item{Key: key, Rows: [][]byte{row}})
		}
		all := request.Split(request.Resync, "test", items, asked)
		if len(all) != 1 {
			t.Fatalf("%d chunks", len(all))
		}
		chunks = append(chunks, all...)
	}
	return chunks
}

// storedBytes returns the size of the stream of requests.
func storedBytes(t *testing.T, l *Log) uint64 {
	t.Helper()
	st, err := l.q.conn.JS.Stream(testContext(t), l.name+"_requests")
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Bytes
}

// Whoever asks for more than may wait is held back, not refused, and the owner's outcomes always
// fit.
func TestFullRequestsHoldTheAskerBack(t *testing.T) {
	long(t, "fills 16 MiB")
	ctx, l := testContext(t), createLog(t, embeddedQueue(t))
	s := openRequests(t, l)
	chunks := bulky(t, 200)
	full := 0
	for ; storedBytes(t, l) < request.MaxWaiting; full++ {
		if err := s.Ask(ctx, chunks[full]); err != nil {
			t.Fatal(err)
		}
	}
	impatient, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := s.Ask(impatient, chunks[full]); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("chunk %d into full requests: %v", full, err)
	}
	if n, err := s.Count(ctx); n != full || err != nil {
		t.Fatalf("%d stored instead of %d, %v", n, full, err)
	}
	patient := make(chan error, 1)
	go func() { patient <- s.Ask(ctx, chunks[full+1]) }()
	var notes []request.Note
	for i := range 1000 {
		notes = append(notes, request.Note{Item: i, Code: "hot", Reason: strings.Repeat("x", 100), Until: asked})
	}
	most := func(i int) int { return 1000 / (1 + i%10) } // notes of an outcome
	want, got := append(chunks[:full:full], chunks[full+1]), []string(nil)
	for i := range want {
		if i == full { // all the others have outcomes: it gets its turn
			if err := <-patient; err != nil {
				t.Fatal(err)
			}
		}
		c, err := s.Next(ctx, asked)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		if err := s.Finish(ctx, c, &request.Outcome{Done: asked, Notes: notes[:most(i)]}); err != nil {
			t.Fatalf("outcome %d: %v", i, err)
		}
		got = append(got, c.ID)
	}
	for i, c := range want {
		if out, err := s.Await(ctx, c.ID); err != nil || len(out.Notes) != most(i) || got[i] != c.ID {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
}

// A message under the name of another request has nobody who waits for it, and no outcome would end
// it.
func TestRequestUnderAnotherNameIsDropped(t *testing.T) {
	ctx, l := testContext(t), createLog(t, embeddedQueue(t))
	s := openRequests(t, l)
	chunk := request.Split(request.Resync, "test", itemsOf(1), asked)[0]
	if err := s.Ask(ctx, chunk); err != nil {
		t.Fatal(err)
	}
	m, err := l.q.conn.Next(ctx, l.name+"_requests", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Withdraw(ctx, chunk.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := l.q.conn.JS.Publish(ctx, l.subject.Requests+"other", m.Data); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Next(ctx, asked); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if n, err := s.Count(ctx); n != 0 || err != nil {
		t.Errorf("%d left, %v", n, err)
	}
}

// Attack 63: requests are not entries of the log, so the writer beside them is never in doubt.
func TestRequestsNeverThrowTheWriterIntoDoubt(t *testing.T) {
	ctx, q := testContext(t), embeddedQueue(t)
	w := owned(t, q)
	s := openRequests(t, w.Log())
	chunks := bulky(t, 60)
	done := make(chan error, 1)
	go func() {
		for _, c := range chunks {
			if err := s.Ask(ctx, c); err != nil {
				done <- err
				return
			}
			if err := s.Finish(ctx, c, &request.Outcome{Done: asked}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	before := w.State().Seq
	for appended := uint64(0); ; appended++ {
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: w.State().Date + 1}, nil); err != nil {
			t.Fatalf("entry %d: %v", appended, err)
		}
		select {
		case err := <-done:
			if err != nil || w.State().Seq != before+appended+1 || appended == 0 {
				t.Fatalf("%v; %d entries after %d appends", err, w.State().Seq-before, appended+1)
			}
			return
		default:
		}
	}
}

// stepDown makes the leader of the requests' stream give up, so that the next call meets an
// election.
func stepDown(t *testing.T, q *Queue, stream string) {
	t.Helper()
	ctx := testContext(t)
	if err := conn.Retry(ctx, func() error {
		_, err := q.conn.NC.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 5*time.Second)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// With three copies: leaders step down and are stopped under the asker and the owner. Every request
// is stored once, and the first outcome of each reaches the asker.
func TestLeaderChangesUnderRequests(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx, c := testContext(t), startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	l := claimIn(t, q).Log()
	var s *request.Store
	if err := conn.Retry(ctx, func() (err error) { s, err = l.Requests(ctx); return err }); err != nil {
		t.Fatal(err)
	}
	var chunks []*request.Chunk
	for i := range 8 {
		chunks = append(chunks, request.Split(request.Resync, "test", itemsOf(i+1), asked)...)
		if i%3 == 1 {
			stepDown(t, q, l.name+"_requests")
		}
		for range 2 { // an acknowledgement that was lost
			if err := s.Ask(ctx, chunks[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := conn.Retry(ctx, func() error {
		n, err := s.Count(ctx)
		if err == nil && n != len(chunks) {
			t.Fatalf("%d stored of %d", n, len(chunks))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i := range chunks {
		switch i {
		case 1, 4:
			stepDown(t, q, l.name+"_requests")
		case 6:
			c.stop(leaderOf(t, l))
		}
		var got *request.Chunk
		if err := conn.Retry(ctx, func() (err error) { got, err = s.Next(ctx, asked); return err }); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(chunks[i], got); d != "" {
			t.Fatal(d)
		}
		for n := range 2 { // the second owner did it again
			if err := s.Finish(ctx, got, &request.Outcome{Done: asked, Written: int64(100*n + i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, chunk := range chunks {
		if out, err := s.Await(ctx, chunk.ID); err != nil || out.Written != int64(i) {
			t.Fatalf("outcome of chunk %d: %+v, %v", i, out, err)
		}
	}
}

// editing starts a relay to a server that may change what the client sends, without its length.
func editing(t *testing.T, to string, edit func([]byte)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
			go func() {
				for b := make([]byte, 1<<16); ; {
					n, err := client.Read(b)
					edit(b[:n])
					if _, writeErr := server.Write(b[:n]); err != nil || writeErr != nil {
						_ = server.Close()
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestRequestIsNotGoneByOneAnswer: Rule 13. A request that is not found once is there, with its
// outcome.
func TestRequestIsNotGoneByOneAnswer(t *testing.T) {
	ctx := testContext(t)
	c := request.Split(request.Resync, "test", itemsOf(1), asked)[0]
	var denied atomic.Int64 // how often the request is still to be asked for under another id
	wrong := c.ID[:len(c.ID)-1] + "~"
	addr := editing(t, startExternal(t).addr(), func(sent []byte) {
		if i := bytes.Index(sent, []byte("."+c.ID+`"}`)); i >= 0 && bytes.Contains(sent, []byte("last_by_subj")) &&
			denied.Add(-1) >= 0 {
			copy(sent[i+1:], wrong)
		}
	})
	l := createLog(t, connectTo(t, addr, nil))
	s := openRequests(t, l)
	if err := s.Ask(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(ctx, c, &request.Outcome{Done: asked, Written: 1}); err != nil {
		t.Fatal(err)
	}
	denied.Store(1)
	if out, err := s.Await(ctx, c.ID); err != nil || out.Written != 1 || denied.Load() > 0 {
		t.Errorf("%+v, %v; %d denials are left", out, err, denied.Load())
	}
	if _, err := s.Await(ctx, c.ID); !errors.Is(err, request.ErrNotFound) {
		t.Errorf("a request that was fetched: %v", err)
	}
}
