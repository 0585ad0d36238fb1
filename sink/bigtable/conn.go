package bigtable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"
)

// callsPerConn is how many calls may be in flight for each connection. The service takes 100 at
// once on one, and advises 10 to 50
// (https://cloud.google.com/bigtable/docs/configure-connection-pools).
const callsPerConn = 50

// pool is as many connections as the calls that may be in flight need. Unary calls use them in
// turn; streams use the first one, which stays open.
type pool struct {
	dial  func() (*grpc.ClientConn, error)
	least int

	mu    sync.Mutex // covers what follows
	conns []*member
	next  int
}

// member is a connection of a pool.
type member struct {
	*grpc.ClientConn
	calls   int  // in flight; the pool's mutex covers it
	retired bool // it closes with the end of its last call
}

// dial opens the connections for writes. They connect lazily, so a service that is unavailable is
// not an error here.
func dial(ctx context.Context, o Options, watch *stallWatch) (*pool, error) {
	open, err := o.dialer(ctx, o.dataServer(), watch)
	if err != nil {
		return nil, err
	}
	return newPool(o.Connections, open)
}

// newPool opens the least connections of a pool.
func newPool(least int, dial func() (*grpc.ClientConn, error)) (*pool, error) {
	p := &pool{dial: dial, least: least}
	if err := p.resize(0); err != nil {
		return nil, errors.Join(fmt.Errorf("dial bigtable: %w", err), p.Close())
	}
	return p, nil
}

// resize opens and closes connections for so many calls in flight. A pool that is twice as large as
// it needs to be shrinks: a bound that goes up and down opens no connection each time.
func (p *pool) resize(calls int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := max(p.least, (calls+callsPerConn-1)/callsPerConn)
	for len(p.conns) < want {
		conn, err := p.dial()
		if err != nil {
			return err
		}
		p.conns = append(p.conns, &member{ClientConn: conn})
	}
	if len(p.conns) < 2*want {
		return nil
	}
	for _, m := range p.conns[want:] {
		if m.retired = true; m.calls == 0 {
			_ = m.Close()
		}
	}
	p.conns = slices.Clip(p.conns[:want])
	return nil
}

// Invoke implements grpc.ClientConnInterface.
func (p *pool) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	p.mu.Lock()
	p.next++
	m := p.conns[p.next%len(p.conns)]
	m.calls++
	p.mu.Unlock()
	err := m.Invoke(ctx, method, args, reply, opts...)
	p.mu.Lock()
	if m.calls--; m.retired && m.calls == 0 {
		_ = m.Close()
	}
	p.mu.Unlock()
	return err
}

// NewStream implements grpc.ClientConnInterface.
func (p *pool) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return p.first().NewStream(ctx, desc, method, opts...)
}

// first returns the connection that stays open.
func (p *pool) first() *grpc.ClientConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[0].ClientConn
}

// size returns how many connections calls use.
func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close closes the connections. It ends the calls in flight.
func (p *pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, m := range p.conns {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
