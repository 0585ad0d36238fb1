package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Front passes requests on. It is made by New and serves while Run does.
type Front struct {
	o        Options
	services []*service
	listener net.Listener
	queue    *queue

	refused, unreached atomic.Int64

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool
}

// New checks the options and listens. A request that comes before Run waits for it. If another
// process listens on the same address, the error is of the system; on Linux another front is no
// obstacle: both get connections until one of them ends.
func New(ctx context.Context, o Options) (*Front, error) {
	services, err := o.check()
	if err != nil {
		return nil, fmt.Errorf("configure front: %w", err)
	}
	listen := net.ListenConfig{Control: shareAddress}
	l, err := listen.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for applications: %w", err)
	}
	return &Front{
		o: o, services: services, listener: l, queue: newQueue(&o), conns: map[*conn]struct{}{},
	}, nil
}

// Addr returns the address on which the front listens.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// Counts returns what the front has done until now.
func (f *Front) Counts() Counts {
	f.queue.mu.Lock()
	c := f.queue.counts
	f.queue.mu.Unlock()
	c.Refused, c.Unreached = f.refused.Load(), f.unreached.Load()
	f.mu.Lock()
	c.Connections = int64(len(f.conns))
	f.mu.Unlock()
	return c
}

// lastAccepts is how long connections are still accepted when the front ends. The system has given
// them to this listener, and would reset them with it.
const lastAccepts = 50 * time.Millisecond

// Run serves until ctx ends. Then it accepts no more connections, waits for open exchanges, at most
// Options.Drain, and for a call of Tap, and returns nil. Another error is of the listener.
func (f *Front) Run(ctx context.Context) error {
	var taps, conns sync.WaitGroup
	tapping, endTaps := context.WithCancel(context.WithoutCancel(ctx))
	defer taps.Wait()
	defer endTaps()
	if f.o.Tap != nil {
		taps.Go(func() { f.queue.run(tapping, f.o.Tap) })
	}
	stop := context.AfterFunc(ctx, f.drain)
	defer stop()
	err := f.accept(ctx, &conns)
	_ = f.listener.Close()
	if err != nil {
		f.drain()
	}
	cut := time.AfterFunc(f.o.Drain, f.cutAll)
	defer cut.Stop()
	conns.Wait()
	return err
}

// accept serves connections until the front drains.
func (f *Front) accept(ctx context.Context, conns *sync.WaitGroup) error {
	for {
		client, err := f.listener.Accept()
		switch {
		case err == nil:
			c := newConn(f, client)
			conns.Go(func() { c.serve(context.WithoutCancel(ctx)) })
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case isPassing(err):
			pause := time.NewTimer(50 * time.Millisecond) // until a file is closed
			<-pause.C
		default:
			return fmt.Errorf("accept connections: %w", err)
		}
	}
}

// drain ends each connection with its exchange, or with the next one if that begins soon.
func (f *Front) drain() {
	if l, ok := f.listener.(*net.TCPListener); ok {
		_ = l.SetDeadline(time.Now().Add(lastAccepts)) // fails on a closed listener, which accepts nothing
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	for c := range f.conns {
		c.drain()
	}
}

// cutAll closes all connections.
func (f *Front) cutAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.cut()
	}
}
