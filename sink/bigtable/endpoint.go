package bigtable

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/api/transport"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"

	"github.com/tailrace-cdc/replicator/googleauth"
	"github.com/tailrace-cdc/replicator/host"
)

// googleUniverse is the domain of the service's hosts in Google Cloud. Sovereign clouds have others
// (https://google.aip.dev/auth/4117).
const googleUniverse = "googleapis.com"

// server is a host that serves one API of Bigtable.
type server struct {
	addr    string
	plain   bool // plain text without credentials, as emulators are spoken to
	service bool // the service's own host in Google's universe, which Google's clients find by themselves
	admin   bool // of tables and app profiles
}

// scopes are what a token for the server must permit: the rest is a matter of the identity's roles.
func (s server) scopes() []string {
	if s.admin {
		return []string{bigtable.AdminScope, bigtable.InstanceAdminScope, cloudPlatform}
	}
	return []string{bigtable.Scope}
}

// cloudPlatform is the scope that Google's own clients of the administration ask for beside theirs.
const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// dataServer returns the server of reads and writes.
func (o *Options) dataServer() server {
	if addr := os.Getenv("BIGTABLE_EMULATOR_HOST"); o.Endpoint == "" && addr != "" {
		return server{addr: host.WithoutUser(addr), plain: true}
	}
	return o.server(o.Endpoint, "bigtable.")
}

// adminServer returns the server of tables and app profiles.
func (o *Options) adminServer() server {
	if s := o.dataServer(); s.plain && o.AdminEndpoint == "" {
		return s
	}
	s := o.server(o.AdminEndpoint, "bigtableadmin.")
	s.admin = true
	return s
}

func (o *Options) server(endpoint, service string) server {
	if endpoint == "" {
		return server{addr: service + o.Universe + ":443", service: o.Universe == googleUniverse && o.CA == ""}
	}
	addr, secure, err := host.GRPC(endpoint, o.TLS)
	if err != nil {
		addr = host.WithoutUser(endpoint) // dialing it fails, with a message that names it
	}
	return server{addr: addr, plain: !secure}
}

// dialer returns a function that opens a connection to a server. It connects lazily, so a service
// that is unavailable is not an error here.
func (o *Options) dialer(ctx context.Context, to server, watch *stallWatch) (func() (*grpc.ClientConn, error), error) {
	if to.plain {
		return func() (*grpc.ClientConn, error) {
			opts := append(dialOptions(), grpc.WithTransportCredentials(wakeful{insecure.NewCredentials(), watch}))
			return grpc.NewClient("passthrough:///"+to.addr, opts...)
		}, nil
	}
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	scopes, universe := option.WithScopes(to.scopes()...), option.WithUniverseDomain(o.Universe)
	identity, err := googleauth.Options(ctx, to.scopes()...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredentials, err)
	}
	creds, err := transport.Creds(ctx, append(identity, scopes, universe)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredentials, err)
	}
	opts := []option.ClientOption{option.WithEndpoint(to.addr), scopes, universe, option.WithCredentials(creds)}
	// Google's library would make the same, with a client certificate or S2A where the environment
	// has one. Only the mTLS endpoint requires them, and it is not dialed here.
	secure := wakeful{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}), watch}
	for _, d := range append(dialOptions(), grpc.WithTransportCredentials(secure)) {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	ctx = context.WithoutCancel(ctx)
	return func() (*grpc.ClientConn, error) { return gtransport.Dial(ctx, opts...) }, nil
}

// roots returns the authorities to trust; nil for those of the system.
func (o *Options) roots() (*x509.CertPool, error) {
	if o.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthority, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s holds no certificate in PEM", errAuthority, o.CA)
	}
	return pool, nil
}

const (
	userAgent  = "tailrace-replicator"
	maxMessage = 256 << 20 // the service's own limit; gRPC's default of 4 MiB would hide a large row
)

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
