package bigtable

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Profile has the properties of an app profile that writes depend on.
type Profile struct {
	Name          string
	SingleCluster bool // writes go to one cluster; otherwise guards decide by one copy of several
	Transactional bool // CheckAndMutateRow is allowed
	DataBoost     bool // only reads, on other machines than those of the cluster

	// Cluster is the id of the cluster that takes the writes; "" unless SingleCluster. Guards in
	// another cluster may be older, so writes must not move there unseen.
	Cluster string
}

// ErrNoProfiles means that the server has no app profiles, as emulators do not.
var ErrNoProfiles = errors.New("the server has no app profiles")

// Profile reads the app profile of the stream's writes. An error of class Denied means that
// bigtable.appProfiles.get is not permitted, which the writes do not need.
func (c *Client) Profile(ctx context.Context) (Profile, error) { return c.profile(ctx, ofStream) }

// CopyProfile reads the app profile of copies, resyncs and comparisons, as Profile does.
func (c *Client) CopyProfile(ctx context.Context) (Profile, error) { return c.profile(ctx, ofCopy) }

// HasCopyProfile reports whether copies, resyncs and comparisons have an app profile of their own.
func (c *Client) HasCopyProfile() bool { return c.opt.CopyProfile != c.opt.AppProfile }

// CopyProfileName returns the name of the app profile of copies; "": the instance's default.
func (c *Client) CopyProfileName() string { return c.opt.CopyProfile }

func (c *Client) profile(ctx context.Context, of traffic) (Profile, error) {
	opts, err := c.clientOptions(ctx, c.opt.adminServer())
	if err != nil {
		return Profile{}, fmt.Errorf("open instance admin client: %w", err)
	}
	admin, err := bigtable.NewInstanceAdminClient(ctx, c.opt.Project, opts...)
	if err != nil {
		return Profile{}, fmt.Errorf("open instance admin client: %w", err)
	}
	if !c.shares(c.opt.adminServer()) { // else the connection is the client's own
		defer func() { _ = admin.Close() }()
	}
	p := Profile{Name: c.opt.profile(of)}
	if p.Name == "" {
		p.Name = "default"
	}
	found, err := admin.GetAppProfile(ctx, c.opt.Instance, p.Name)
	if status.Code(err) == codes.Unimplemented {
		return Profile{}, ErrNoProfiles
	}
	if err != nil {
		return Profile{Name: p.Name}, fmt.Errorf("read app profile %s: %w", p.Name, orInterrupted(ctx, err))
	}
	if found.GetName() == "" || found.GetRoutingPolicy() == nil { // Rule 15: the service states both of each profile
		return Profile{Name: p.Name}, status.Errorf(codes.Unavailable,
			"read app profile %s: the answer describes none", p.Name)
	}
	p.DataBoost = found.GetDataBoostIsolationReadOnly() != nil
	if single, ok := found.RoutingPolicy.(*btapb.AppProfile_SingleClusterRouting_); ok {
		p.SingleCluster = true
		p.Cluster = single.SingleClusterRouting.ClusterId
		p.Transactional = single.SingleClusterRouting.AllowTransactionalWrites
	}
	return p, nil
}
