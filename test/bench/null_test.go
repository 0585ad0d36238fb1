package bench

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
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

// nullServer acknowledges every write to data tables without looking at it, and passes all other calls on: the
// daemon's own speed.
func nullServer(b *testing.B, behind string) string {
	b.Helper()
	conn, err := grpc.NewClient(behind, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(256<<20), grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(
		func(_ any, s grpc.ServerStream) error { return serveNothing(conn, s) }))
	go func() { _ = srv.Serve(l) }()
	b.Cleanup(func() {
		srv.Stop()
		_ = conn.Close()
	})
	return l.Addr().String()
}

func serveNothing(behind *grpc.ClientConn, s grpc.ServerStream) error {
	var req []byte
	if err := s.RecvMsg(&req); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(s)
	// The table's name is the first field of a request.
	if method == btpb.Bigtable_CheckAndMutateRow_FullMethodName && !bytes.Contains(req[:min(100, len(req))], []byte("/tailrace_state")) {
		return s.SendMsg(new([]byte))
	}
	next, err := behind.NewStream(s.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := errors.Join(next.SendMsg(&req), next.CloseSend()); err != nil {
		return err
	}
	for {
		var reply []byte
		err := next.RecvMsg(&reply)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.SendMsg(&reply); err != nil {
			return err
		}
	}
}
