package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Instance is what the service charges an instance for: nodes, by edition and kind of storage.
type Instance struct {
	Name     string    `json:"instance"`
	Edition  string    `json:"edition"` // enterprise, enterprise_plus; "" unknown
	Clusters []Cluster `json:"clusters"`
}

// Cluster is a cluster of an instance.
type Cluster struct {
	Name    string `json:"cluster"`
	Nodes   int    `json:"nodes"` // now: autoscaling changes them
	Storage string `json:"storage"`
}

// ErrNoInstance means that the server describes no instance, as emulators do not.
var ErrNoInstance = errors.New("the server describes no instance")

// DescribeInstance reads the edition and the clusters of the instance, which nothing but a cost
// needs: bigtable.instances.get and bigtable.clusters.list may be denied.
func (c *Client) DescribeInstance(ctx context.Context) (Instance, error) {
	found := Instance{Name: c.opt.Instance}
	opts, err := c.clientOptions(ctx, c.opt.adminServer())
	if err != nil {
		return found, fmt.Errorf("open instance admin client: %w", err)
	}
	admin, err := bigtable.NewInstanceAdminClient(ctx, c.opt.Project, opts...)
	if err != nil {
		return found, fmt.Errorf("open instance admin client: %w", err)
	}
	if !c.shares(c.opt.adminServer()) { // else the connection is the client's own
		defer func() { _ = admin.Close() }()
	}
	clusters, err := admin.Clusters(ctx, c.opt.Instance)
	switch partial := (bigtable.ErrPartiallyUnavailable{}); {
	case status.Code(err) == codes.Unimplemented:
		return found, ErrNoInstance
	case err != nil && !errors.As(err, &partial):
		return found, fmt.Errorf("list clusters of %s: %w", c.opt.Instance, orInterrupted(ctx, err))
	}
	for _, x := range clusters {
		storage := "SSD"
		if x.StorageType == bigtable.HDD {
			storage = "HDD"
		}
		found.Clusters = append(found.Clusters, Cluster{Name: x.Name, Nodes: x.ServeNodes, Storage: storage})
	}
	name := "projects/" + c.opt.Project + "/instances/" + c.opt.Instance
	described, err := admin.InstanceAdminClientV2().GetInstance(ctx, &btapb.GetInstanceRequest{Name: name})
	if err != nil { // the clusters are known, and what they cost
		return found, nil
	}
	if e := described.GetEdition(); e != btapb.Instance_EDITION_UNSPECIFIED {
		found.Edition = strings.ToLower(e.String())
	}
	return found, nil
}
