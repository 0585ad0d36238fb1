package test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// point is a moment in the life of a daemon that its servers can observe: a call that has arrived
// and is not carried out yet, or one that is carried out and whose reply is not sent yet.
type point struct {
	op    string // DynamoDB's or Bigtable's name of the call
	table string // of CheckAndMutateRow: Bigtable's table
	done  bool   // carried out
	data  bool   // of GetRecords: a reply with records
}

// The points at which tests kill the daemon. A first start passes the first five in this order.
var (
	logMade     = point{op: "CheckAndMutateRow", table: "tailrace_state"}
	rowMade     = point{op: "CheckAndMutateRow", table: "tailrace_state", done: true}
	claimed     = point{op: "DescribeStream"}
	started     = logMade // its last occurrence: the version reservation is about to be written
	issued      = rowMade
	pageRead    = point{op: "GetRecords", done: true, data: true}
	beforeWrite = point{op: "CheckAndMutateRow", table: "orders"}
	afterWrite  = point{op: "CheckAndMutateRow", table: "orders", done: true}
)

// trap is hit by the n-th call that passes its point after the trap was set. A holding trap blocks
// this call and, unless one is set, all later ones, until the caller is dead or the trap is opened.
type trap struct {
	at   point
	left int
	hold bool
	one  bool
	hit  chan struct{}
	free chan struct{}
}

func (p *trap) open() {
	select {
	case <-p.free:
	default:
		close(p.free)
	}
}

// passed reports whether the trap was hit.
func (p *trap) passed() bool {
	select {
	case <-p.hit:
		return true
	default:
		return false
	}
}

// traps holds the traps of one world.
type traps struct {
	mu   sync.Mutex
	all  []*trap
	hook func(point) // called at every point; nil: none
	shim *shim       // which gives wrong answers; nil: none

	chances *chances // that are counted; nil: none

	progress atomic.Uint64 // calls so far that were not empty polls; renews the deadlines of waits
}

func (t *traps) set(at point, n int, hold bool) *trap {
	return t.add(&trap{at: at, left: n, hold: hold})
}

func (t *traps) add(p *trap) *trap {
	p.hit, p.free = make(chan struct{}), make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, p)
	return p
}

// openAll releases every held call.
func (t *traps) openAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.all {
		p.open()
	}
}

// watch has f called at every point. f must not block.
func (t *traps) watch(f func(point)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook = f
}

// pass counts a call at a point and blocks while a trap holds it. It returns an error when the
// caller is dead.
func (t *traps) pass(ctx context.Context, at point) error {
	if at.op != "GetRecords" || at.data {
		t.progress.Add(1)
	}
	t.mu.Lock()
	var holding []*trap
	for _, p := range t.all {
		if p.at != at {
			continue
		}
		if p.left--; p.left == 0 {
			close(p.hit)
		}
		if p.hold && (p.left == 0 || p.left < 0 && !p.one) {
			holding = append(holding, p)
		}
	}
	hook := t.hook
	t.mu.Unlock()
	if hook != nil {
		hook(at)
	}
	for _, p := range holding {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.free:
		}
	}
	return nil
}

// untilHit waits until a trap is hit. Unlike Watch.Until it does not poll, so that the kill that
// follows meets the moment of the hit. It fails the test when the daemon ends before.
func (d *daemon) untilHit(p *trap) {
	d.w.t.Helper()
	began, idle, moved := time.Now(), time.Duration(0), d.w.traps.progress.Load()
	for idle < patience && time.Since(began) < longest {
		select {
		case <-p.hit:
			return
		case <-d.ended:
			d.w.t.Fatalf("the daemon ended before %+v: %v\n%s", p.at, d.cmd.ProcessState, tail(d.output.String(), 20))
		case <-time.After(time.Second):
			idle += time.Second
		}
		if m := d.w.traps.progress.Load(); m != moved {
			idle, moved = 0, m
		}
	}
	d.w.traps.mu.Lock()
	left := p.left
	d.w.traps.mu.Unlock()
	d.w.t.Fatalf("the daemon never reached %+v, %d more calls of it were to come; state: %v", p.at, left, d.state())
}

// httpTap is a proxy between the daemon and DynamoDB whose calls pass the traps.
type httpTap struct{ url string }

func newHTTPTap(t *testing.T, traps *traps, next http.Handler) *httpTap {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if traps.pass(r.Context(), point{op: op}) != nil {
			return
		}
		reply := httptest.NewRecorder()
		next.ServeHTTP(reply, r)
		data := strings.Contains(reply.Body.String(), `"SequenceNumber"`)
		if traps.pass(r.Context(), point{op: op, done: true, data: op == "GetRecords" && data}) != nil {
			return
		}
		maps.Copy(rw.Header(), reply.Header())
		rw.WriteHeader(reply.Code)
		_, _ = rw.Write(reply.Body.Bytes()) // the reader may be dead, on purpose
	}))
	t.Cleanup(func() {
		traps.openAll() // a call that is still held would keep the server from closing
		server.Close()
	})
	return &httpTap{url: server.URL}
}

// grpcTap is a proxy between the daemon and Bigtable whose calls pass the traps. It forwards
// messages as bytes.
type grpcTap struct {
	addr  string
	next  *grpc.ClientConn
	traps *traps
}

func newGRPCTap(t *testing.T, traps *traps, behind string) *grpcTap {
	t.Helper()
	const large = 256 << 20
	next, err := grpc.NewClient(behind, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(large),
			grpc.MaxCallSendMsgSize(large)))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &grpcTap{addr: ln.Addr().String(), next: next, traps: traps}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(large),
		grpc.UnknownServiceHandler(tap.handle))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ln)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
		_ = next.Close()
	})
	return tap
}

// raw is a message that is forwarded without decoding it.
type raw []byte

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*raw), nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*raw) = append((*v.(*raw))[:0], data...)
	return nil
}
func (rawCodec) Name() string { return "raw" }

// handle forwards one call. Its replies pass the traps before they are sent.
func (g *grpcTap) handle(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	var request raw
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	at := pointOf(method, request)
	if err := g.traps.pass(in.Context(), at); err != nil {
		return err
	}
	var afterwards error // what is answered although the call was carried out
	if g.traps.shim != nil {
		carried, emptied, err := g.traps.shim.grpc(in.Context(), bigtableCall(method, request))
		switch {
		case emptied && at.op == "ReadRows":
			return nil
		case emptied:
			return in.SendMsg(&raw{})
		case !carried && err != nil:
			return err
		}
		afterwards = err
	}
	md, _ := metadata.FromIncomingContext(in.Context())
	// A call that has begun is carried out even when its caller dies, as Bigtable does.
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(context.WithoutCancel(in.Context()), md), patience)
	defer cancel()
	out, err := g.next.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	if err := errors.Join(out.SendMsg(&request), out.CloseSend()); err != nil {
		return err
	}
	at.done = true
	for first := true; ; first = false {
		var reply raw
		switch err := out.RecvMsg(&reply); {
		case errors.Is(err, io.EOF):
			return afterwards
		case err != nil:
			return err
		case afterwards != nil:
			continue
		}
		if first {
			g.noteGuard(at, reply)
			if err := g.traps.pass(in.Context(), at); err != nil {
				return err
			}
		}
		if err := in.SendMsg(&reply); err != nil {
			return err
		}
	}
}

// noteGuard counts a write that its guard refuses.
func (g *grpcTap) noteGuard(at point, reply raw) {
	var r btpb.CheckAndMutateRowResponse
	if g.traps.chances != nil && at.op == "CheckAndMutateRow" && proto.Unmarshal(reply, &r) == nil {
		g.traps.chances.ReachedIf(r.PredicateMatched, guardRefuses)
	}
}

// pointOf returns the point of a call of Bigtable before it is carried out.
func pointOf(method string, request raw) point {
	at := point{op: path.Base(method)}
	var r btpb.CheckAndMutateRowRequest
	if at.op == "CheckAndMutateRow" && proto.Unmarshal(request, &r) == nil {
		at.table = path.Base(r.TableName)
	}
	return at
}
