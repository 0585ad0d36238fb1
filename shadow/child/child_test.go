package child

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

// behaviour is the variable by which this program, started again, is a child.
const behaviour = "CHILD_OF_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(behaviour) {
	case "":
		os.Exit(m.Run())
	case "reads": // prints the size of each request
		read(os.Stdin, func(x *exchange.Exchange) { fmt.Fprintln(os.Stderr, "got", len(x.Request.Bytes)) })
		fmt.Fprintln(os.Stderr, "end")
	case "exits": // after its first exchange
		r := exchange.NewReader(os.Stdin)
		if _, err := r.Next(); err == nil {
			fmt.Fprintln(os.Stderr, "got one")
			os.Exit(3)
		}
	case "hangs": // reads nothing, and does not end with its input
		fmt.Fprintln(os.Stderr, "begun")
		<-time.After(time.Hour)
	case "floods": // prints until nothing more is taken
		line := strings.Repeat("x", 3*longestLine) + "\n"
		for {
			fmt.Fprint(os.Stderr, line)
			fmt.Fprint(os.Stdout, line)
		}
	case "slow": // reads an exchange for each signal on its output
		read(os.Stdin, func(*exchange.Exchange) { <-time.After(time.Millisecond) })
		fmt.Fprintln(os.Stderr, "end")
	}
}

func read(pipe io.Reader, each func(*exchange.Exchange)) {
	r := exchange.NewReader(bufio.NewReader(pipe))
	for {
		x, err := r.Next()
		if err != nil {
			return
		}
		each(x)
	}
}

// rig is a child that runs as this program with a behaviour.
type rig struct {
	*Child
	end  context.CancelFunc
	done chan error

	mu     sync.Mutex
	lines  []string
	exited atomic.Int64
}

func start(t *testing.T, how string, o Options) *rig {
	t.Helper()
	r := &rig{done: make(chan error, 1)}
	if o.Path == "" {
		o.Path = os.Args[0]
	}
	o.Env = append(os.Environ(), behaviour+"="+how)
	o.Line = func(line string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(line) > longestLine {
			t.Errorf("a line of %d bytes", len(line))
		}
		r.lines = append(r.lines, line)
	}
	o.Exited = func(error) { r.exited.Add(1) }
	r.Child = New(o)
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// ended ends the child, and returns what it printed.
func (r *rig) ended(t *testing.T) []string {
	t.Helper()
	r.end()
	err := <-r.done
	if r.done <- nil; err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

func (r *rig) printed(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if l == line {
			return true
		}
	}
	return false
}

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

// some returns an exchange whose request has a size.
func some(size int) *exchange.Exchange {
	return &exchange.Exchange{Target: "x", Request: exchange.Body{Bytes: make([]byte, size), Size: int64(size)}}
}

func TestChildGetsExchanges(t *testing.T) {
	r := start(t, "reads", Options{})
	until(t, func() bool { return r.Counts().Starts == 1 })
	for _, size := range []int{0, 1, exchange.MaxBody} {
		until(t, func() bool { // Take loses what comes before the pipe is there
			before := r.Counts().Sent
			r.Take(some(size))
			return r.Counts().Sent > before
		})
	}
	want := []string{"got 0", "got 1", fmt.Sprint("got ", exchange.MaxBody), "end"}
	if got := r.ended(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	lost := r.Counts().Lost
	if r.Take(some(1)); r.Counts().Lost != lost+1 {
		t.Errorf("an exchange behind the end is not counted as lost")
	}
}

// TestChildThatDiesIsStartedAgain: exchanges are lost meanwhile, and Take does not wait.
func TestChildThatDiesIsStartedAgain(t *testing.T) {
	r := start(t, "exits", Options{Pause: time.Millisecond})
	n := int64(0)
	until(t, func() bool {
		r.Take(some(100_000))
		n++
		return r.Counts().Starts >= 4
	})
	lines := r.ended(t)
	if c := r.Counts(); c.Sent+c.Lost != n || c.Sent < 3 || r.exited.Load() < 3 {
		t.Errorf("%d exchanges, %+v, %d exits", n, c, r.exited.Load())
	}
	if len(lines) < 3 || lines[0] != "got one" {
		t.Errorf("printed %q", lines)
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	r := start(t, "", Options{Path: "/nowhere/at/all", Pause: time.Millisecond})
	until(t, func() bool { return r.exited.Load() >= 3 })
	r.Take(some(1))
	if c := r.Counts(); c.Lost != 1 || c.Starts != 0 {
		t.Errorf("%+v", c)
	}
}

// Attack 104: Take waits for a child that reads nothing, and returns when the child is killed
// after its grace.
func TestFrozenChild(t *testing.T) {
	r := start(t, "hangs", Options{Grace: time.Millisecond})
	until(t, func() bool { return r.printed("begun") })
	taken := make(chan int, 1)
	go func() {
		n := 0
		for ; r.Counts().Lost == 0; n++ {
			r.Take(some(exchange.MaxBody))
		}
		taken <- n
	}()
	r.ended(t)
	if n := <-taken; n > 2 {
		t.Errorf("%d exchanges of 1 MiB fit into the pipe", n)
	}
}

// TestKilledChild: Kill ends a child that has long to end.
func TestKilledChild(t *testing.T) {
	r := start(t, "hangs", Options{Grace: time.Hour, Pause: time.Millisecond})
	until(t, func() bool { return r.printed("begun") })
	r.Kill()
	until(t, func() bool { return r.Counts().Starts == 2 })
	r.end()
	r.Kill()
	r.ended(t)
}

// Attack 107: of what a child prints a bounded part is read.
func TestFloodIsBounded(t *testing.T) {
	var printed atomic.Int64
	r := start(t, "floods", Options{Grace: time.Millisecond, Output: func(line string) { printed.Add(int64(len(line))) }})
	until(t, func() bool { return printed.Load() >= printedBurst-2*longestLine })
	r.Take(some(1))
	r.ended(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := int64(len(strings.Join(r.lines, ""))); n == 0 || n > 100*printedBurst {
		t.Errorf("%d bytes were printed", n)
	}
}

// TestSlowChild: a child that reads slowly gets all that it was sent.
func TestSlowChild(t *testing.T) {
	r := start(t, "slow", Options{})
	until(t, func() bool { r.Take(some(1)); return r.Counts().Sent > 0 })
	for range 50 {
		r.Take(some(100_000))
	}
	if got := r.ended(t); r.Counts().Sent != 51 || len(got) != 1 {
		t.Errorf("printed %q, %+v", got, r.Counts())
	}
}
