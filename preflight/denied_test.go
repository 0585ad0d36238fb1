package preflight

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/config"
)

// TestMissingPermissionIsReportedOnce however many tables it keeps from being compared, and with
// the role that has it.
func TestMissingPermissionIsReportedOnce(t *testing.T) {
	s := newStage(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.PermissionDenied, "no")
	}))
	go server.Serve(ln)
	t.Cleanup(server.Stop)
	s.cfg.Bigtable.Endpoint = ln.Addr().String()
	twin := s.cfg.Tables[0]
	twin.Path = "tables[1]"
	s.cfg.Tables = append([]config.Table{s.cfg.Tables[0]}, twin)

	_, r := s.run(t, Options{Sample: 10})
	n := 0
	for _, p := range r.Environment {
		if p.Code != "stored_state" {
			continue
		}
		if n++; p.Path != "bigtable" || !strings.Contains(p.Hint, "roles/bigtable.user") {
			t.Errorf("%+v", p)
		}
	}
	if n != 1 {
		t.Errorf("reported %d times: %+v", n, r.Environment)
	}
}
