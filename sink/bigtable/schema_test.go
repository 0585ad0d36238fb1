package bigtable

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/change"
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

// TestCopiesUseTheirProfile, for writes and reads: the stream's changes and the rows of the
// pipeline do not.
func TestCopiesUseTheirProfile(t *testing.T) {
	_, f := strict(t)
	c := open(t, f.Addr(), func(o *Options) { o.AppProfile, o.CopyProfile = "fast", "slow" })
	for of, want := range map[string]func() (Profile, error){
		"fast": func() (Profile, error) { return c.Profile(t.Context()) },
		"slow": func() (Profile, error) { return c.CopyProfile(t.Context()) },
	} {
		if got, err := want(); err != nil || got.Name != of {
			t.Errorf("%+v, %v", got, err)
		}
	}
	write := own("hats", 1, "x", "1")
	calls := map[string]map[string]func() error{
		"fast": {
			"apply": func() error { return c.Apply(t.Context(), target, write) },
			"state": func() error { return c.CreateState(t.Context(), &State{Identity: Identity{Pipeline: "p", Table: "t"}}) },
		},
		"slow": {
			"resync": func() error {
				_, err := c.Resync(t.Context(), target, write, nil)
				return err
			},
			"letters": func() error { return c.ApplyInCopy(t.Context(), target, write, nil) },
			"foreign": func() error {
				cell := Cell{Family: "d", Qualifier: []byte("x"), Time: present}
				return c.DeleteCells(t.Context(), target, []byte("hats"), []Cell{cell})
			},
			"guard": func() error {
				_, err := c.ReplaceGuard(t.Context(), target, Replacement{
					Write: write, Broken: change.Version(present.Add(time.Hour).UnixMilli()), Lead: time.Minute,
				})
				return err
			},
		},
	}
	for refused, others := range map[string]string{"fast": "slow", "slow": "fast"} {
		f.Faults.Calm()
		f.Faults.MultiCluster(refused)
		for what, call := range calls[refused] {
			if err := call(); Classify(err) != failure.Fatal {
				t.Errorf("%s does not use profile %s: %v", what, refused, err)
			}
		}
		for what, call := range calls[others] {
			if err := call(); err != nil {
				t.Errorf("%s uses profile %s: %v", what, refused, err)
			}
		}
	}
}

// profileReads notes the app profile of each read.
type profileReads struct {
	btpb.UnimplementedBigtableServer
	used chan string
}

func (p *profileReads) ReadRows(r *btpb.ReadRowsRequest, _ btpb.Bigtable_ReadRowsServer) error {
	p.used <- r.AppProfileId
	return nil
}

// TestReadsOfRowsUseTheProfileOfCopies, and those of the pipeline's rows do not.
func TestReadsOfRowsUseTheProfileOfCopies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reads := &profileReads{used: make(chan string, 8)}
	srv := grpc.NewServer()
	btpb.RegisterBigtableServer(srv, reads)
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	c := open(t, l.Addr().String(), func(o *Options) { o.AppProfile, o.CopyProfile = "fast", "slow" })
	for what, read := range map[string]func() error{
		"slow": func() error {
			return c.Rows(t.Context(), target, "", "", []View{{"d", 1}}, func(*Row) error { return nil })
		},
		"fast": func() error {
			if _, err := c.LoadState(t.Context(), "p", "t"); !errors.Is(err, ErrNoState) {
				return err
			}
			return nil
		},
	} {
		if err := read(); err != nil {
			t.Error(err)
		}
		if got := <-reads.used; got != what {
			t.Errorf("a read used profile %q, want %q", got, what)
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

// TestRuleThatKeepsMoreNeedsForceWhereReplicated: Bigtable refuses it, the error names the flag,
// and with force the rule is changed. A rule that keeps less needs none.
func TestRuleThatKeepsMoreNeedsForceWhereReplicated(t *testing.T) {
	c, f := strict(t)
	f.Faults.Replicated(true)
	want := func(tombstones time.Duration) []tableschema.Table {
		return tableschema.Tables([]tableschema.Table{{Name: "orders"}}, tombstones)
	}
	for _, tombstones := range []time.Duration{8 * 24 * time.Hour, 7 * 24 * time.Hour} {
		if _, err := c.Ensure(t.Context(), want(tombstones)); err != nil {
			t.Fatalf("%v: %v", tombstones, err)
		}
	}
	longer := want(9 * 24 * time.Hour)
	_, err := c.Ensure(t.Context(), longer)
	if class, hint := failure.Of(Explain(err)); class != failure.Unready || !strings.Contains(hint, "--apply --force") {
		t.Errorf("refused: %v, %s, hint %q", err, class, hint)
	}
	if rest, err := c.Diff(t.Context(), longer); err != nil || len(rest) != 1 {
		t.Errorf("after a refusal: %v, %v", rest, err)
	}
	done, err := c.EnsureForced(t.Context(), longer)
	if err != nil || len(done) != 1 || done[0].Kind != tableschema.WrongRule {
		t.Errorf("forced: %+v, %v", done, err)
	}
	if rest, err := c.Diff(t.Context(), longer); err != nil || len(rest) != 0 {
		t.Errorf("after force: %v, %v", rest, err)
	}
}
