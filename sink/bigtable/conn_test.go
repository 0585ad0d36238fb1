package bigtable

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// TestConnectionsFollowTheCallsInFlight: one for fifty calls. A connection that is needed no more is
// closed behind its last call, and a bound that goes up and down opens none each time.
func TestConnectionsFollowTheCallsInFlight(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	server := grpc.NewServer(grpc.MaxConcurrentStreams(100), grpc.UnknownServiceHandler(
		func(_ any, s grpc.ServerStream) error {
			entered <- struct{}{}
			<-leave
			return s.SendMsg(&emptypb.Empty{})
		}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	var dialed []*grpc.ClientConn
	p, err := newPool(4, func() (*grpc.ClientConn, error) {
		c, err := grpc.NewClient("passthrough:///"+listener.Addr().String(),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		dialed = append(dialed, c)
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ calls, want int }{{64, 4}, {200, 4}, {201, 5}, {2048, 41}, {1100, 41}, {2048, 41}} {
		if err := p.resize(c.calls); err != nil || p.size() != c.want {
			t.Errorf("%d connections for %d calls, want %d: %v", p.size(), c.calls, c.want, err)
		}
	}
	var calls sync.WaitGroup
	ended := make(chan struct{}, 82)
	for range 82 { // two on each
		calls.Go(func() {
			defer func() { ended <- struct{}{} }()
			if err := p.Invoke(context.Background(), "/s/m", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	if err := p.resize(100); err != nil || p.size() != 4 {
		t.Errorf("%d connections for 100 calls: %v", p.size(), err)
	}
	for i, c := range dialed {
		if c.GetState() == connectivity.Shutdown {
			t.Errorf("connection %d is closed with a call in flight", i)
		}
	}
	for range 41 { // of two on a connection, the other one goes on
		leave <- struct{}{}
		<-ended
	}
	close(leave)
	calls.Wait()
	for i, c := range dialed {
		if closed := c.GetState() == connectivity.Shutdown; closed != (i >= 4) {
			t.Errorf("connection %d: closed %t", i, closed)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
