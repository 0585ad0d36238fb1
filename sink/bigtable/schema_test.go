package bigtable

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestSchemaIsCreatedOnceAndThenEqual(t *testing.T) {
	test := func(t *testing.T, c *Client) {
		want := tableschema.Tables([]tableschema.Table{{Name: "orders", Families: []transform.Family{
			{Name: "h", MaxVersions: 3, MaxAge: 48 * time.Hour}, {Name: "d", MaxVersions: 1}, {Name: "k"},
			{Name: "i", MaxVersions: 3, MaxAge: 48 * time.Hour, Intersection: true}, {Name: "m", Aggregate: "max"},
		}}}, 7*24*time.Hour)
		done, err := c.Ensure(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if len(done) == 0 {
			t.Error("nothing was done")
		}
		rest, err := c.Diff(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		ignore := cmpopts.IgnoreUnexported(tableschema.Difference{})
		if diff := cmp.Diff([]tableschema.Difference(nil), rest, ignore); diff != "" {
			t.Errorf("after Ensure:\n%s", diff)
		}
	}
	everyServer(t, test)
}

func TestSchemaDifferencesAreNamedAndFixed(t *testing.T) {
	c, _ := rig(t)
	want := tableschema.Tables([]tableschema.Table{{Name: target, Families: []transform.Family{{Name: "d", MaxVersions: 2},
		{Name: "new", MaxVersions: 1}}},
		{Name: "orders", Families: []transform.Family{{Name: "d", MaxVersions: 1}}}}, 8*24*time.Hour)
	found, err := c.Diff(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	expected := []tableschema.Difference{
		{Kind: tableschema.NoTable, Table: "orders", Have: "missing", Want: "table"},
		{
			Kind: tableschema.WrongRule, Table: target, Family: "_tr_dead", Have: "maxage=7d", Want: "maxage=8d",
			Keeps: 7 * 24 * time.Hour, Needs: 8 * 24 * time.Hour,
		},
		{
			Kind: tableschema.WrongRule, Table: target, Family: "d", Have: "maxversions=1", Want: "maxversions=2",
			Keeps: tableschema.Forever, Needs: tableschema.Forever,
		},
		{Kind: tableschema.NoFamily, Table: target, Family: "new", Have: "missing", Want: "maxversions=1"},
	}
	if diff := cmp.Diff(expected, found, cmpopts.IgnoreUnexported(tableschema.Difference{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var lines []string
	for _, d := range found {
		lines = append(lines, d.CBT()...)
	}
	text := `cbt createtable orders 'families=_tr_dead:maxage=8d,_tr_live:maxversions=1,d:maxversions=1'
cbt setgcpolicy products _tr_dead 'maxage=8d'
cbt setgcpolicy products d 'maxversions=2'
cbt createfamily products new
cbt setgcpolicy products new 'maxversions=1'`
	if diff := cmp.Diff(text, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := c.Ensure(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if rest, err := c.Diff(t.Context(), want); err != nil || len(rest) != 0 {
		t.Errorf("after Ensure: %v, %v", rest, err)
	}
}

func TestTypeOfAFamilyIsComparedAndNeverChanged(t *testing.T) {
	c, _ := strict(t)
	want := tableschema.Tables([]tableschema.Table{{Name: target, Families: []transform.Family{
		{Name: "top", Aggregate: "hll"},
		{Name: "d", Aggregate: "min"}}}}, 7*24*time.Hour)
	found, err := c.Diff(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	expected := []tableschema.Difference{
		{Kind: tableschema.WrongType, Table: target, Family: "d", Have: "plain cells", Want: "intmin"},
		{Kind: tableschema.WrongType, Table: target, Family: "top", Have: "intmax", Want: "inthll"},
	}
	if diff := cmp.Diff(expected, found, cmpopts.IgnoreUnexported(tableschema.Difference{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := c.Ensure(t.Context(), want); err == nil ||
		!strings.Contains(err.Error(), "products family d: a family cannot change its type") {
		t.Errorf("ensure: %v", err)
	}
}

func TestNewTableIsDividedAtItsSplitKeys(t *testing.T) {
	test := func(t *testing.T, c *Client) {
		want := tableschema.Tables([]tableschema.Table{{
			Name: "orders", Families: []transform.Family{{Name: "d", MaxVersions: 1}},
			Splits: [][]byte{[]byte("m"), {0, 0xff}, []byte("a,b"), []byte("g")}}}, 7*24*time.Hour)
		if text := want[0].CBT(); !strings.HasSuffix(text,
			" 'splits=g,m' # without 2 split keys that a command line cannot hold") {
			t.Error(text)
		}
		if _, err := c.Ensure(t.Context(), want); err != nil { // emulators do not return split keys
			t.Fatal(err)
		}
		if rest, err := c.Diff(t.Context(), want); err != nil || len(rest) != 0 {
			t.Errorf("after Ensure: %v, %v", rest, err)
		}
	}
	everyServer(t, test)
}

// emptyProfiles answers every question for an app profile with the same one.
type emptyProfiles struct {
	btapb.UnimplementedBigtableInstanceAdminServer
	answer *btapb.AppProfile
}

func (p *emptyProfiles) GetAppProfile(context.Context, *btapb.GetAppProfileRequest) (*btapb.AppProfile, error) {
	return p.answer, nil
}

// TestAnswerWithoutAProfileIsNone, Rule 15: the service states the name and the routing of each
// profile. An answer that lacks one is none: a profile without routing would look like one that
// routes to several clusters, which stops writing.
func TestAnswerWithoutAProfileIsNone(t *testing.T) {
	routing := &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{
		ClusterId: "c", AllowTransactionalWrites: true}}
	for what, c := range map[string]struct {
		answer *btapb.AppProfile
		code   codes.Code
	}{
		"nothing":    {&btapb.AppProfile{}, codes.Unavailable},
		"no name":    {&btapb.AppProfile{RoutingPolicy: routing}, codes.Unavailable},
		"no routing": {&btapb.AppProfile{Name: "projects/p/instances/i/appProfiles/default"}, codes.Unavailable},
		"a profile": {&btapb.AppProfile{Name: "projects/p/instances/i/appProfiles/default", RoutingPolicy: routing},
			codes.OK},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer()
		btapb.RegisterBigtableInstanceAdminServer(srv, &emptyProfiles{answer: c.answer})
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(srv.Stop)
		p, err := open(t, l.Addr().String()).Profile(t.Context())
		if status.Code(err) != c.code || p.SingleCluster != (c.code == codes.OK) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
}

func TestProfileShowsWhetherConditionalWritesWork(t *testing.T) {
	multi := func(o *Options) { o.AppProfile = "many" }
	c, f := strict(t)
	f.Faults.MultiCluster("many")
	got, err := c.Profile(t.Context())
	want := Profile{Name: "default", SingleCluster: true, Transactional: true, Cluster: "sandbox"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	c = open(t, f.Addr(), multi)
	got, err = c.Profile(t.Context())
	if diff := cmp.Diff(Profile{Name: "many"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// The profile is to blame, not the change: it must not become a dead letter.
	if err := c.Apply(t.Context(), target, own("hats", 1, "x", "1")); Classify(err) != failure.Fatal {
		t.Errorf("apply: %v (%v)", err, Classify(err))
	}
	c, _ = rig(t)
	if _, err := c.Profile(t.Context()); !errors.Is(err, ErrNoProfiles) {
		t.Errorf("profile: %v", err)
	}
}
