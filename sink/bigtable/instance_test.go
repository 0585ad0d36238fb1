package bigtable

import (
	"context"
	"errors"
	"net"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// described answers about an instance, or refuses.
type described struct {
	btapb.UnimplementedBigtableInstanceAdminServer
	clusters, instance error
}

func (d *described) ListClusters(context.Context, *btapb.ListClustersRequest) (*btapb.ListClustersResponse, error) {
	return &btapb.ListClustersResponse{Clusters: []*btapb.Cluster{
		{Name: "projects/p/instances/i/clusters/a", ServeNodes: 3, DefaultStorageType: btapb.StorageType_SSD},
		{Name: "projects/p/instances/i/clusters/b", ServeNodes: 2, DefaultStorageType: btapb.StorageType_HDD},
	}}, d.clusters
}

func (d *described) GetInstance(context.Context, *btapb.GetInstanceRequest) (*btapb.Instance, error) {
	return &btapb.Instance{Name: "projects/p/instances/i", Edition: btapb.Instance_ENTERPRISE_PLUS}, d.instance
}

// TestInstanceIsDescribedAsFarAsPermitted: the clusters are what is charged.
func TestInstanceIsDescribedAsFarAsPermitted(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "no")
	clusters := []Cluster{{"a", 3, "SSD"}, {"b", 2, "HDD"}}
	for what, c := range map[string]struct {
		server described
		want   Instance
		code   codes.Code
	}{
		"all":         {described{}, Instance{"i", "enterprise_plus", clusters}, codes.OK},
		"no edition":  {described{instance: denied}, Instance{"i", "", clusters}, codes.OK},
		"nothing":     {described{clusters: denied}, Instance{Name: "i"}, codes.PermissionDenied},
		"an emulator": {described{clusters: status.Error(codes.Unimplemented, "")}, Instance{Name: "i"}, codes.Unknown},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		btapb.RegisterBigtableInstanceAdminServer(srv, &c.server)
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(srv.Stop)
		got, err := open(t, l.Addr().String()).DescribeInstance(t.Context())
		if d := cmp.Diff(c.want, got); d != "" || status.Code(err) != c.code ||
			errors.Is(err, ErrNoInstance) != (what == "an emulator") {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, d)
		}
	}
}
