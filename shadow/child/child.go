// Package child runs the engine of a shadow run as a process of its own, gives it exchanges, and
// starts it again when it dies. Whatever the engine does costs exchanges, and nothing else.
//
//	c := child.New(child.Options{Path: self, Args: []string{"shadow", "engine"}, Line: log})
//	// front.Options{Tap: c.Take}, and in a goroutine of its own:
//	err := c.Run(ctx) // until ctx ends and the process has ended
//
// The process reads frames of package exchange from its input, and must end with it. The input also
// ends when this process is killed.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/shadow/exchange"
)

// Options configure a child. Path is required.
type Options struct {
	Path string
	Args []string
	Env  []string // nil: that of this process

	Line   func(line string) // receives each line of the process's standard error; nil: they are lost
	Output func(line string) // the same of its standard output
	// Exited is called when the process has ended by itself or with an error, or cannot be started. nil:
	// it is not called.
	Exited func(err error)

	Pause time.Duration // before the process is started again: 1s; doubled, up to 64 times, while it dies young
	Grace time.Duration // for the process to end when ctx does: 10s. Then it is killed
}

// Counts are what a child was given.
type Counts struct {
	Sent   int64 // exchanges written to the pipe; a process that dies has not read the last of them
	Lost   int64 // exchanges that came while no process ran, or while one died
	Starts int64 // processes started
}

// Child is a process and its pipe. It is made by New.
type Child struct {
	o                  Options
	sent, lost, starts atomic.Int64

	begun chan struct{} // closed when a process was started, or could not be
	begin sync.Once     // closes it

	writing sync.Mutex // held while a frame is written
	frame   []byte

	mu   sync.Mutex
	pipe *os.File // to the process; nil: none runs
	kill func()   // ends the process that was started last
}

// New returns a child, which Run starts.
func New(o Options) *Child {
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Exited == nil {
		o.Exited = func(error) {}
	}
	return &Child{o: o, begun: make(chan struct{}), kill: func() {}}
}

// Counts returns what the child was given until now.
func (c *Child) Counts() Counts {
	return Counts{Sent: c.sent.Load(), Lost: c.lost.Load(), Starts: c.starts.Load()}
}

// Begun is closed when the first process was started, or could not be: what Take gets before is lost.
func (c *Child) Begun() <-chan struct{} { return c.begun }

// Take writes an exchange to the pipe. It waits while the pipe is full, and no longer than the
// process or Run lasts. While no process runs, the exchange is lost.
func (c *Child) Take(x *exchange.Exchange) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	pipe := c.pipe
	c.mu.Unlock()
	if pipe == nil {
		c.lost.Add(1)
		return
	}
	c.frame = exchange.Append(c.frame[:0], x)
	if _, err := pipe.Write(c.frame); err != nil {
		c.lost.Add(1)
		c.closePipe(pipe) // what follows a part of a frame cannot be read
		return
	}
	c.sent.Add(1)
}

// closePipe closes the pipe to one process. A write that waits returns.
func (c *Child) closePipe(pipe *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = pipe.Close() // again, perhaps
	if c.pipe == pipe {
		c.pipe = nil
	}
}

// Kill ends the process at once. Run starts it again unless its context has ended.
func (c *Child) Kill() {
	c.mu.Lock()
	kill := c.kill
	c.mu.Unlock()
	kill()
}

// Run runs the process, and starts it again when it ends, until ctx ends. Then it closes the pipe
// and waits for the process, at most Options.Grace. It returns nil.
func (c *Child) Run(ctx context.Context) error {
	pause := c.o.Pause
	for ctx.Err() == nil {
		began := time.Now()
		if err := c.runOnce(ctx); err != nil || ctx.Err() == nil { // else it has ended as it was to
			c.o.Exited(err)
		}
		if time.Since(began) > 64*c.o.Pause {
			pause = c.o.Pause
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
		case <-again.C:
		}
		pause = min(2*pause, 64*c.o.Pause)
	}
	return nil
}

// runOnce runs one process until it ends.
func (c *Child) runOnce(ctx context.Context) error {
	alive, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	cmd := exec.CommandContext(alive, c.o.Path, c.o.Args...)
	cmd.Env = c.o.Env
	in, pipe, err := os.Pipe()
	if err != nil {
		c.begin.Do(func() { close(c.begun) })
		return fmt.Errorf("open pipe: %w", err)
	}
	defer in.Close()
	cmd.Stdin = in
	var lines printed
	err = errors.Join(lines.open(&cmd.Stderr, c.o.Line), lines.open(&cmd.Stdout, c.o.Output))
	if err == nil {
		err = cmd.Start()
	}
	_ = in.Close() // else a write would wait for a process that has ended
	lines.started()
	if err != nil {
		c.begin.Do(func() { close(c.begun) })
		_ = pipe.Close()
		lines.wait()
		return fmt.Errorf("start engine: %w", err)
	}
	c.starts.Add(1)
	c.mu.Lock()
	c.pipe, c.kill = pipe, kill
	c.mu.Unlock()
	c.begin.Do(func() { close(c.begun) })
	stop := context.AfterFunc(ctx, func() {
		c.closePipe(pipe)
		time.AfterFunc(c.o.Grace, kill)
	})
	defer stop()
	err = cmd.Wait()
	c.closePipe(pipe)
	lines.wait()
	if err != nil {
		return fmt.Errorf("run engine: %w", err)
	}
	return nil
}
