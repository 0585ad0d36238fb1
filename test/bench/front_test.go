package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"golang.org/x/time/rate"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
)

// raw is a codec that takes messages as they are. An empty CheckAndMutateRowResponse has no bytes.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// front stands before the emulator. It counts the conditional writes of data tables and passes them
// on; or, as a null server, it acknowledges them at once and only notes the cells, which is the
// cheapest server that can be read back.
type front struct {
	address string
	null    bool
	behind  *grpc.ClientConn
	calls   atomic.Int64
	bulked  atomic.Int64  // rows that a null server has got in calls of several
	takes   *rate.Limiter // of the network's rate
	refused atomic.Int64
	network network // before a null server
	forgets bool    // a null server does not note the cells
	// acknowledged gets the items of putSteadily as a null server acknowledges them; nil: it does
	// not. It must have room for all of them.
	acknowledged chan acknowledged
	first        atomic.Pointer[time.Time] // when the first of these calls came; a benchmark starts again

	// With keepReads, the same read of a data table gets the same replies again, without the
	// emulator.
	keepReads bool
	reads     sync.Map // [][]byte by method and request

	mu     sync.Mutex
	noted  [][]byte                                // requests
	tables map[string]map[string]map[string][]byte // table, row, "family:qualifier"
}

// network is what lies between a client and a service that is not on its machine, and how much that
// service takes.
type network struct {
	latency time.Duration // of an acknowledgement; half of them take no longer
	tls     bool          // as the services are reached, DynamoDB too
	jitter  bool          // one in a hundred takes five times the latency or longer
	rate    float64       // writes a second above which the service refuses them; 0: it takes all
}

// delay returns how long an acknowledgement takes. With jitter it is log-normal.
func (n network) delay() time.Duration {
	if !n.jitter {
		return n.latency
	}
	const p99 = 2.326 // standard deviations
	return time.Duration(float64(n.latency) * math.Exp(rand.NormFloat64()*math.Log(5)/p99))
}

func (n network) limiter() *rate.Limiter {
	if n.rate == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(n.rate), int(n.rate/20))
}

// serveFront serves as many calls at once on a connection as Bigtable does.
func serveFront(b *testing.B, behind string, null bool, n network) *front {
	return serveFrontAt(b, behind, null, n, func(l net.Listener) net.Listener { return l })
}

// serveFrontAt is serveFront on what listen makes of a listener.
func serveFrontAt(b *testing.B, behind string, null bool, n network, listen func(net.Listener) net.Listener) *front {
	b.Helper()
	conn, err := grpc.NewClient(behind, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	f := &front{address: l.Addr().String(), null: null, behind: conn, tables: map[string]map[string]map[string][]byte{},
		network: n, takes: n.limiter()}
	srv := grpc.NewServer(grpc.MaxConcurrentStreams(100), grpc.MaxRecvMsgSize(256<<20),
		grpc.ForceServerCodecV2(raw{}),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return f.serve(s) }))
	go func() { _ = srv.Serve(listen(l)) }()
	b.Cleanup(func() {
		srv.Stop()
		_ = conn.Close()
	})
	return f
}

func (f *front) serve(s grpc.ServerStream) error {
	var req []byte
	if err := s.RecvMsg(&req); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(s)
	// The table's name is the first field of a request.
	if method == btpb.Bigtable_CheckAndMutateRow_FullMethodName &&
		!bytes.Contains(req[:min(100, len(req))], []byte("/tailrace_state")) {
		f.calls.Add(1)
		if f.first.Load() == nil {
			now := time.Now()
			f.first.CompareAndSwap(nil, &now)
		}
		if f.null {
			if err := f.acknowledge(req); err != nil {
				return err
			}
			return s.SendMsg(new([]byte))
		}
	}
	if f.null && method == btpb.Bigtable_MutateRows_FullMethodName {
		return f.acknowledgeRows(s, req)
	}
	read := method + string(req)
	if kept, ok := f.reads.Load(read); ok {
		return sendAll(s, kept.([][]byte))
	}
	replies, err := f.pass(s, method, req)
	if err == nil && f.keepReads && !strings.Contains(read[:min(150, len(read))], "/tailrace_state") &&
		(method == btpb.Bigtable_ReadRows_FullMethodName || method == btpb.Bigtable_SampleRowKeys_FullMethodName) {
		f.reads.Store(read, replies)
	}
	return err
}

func sendAll(s grpc.ServerStream, replies [][]byte) error {
	for i := range replies {
		if err := s.SendMsg(&replies[i]); err != nil {
			return err
		}
	}
	return nil
}

// pass passes a call on, and its replies back. It returns them where they are to be kept.
func (f *front) pass(s grpc.ServerStream, method string, req []byte) (replies [][]byte, err error) {
	next, err := f.behind.NewStream(s.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(next.SendMsg(&req), next.CloseSend()); err != nil {
		return nil, err
	}
	for {
		var reply []byte
		err := next.RecvMsg(&reply)
		if errors.Is(err, io.EOF) {
			return replies, nil
		}
		if err != nil {
			return nil, err
		}
		if f.keepReads {
			replies = append(replies, reply)
		}
		if err := s.SendMsg(&reply); err != nil {
			return nil, err
		}
	}
}

// acknowledge notes a write, and returns when it may be acknowledged, or that it is refused.
func (f *front) acknowledge(req []byte) error {
	if !f.takes.Allow() {
		f.refused.Add(1)
		return status.Error(codes.ResourceExhausted, "too many writes")
	}
	if !f.forgets {
		f.note(req)
	}
	if d := f.network.delay(); d > 0 {
		<-time.After(d)
	}
	if f.acknowledged != nil {
		f.noteLag(req)
	}
	return nil
}

// acknowledgeRows acknowledges a call of several rows. It notes none of them: the daemon makes no such call.
func (f *front) acknowledgeRows(s grpc.ServerStream, req []byte) error {
	const entries = 2 // field of MutateRowsRequest
	var reply btpb.MutateRowsResponse
	for len(req) > 0 {
		field, kind, n := protowire.ConsumeTag(req)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if field == entries {
			entry := &btpb.MutateRowsResponse_Entry{Index: int64(len(reply.Entries)), Status: &spb.Status{}}
			reply.Entries = append(reply.Entries, entry)
		}
		size := protowire.ConsumeFieldValue(field, kind, req[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		req = req[n+size:]
	}
	f.bulked.Add(int64(len(reply.Entries)))
	text, err := proto.Marshal(&reply)
	if err != nil {
		return err
	}
	if d := f.network.delay(); d > 0 {
		<-time.After(d)
	}
	return s.SendMsg(&text)
}

// note keeps a write for rows. It is decoded later: that would take more time than the rest of this
// server.
func (f *front) note(req []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noted = append(f.noted, req)
}

// carryOut carries the noted writes out as if no predicate had matched, without versions.
func (f *front) carryOut() error {
	for i, req := range f.noted {
		f.noted[i] = nil
		if err := f.write(req); err != nil {
			return err
		}
	}
	f.noted = nil
	return nil
}

func (f *front) write(req []byte) error {
	var in btpb.CheckAndMutateRowRequest
	if err := proto.Unmarshal(req, &in); err != nil {
		return err
	}
	table, row := path.Base(in.TableName), string(in.RowKey)
	if f.tables[table] == nil {
		f.tables[table] = map[string]map[string][]byte{}
	}
	cells := f.tables[table][row]
	if cells == nil {
		cells = map[string][]byte{}
		f.tables[table][row] = cells
	}
	for _, m := range in.FalseMutations {
		switch m := m.Mutation.(type) {
		case *btpb.Mutation_DeleteFromRow_:
			clear(cells)
		case *btpb.Mutation_DeleteFromColumn_:
			delete(cells, m.DeleteFromColumn.FamilyName+":"+string(m.DeleteFromColumn.ColumnQualifier))
		case *btpb.Mutation_SetCell_:
			if f := m.SetCell.FamilyName; f != transform.LiveFamily && f != transform.DeadFamily {
				cells[f+":"+string(m.SetCell.ColumnQualifier)] = m.SetCell.Value
			}
		default:
			return fmt.Errorf("note a write: a mutation %T", m)
		}
	}
	return nil
}

// rows calls back with what a null server has noted of a table, in key order.
func (f *front) rows(_ context.Context, table string, each func(*bigtable.Row) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.carryOut(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(f.tables[table])) {
		row := bigtable.Row{Key: []byte(key)}
		for _, name := range slices.Sorted(maps.Keys(f.tables[table][key])) {
			family, qualifier, _ := strings.Cut(name, ":")
			row.Cells = append(row.Cells, bigtable.Cell{
				Family: family, Qualifier: []byte(qualifier), Value: f.tables[table][key][name],
			})
		}
		if err := each(&row); err != nil {
			return err
		}
	}
	return nil
}
