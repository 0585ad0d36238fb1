package bigtable

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

const (
	// stallLimit is for how long a process may stand still between the look that allows a call and
	// the sending of the call. An owner may write until eight seconds before another process can
	// claim its log, so what is sent two seconds late is still its own.
	stallLimit = 2 * time.Second
	// stallTick is the time between two observations that the process runs. A busy machine may
	// delay a few of them.
	stallTick = 250 * time.Millisecond
)

// errStalled ends the connections that were open while the process stood still.
var errStalled = errors.New("the process stood still before this was sent")

// stallWatch counts how often the process stood still: it was stopped, its machine was suspended,
// or nothing of it ran for longer than stallLimit.
//
// Rule 12: the look at the log that allows a call is made before the call is sent, and a process
// may be stopped in between. When it goes on, another owner may have raised the fence of a cutover,
// and the application may have deleted rows with their guards. So a call is sent only on a
// connection and with a look that are younger than the last stall. The moment between the last
// check and the system call that sends remains.
type stallWatch struct {
	now func() instant

	mu     sync.Mutex
	seen   instant // when the process was last observed to run
	stalls uint64
}

// instant is a moment on both clocks of the process. The monotonic one stands still while the
// machine is suspended, and the wall clock may be set.
type instant struct {
	wall time.Time
	mono time.Duration
}

func newStallWatch() *stallWatch {
	began := time.Now()
	w := &stallWatch{now: func() instant { now := time.Now(); return instant{now.Round(0), now.Sub(began)} }}
	w.seen = w.now()
	return w
}

// count returns how often the process stood still so far. The call itself is an observation:
// whichever goroutine runs first after a stall detects it.
func (w *stallWatch) count() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if max(now.wall.Sub(w.seen.wall), now.mono-w.seen.mono) > stallLimit {
		w.stalls++
	}
	w.seen = now
	return w.stalls
}

// run observes the process until ctx ends.
func (w *stallWatch) run(ctx context.Context) error {
	tick := time.NewTicker(stallTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.count()
		}
	}
}

// wakeful are transport credentials for connections that send nothing after a stall. (A dialer
// could wrap the connection as well, but with one gRPC ignores HTTPS_PROXY and sets no
// TCP_USER_TIMEOUT.)
type wakeful struct {
	credentials.TransportCredentials
	watch *stallWatch
}

// ClientHandshake implements credentials.TransportCredentials.
func (c wakeful) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	return c.TransportCredentials.ClientHandshake(ctx, authority, &wakefulConn{raw, c.watch, c.watch.count()})
}

// Clone implements credentials.TransportCredentials.
func (c wakeful) Clone() credentials.TransportCredentials {
	return wakeful{c.TransportCredentials.Clone(), c.watch}
}

// wakefulConn is a connection that ends at the first write after a stall. What is read from it
// counts.
type wakefulConn struct {
	net.Conn
	watch  *stallWatch
	stalls uint64 // when it was opened
}

func (c *wakefulConn) Write(b []byte) (int, error) {
	if c.watch.count() != c.stalls {
		return 0, errors.Join(errStalled, c.Close())
	}
	return c.Conn.Write(b)
}

// look is the look that allows one attempt of a call. As the call's credentials it is consulted
// each time that gRPC gives the call to a connection, also when gRPC repeats a call that the last
// connection did not send.
type look struct {
	watch  *stallWatch
	stalls uint64 // before the look
}

// GetRequestMetadata implements credentials.PerRPCCredentials. It adds nothing.
func (l *look) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if l.watch.count() != l.stalls {
		return nil, status.Error(codes.Unavailable, errStalled.Error())
	}
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (*look) RequireTransportSecurity() bool { return false }
