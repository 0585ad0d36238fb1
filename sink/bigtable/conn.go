package bigtable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"
)

const (
	service    = "bigtable.googleapis.com:443"
	userAgent  = "tailrace-replicator"
	maxMessage = 256 << 20 // the service's own limit; gRPC's default of 4 MiB would hide a large row
)

// connection is one or several connections to the service. Closing it ends the calls in flight.
type connection interface {
	grpc.ClientConnInterface
	Close() error
}

// dialOptions sets every time-out explicitly, because they bound how late a call may arrive, and
// tombstones must be kept for much longer than that. The keepalive's Timeout also becomes
// TCP_USER_TIMEOUT.
func dialOptions() []grpc.DialOption {
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = 100*time.Millisecond, 5*time.Second
	return []grpc.DialOption{
		grpc.WithUserAgent(userAgent),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 10 * time.Second}),
		grpc.WithIdleTimeout(30 * time.Minute),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessage), grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.ForceCodecV2(codec{encoding.GetCodecV2(proto.Name)})),
		// Calls are classified and repeated in one place (call.go), not a second time by gRPC.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	}
}

// dial opens the connections for writes. They connect lazily, so a service that is unavailable is
// not an error here.
func dial(ctx context.Context, o Options, watch *stallWatch) (connection, error) {
	if addr := o.emulator(); addr != "" {
		return dialEmulator(addr, o.Connections, watch)
	}
	opts := []option.ClientOption{
		option.WithEndpoint(service), option.WithScopes(bigtable.Scope), option.WithGRPCConnectionPool(o.Connections),
	}
	// Google's library would make the same, with a client certificate or S2A where the environment
	// has one. Only the mTLS endpoint requires them, and it is not dialed here.
	secure := wakeful{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), watch}
	for _, d := range append(dialOptions(), grpc.WithTransportCredentials(secure)) {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	pool, err := gtransport.DialPool(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("dial bigtable: %w", err)
	}
	return pool, nil
}

// pool uses several connections in turn.
type pool struct {
	conns []*grpc.ClientConn
	next  atomic.Uint32
}

// dialEmulator opens n connections in plain text.
func dialEmulator(addr string, n int, watch *stallWatch) (*pool, error) {
	p := &pool{}
	for range n {
		opts := append(dialOptions(), grpc.WithTransportCredentials(wakeful{insecure.NewCredentials(), watch}))
		conn, err := grpc.NewClient("passthrough:///"+addr, opts...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("dial %s: %w", addr, err), p.Close())
		}
		p.conns = append(p.conns, conn)
	}
	return p, nil
}

func (p *pool) pick() *grpc.ClientConn { return p.conns[int(p.next.Add(1))%len(p.conns)] }

func (p *pool) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return p.pick().Invoke(ctx, method, args, reply, opts...)
}

func (p *pool) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return p.pick().NewStream(ctx, desc, method, opts...)
}

func (p *pool) Close() error {
	var errs []error
	for _, c := range p.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
