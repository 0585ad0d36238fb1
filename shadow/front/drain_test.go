package front

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

// TestDrain: connections without an exchange end, and open exchanges end before the front does.
func TestDrain(t *testing.T) {
	asked, proceed := make(chan bool), make(chan bool)
	f := start(t, serve(t, func(c *net.TCPConn) {
		for {
			got := readRequest(c)
			if got == "" {
				return
			}
			asked <- true
			<-proceed
			_, _ = io.WriteString(c, answer(got))
		}
	}), Options{})
	fresh, idle, open := dial(t, f), dial(t, f), dial(t, f)
	send(t, idle, request("1"))
	<-asked
	proceed <- true
	expect(t, idle, answer(passed("1")))
	send(t, open, request("2"))
	<-asked
	f.end()
	expectEnd(t, fresh)
	expectEnd(t, idle)
	select {
	case err := <-f.done:
		t.Fatalf("the front ended before the open exchange: %v", err)
	default:
	}
	proceed <- true
	expect(t, open, answer(passed("2")))
	expectEnd(t, open)
	f.done <- <-f.done
	if _, err := net.Dial("tcp", f.Addr()); err == nil {
		t.Error("the front that has ended accepts connections")
	}
	if n := f.Counts().Passed; n != 2 {
		t.Errorf("%d exchanges are counted", n)
	}
}

// TestDrainIsBounded: an exchange that does not end is cut.
func TestDrainIsBounded(t *testing.T) {
	asked := make(chan bool, 1)
	f := start(t, serve(t, func(c *net.TCPConn) {
		readRequest(c)
		asked <- true
		_, _ = io.Copy(io.Discard, c)
	}), Options{Drain: 1})
	c := dial(t, f)
	send(t, c, request("{}"))
	<-asked
	f.end()
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("got %s", short(got))
	}
}

// TestNewProcessTakesOver: two fronts listen on one address, and each connection that is accepted
// gets its answer while the first one ends.
func TestNewProcessTakesOver(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("one listener an address here")
	}
	service := serve(t, echo)
	first := start(t, service, Options{})
	second := start(t, service, Options{Listen: first.Addr()})
	var clients sync.WaitGroup
	ended := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			for behind := 0; behind < 20; {
				select {
				case <-ended:
					behind++
				default:
				}
				c, err := net.Dial("tcp", first.Addr())
				if errors.Is(err, syscall.ECONNRESET) {
					continue // the system gave it to the first one, which did not accept it any more
				} else if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, request("{}"))
				want := answer(passed("{}"))
				got := make([]byte, len(want))
				if _, err := io.ReadFull(c, got); !errors.Is(err, syscall.ECONNRESET) && string(got) != want {
					t.Errorf("got %s (%v)", short(got), err)
				}
				_ = c.Close()
			}
		})
	}
	until(t, func() bool { return first.Counts().Passed > 50 && second.Counts().Passed > 50 })
	first.end()
	first.done <- <-first.done
	close(ended)
	clients.Wait()
}

// until waits until a condition holds.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestTapGetsExchanges: Tap gets what was sent and answered, as the service has encoded it.
func TestTapGetsExchanges(t *testing.T) {
	const head = "HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
	got := make(chan *exchange.Exchange, 1)
	f := start(t, serve(t, func(c *net.TCPConn) {
		for range 2 {
			readRequest(c)
			_, _ = io.WriteString(c, head+"2\r\n\x1f\x8b\r\n1\r\nx\r\n0\r\n\r\n")
		}
		readRequest(c)
		_, _ = io.WriteString(c, head+"2\r\n\x1f\x8b\r\n1\r\n")
	}), Options{Share: 1, Answers: true, Tap: func(x *exchange.Exchange) { got <- x }})
	c := dial(t, f)
	for i := range 3 {
		send(t, c, request("{}"))
		x, cut := <-got, i == 2
		want := map[bool]string{false: "\x1f\x8bx", true: "\x1f\x8b"}[cut]
		if x.Status != 400 || x.Target != "DynamoDB_20120810.GetItem" || string(x.Request.Bytes) != "{}" ||
			string(x.Answer.Bytes) != want || x.Answer.Encoding != "gzip" || x.Request.Encoding != "" || x.Cut != cut ||
			x.Begin.IsZero() || x.Duration <= 0 || !x.Request.Whole() {
			t.Errorf("exchange %d: %+v", i, x)
		}
	}
}

// TestSizesOfAnswers: without Options.Answers, Tap gets the size of an answer alone.
func TestSizesOfAnswers(t *testing.T) {
	got := make(chan *exchange.Exchange, 1)
	f := start(t, serve(t, echo), Options{Share: 1, Tap: func(x *exchange.Exchange) { got <- x }})
	c := dial(t, f)
	send(t, c, request("{}"))
	want := passed("{}")
	expect(t, c, answer(want))
	if x := <-got; x.Answer.Bytes != nil || x.Answer.Size != int64(len(want)) || string(x.Request.Bytes) != "{}" ||
		x.Status != 200 {
		t.Errorf("%+v", x)
	}
}

// TestShare: each exchange is chosen for itself.
func TestShare(t *testing.T) {
	const n = 2000
	f := start(t, serve(t, echo), Options{Share: 0.25, Tap: discard})
	c := dial(t, f)
	for range n {
		send(t, c, request("{}"))
		expect(t, c, answer(passed("{}")))
	}
	until(t, func() bool { return f.Counts().Passed == n })
	if got := f.Counts(); got.Taken < n/8 || got.Taken > n/2 || got.Unsampled+got.Taken != n {
		t.Errorf("counts are %+v", got)
	}
}

// TestTapThatBlocksDelaysNothing: what does not fit is dropped, and the bytes that wait are
// bounded.
func TestTapThatBlocksDelaysNothing(t *testing.T) {
	const n, size, memory = 200, 100_000, 1_000_000
	began, proceed := make(chan bool, n), make(chan bool)
	f := start(t, serve(t, echo), Options{Share: 1, Answers: true, Memory: memory, Tap: func(*exchange.Exchange) {
		began <- true
		<-proceed
	}})
	c := dial(t, f)
	text := string(make([]byte, size))
	for range n {
		send(t, c, request(text))
		expect(t, c, answer(passed(text)))
		f.queue.mu.Lock()
		if f.queue.used > memory {
			t.Errorf("%d bytes wait", f.queue.used)
		}
		f.queue.mu.Unlock()
	}
	until(t, func() bool { return f.Counts().Passed == n }) // which is counted behind the answer
	if got := f.Counts(); got.Taken < 2 || got.Taken > memory/size || got.Dropped != n-got.Taken {
		t.Errorf("counts are %+v", got)
	}
	<-began
	f.end()
	close(proceed) // Run waits for this call of Tap, and for no other
	f.done <- <-f.done
	if got := f.Counts(); got.Taken != int64(1+len(began)) || got.Passed != n {
		t.Errorf("Tap was called %d times, and counts are %+v", 1+len(began), got)
	}
}
