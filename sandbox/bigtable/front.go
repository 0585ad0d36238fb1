package bigtable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable/bttest"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// maxMessage is the service's limit for one message; the emulator's default is 4 MiB.
const maxMessage = 256 << 20

// Options configures a front.
type Options struct {
	Addr  string       // host:port; port 0 picks one
	Seed  uint64       // of random faults and orders
	Clock *clock.Clock // of garbage collection; nil: the machine's
}

// Front is a running emulator with its front. Faults are injected through Faults.
type Front struct {
	Faults *Faults

	clock *clock.Clock
	srv   *bttest.Server
	conn  *grpc.ClientConn // to the emulator, for the front's own calls
	pass  string           // header value that marks the front's own calls
	late  errgroup.Group   // writes that are applied after their callers got an error
	ctx   context.Context  // ends when the front closes
	stop  context.CancelFunc

	writes atomic.Uint64 // calls that may have changed something

	rndMu sync.Mutex
	rnd   *rand.Rand

	mu     sync.RWMutex
	tables map[string]*table // by full name
}

// Open starts an emulator on an address. The caller closes it.
func Open(o Options) (*Front, error) {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	f := &Front{
		clock: o.Clock, tables: map[string]*table{},
		rnd: rand.New(rand.NewPCG(o.Seed, 3)),
	}
	f.pass = fmt.Sprintf("%016x", rand.Uint64())
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.Faults = newFaults(f)
	srv, err := bttest.NewServer(o.Addr,
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.UnaryInterceptor(f.unary), grpc.StreamInterceptor(f.stream))
	if err != nil {
		return nil, fmt.Errorf("listen for bigtable: %w", err)
	}
	f.srv = srv
	f.conn, err = grpc.NewClient(srv.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		srv.Close()
		return nil, fmt.Errorf("dial bigtable: %w", err)
	}
	return f, nil
}

// Addr returns the address of the emulator: the value of BIGTABLE_EMULATOR_HOST.
func (f *Front) Addr() string { return f.srv.Addr }

// Close ends all calls and waits for them. Late writes that are not yet applied are dropped.
func (f *Front) Close() error {
	f.stop()
	err := f.conn.Close()
	f.srv.Close()
	return errors.Join(err, f.late.Wait())
}

// Writes returns the number of calls that may have changed something.
func (f *Front) Writes() uint64 { return f.writes.Load() }
