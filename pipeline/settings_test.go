package pipeline_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sandbox/s3"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

// rule sets the garbage collection of a family, as an administrator does.
func (r *run) rule(table, family string, policy bigtable.GCPolicy) {
	r.t.Helper()
	r.administer(func(admin *bigtable.AdminClient) error {
		return admin.SetGCPolicy(r.t.Context(), table, family, policy)
	})
}

// administer does what an administrator does.
func (r *run) administer(do func(*bigtable.AdminClient) error) {
	r.t.Helper()
	conn, err := grpc.NewClient(r.front.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	admin, err := bigtable.NewAdminClient(r.t.Context(), "local", "local", option.WithGRPCConn(conn))
	if err == nil {
		err = do(admin)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// haltedBy waits until the sink is halted by a setting, and the reason says what mends it.
func (r *run) haltedBy(says string) {
	r.t.Helper()
	r.until("the sink is halted by "+says, func() bool {
		st := r.table("Orders")
		return st.State == "halted" && st.Code == "premise" && strings.Contains(st.Halts["bigtable"], says)
	})
	ready, reasons := r.p.Ready()
	if ready {
		r.t.Error("ready while nothing may be written")
	}
	if all := strings.Join(reasons, "\n"); strings.Count(all, says) != 1 {
		r.t.Errorf("the setting is not named once:\n%s", all)
	}
	if r.metric("tailrace_settings_wrong") == 0 {
		r.t.Error("the metric shows no wrong setting")
	}
}

// readsOnly changes items, and fails the test if rows change while the stream is read on.
func (r *run) readsOnly(change func()) {
	r.t.Helper()
	before, read := r.stored("Orders"), r.table("Orders").Changes
	change()
	r.until("the stream is read on", func() bool { return r.table("Orders").Changes >= read+20 })
	if diff := cmp.Diff(before, r.stored("Orders")); diff != "" {
		r.t.Errorf("rows were written (-before +now):\n%s", diff)
	}
}

// saidOf returns how many lines about settings have a text.
func (w *world) saidOf(text string) (n int) {
	for _, e := range w.logged.FilterMessageSnippet("setting that the replicator relies on").All() {
		if is, _ := e.ContextMap()["is"].(string); strings.Contains(is, text) {
			n++
		}
	}
	return n
}

// TestRuleThatCollectsGuardsStopsWriting, Rule 15: a rule that is changed while the table is
// replicated, and by which a guard, a tombstone or a row of the pipeline would be collected too
// early, halts the sink. The stream is read on, and what was read is applied once the rule is
// right.
func TestRuleThatCollectsGuardsStopsWriting(t *testing.T) {
	right := bigtable.MaxVersionsPolicy(1)
	for name, x := range map[string]struct {
		table, family string
		wrong, right  bigtable.GCPolicy
	}{
		"guards": {target("Orders"), transform.LiveFamily, bigtable.MaxAgePolicy(24 * time.Hour), right},
		"tombstones": {
			target("Orders"), transform.DeadFamily, bigtable.MaxAgePolicy(time.Hour), bigtable.MaxAgePolicy(7 * 24 * time.Hour),
		},
		"state": {
			tableschema.StateTable, tableschema.StateFamily,
			bigtable.UnionPolicy(right, bigtable.MaxAgePolicy(24*time.Hour)), right,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.createTable("Orders")
			r := w.start("Orders")
			w.changeItems("Orders", 1, 20)
			r.settle()
			r.rule(x.table, x.family, x.wrong)
			r.haltedBy("cbt setgcpolicy " + x.table + " " + x.family)
			r.readsOnly(func() { w.changeItems("Orders", 2, 40) })
			r.rule(x.table, x.family, x.right)
			r.until("the table goes on", func() bool { return r.table("Orders").State == "running" })
			r.settle()
			r.equal()
			r.ready()
		})
	}
}

// TestWrongRuleIsShownAtTheStart: nothing is written under a rule that was wrong before the
// replicator began.
func TestWrongRuleIsShownAtTheStart(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.open("Orders")
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxAgePolicy(24*time.Hour))
	w.changeItems("Orders", 1, 40)
	r.begin()
	r.haltedBy("cbt setgcpolicy " + target("Orders") + " " + transform.LiveFamily)
	if rows := r.stored("Orders"); len(rows) > 0 {
		t.Errorf("%d rows were written", len(rows))
	}
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxVersionsPolicy(1))
	r.settle()
	r.equal()
}

// TestLaterLifeWritesNothingBeforeItsFirstLook: a rule may be wrong since the life before, which
// had found it right.
func TestLaterLifeWritesNothingBeforeItsFirstLook(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	r.control("Orders", &checkpoint.Control{Pause: new(true), By: "test"})
	r.until("it is paused", func() bool { return r.table("Orders").State == "paused" })
	release := w.front.Faults.HoldSettings()
	defer release()
	r.control("Orders", &checkpoint.Control{Pause: new(false), By: "test"})
	r.readsOnly(func() { w.changeItems("Orders", 2, 40) })
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxAgePolicy(time.Hour))
	release()
	r.haltedBy("cbt setgcpolicy " + target("Orders") + " " + transform.LiveFamily)
	r.readsOnly(func() { w.changeItems("Orders", 3, 40) })
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxVersionsPolicy(1))
	r.settle()
	r.equal()
}

// TestHaltOfASettingEndsWithoutChanges: a table that has nothing to apply goes on, too, and so does
// one whose next owner finds the setting right and the halt of the last one in the log.
func TestHaltOfASettingEndsWithoutChanges(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	for _, restart := range []bool{false, true} {
		r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxAgePolicy(time.Hour))
		r.haltedBy("cbt setgcpolicy")
		if restart {
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			r = w.openAs(false, "Orders")
		}
		r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxVersionsPolicy(1))
		if restart {
			r.begin()
		}
		r.until("the table goes on", func() bool { return r.table("Orders").State == "running" })
		r.ready()
	}
	r.equal()
}

// TestCopyWaitsUntilGuardsAreSafe: a copy of older items does not write either, and is complete
// once the rule is right.
func TestCopyWaitsUntilGuardsAreSafe(t *testing.T) {
	w := newWorld(t)
	w.oldTable(200)
	r := w.open("Orders")
	r.rule(target("Orders"), transform.DeadFamily, bigtable.MaxAgePolicy(time.Hour))
	r.begin()
	r.haltedBy("cbt setgcpolicy " + target("Orders") + " " + transform.DeadFamily)
	r.readsOnly(func() { w.changeItems("Orders", 1, 40) })
	r.rule(target("Orders"), transform.DeadFamily, bigtable.MaxAgePolicy(7*24*time.Hour))
	r.copied()
	r.settle()
	r.equal()
}

// TestRuleOfDataMakesTheTableRed: a rule that deletes cells of the mapping, or keeps more of them,
// stops nothing. It is named with the command that sets it right.
func TestRuleOfDataMakesTheTableRed(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	r.rule(target("Orders"), "d", bigtable.MaxAgePolicy(24*time.Hour))
	shown := func() bool {
		return strings.Contains(strings.Join(r.table("Orders").Reasons, "\n"), "cbt setgcpolicy "+target("Orders")+" d ")
	}
	r.until("the rule is shown", shown)
	w.changeItems("Orders", 1, 20)
	r.until("what was written is applied", func() bool { return r.table("Orders").Changes > 0 })
	r.settle()
	if st := r.table("Orders"); st.State != "running" || !shown() {
		t.Errorf("%s %v", st.State, st.Reasons)
	}
	r.rule(target("Orders"), "d", bigtable.MaxVersionsPolicy(1))
	r.until("the rule is not shown any more", func() bool { return !shown() })
	r.equal()
	r.ready()
}

// TestAppProfileOfSeveralClustersStopsWriting: so does a profile that routes to several clusters,
// also where the service still takes the writes.
func TestAppProfileOfSeveralClustersStopsWriting(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	w.front.Faults.MultiCluster("default")
	r.haltedBy("gcloud bigtable app-profiles update default")
	r.readsOnly(func() { w.changeItems("Orders", 2, 40) })
	w.front.Faults.Calm()
	r.until("the table goes on", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
	r.ready()
}

// TestCopyProfileOfAnotherClusterStopsWriting: copies would be decided by rows of that cluster, which
// lack what the stream has just written.
func TestCopyProfileOfAnotherClusterStopsWriting(t *testing.T) {
	w := newWorld(t)
	w.profile = "low"
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	w.front.Faults.RouteTo("low", "second")
	r.haltedBy("gcloud bigtable app-profiles update low --instance=local --route-to=sandbox")
	r.readsOnly(func() { w.changeItems("Orders", 2, 40) })
	w.front.Faults.RouteTo("low", "sandbox")
	r.until("the table goes on", func() bool { return r.table("Orders").State == "running" })
	r.settle()
	r.equal()
	r.ready()
}

// TestSettingsThatMayNotBeReadAreNamedOnce: a role without the right to read them is told so in one
// line for each, and nothing is red. What was read before stays known, and one refusal ends
// nothing.
func TestSettingsThatMayNotBeReadAreNamedOnce(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.front.Faults.RefuseSettings(codes.PermissionDenied, -1)
	r.until("both are named", func() bool {
		return w.saidOf("bigtable.tables.get") > 0 && w.saidOf("bigtable.appProfiles.get") > 0
	})
	w.changeItems("Orders", 1, 20)
	r.settle()
	r.equal()
	r.ready()
	for _, right := range []string{"bigtable.tables.get", "bigtable.appProfiles.get"} {
		if n := w.saidOf(right); n != 1 {
			t.Errorf("%s is named in %d lines", right, n)
		}
	}
	w.front.Faults.RefuseSettings(codes.PermissionDenied, 0)
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxAgePolicy(time.Hour))
	r.haltedBy("cbt setgcpolicy")
	w.front.Faults.RefuseSettings(codes.PermissionDenied, -1)
	r.readsOnly(func() { w.changeItems("Orders", 2, 40) })
	if st := r.table("Orders"); st.State != "halted" {
		t.Errorf("%s, because the rule may not be read any more", st.State)
	}
	w.front.Faults.RefuseSettings(codes.PermissionDenied, 0)
	r.rule(target("Orders"), transform.LiveFamily, bigtable.MaxVersionsPolicy(1))
	r.settle()
	r.equal()
}

// TestOneLookStopsNothing, Rule 13: a description that shows another rule once halts nothing. The
// next one does not agree.
func TestOneLookStopsNothing(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	w.changeItems("Orders", 1, 20)
	r.settle()
	day := &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(24 * time.Hour)}}
	w.front.Faults.ShowRule(transform.LiveFamily, day, 1)
	r.until("the rule was shown", func() bool { return w.front.Faults.ShownLeft() == 0 })
	w.changeItems("Orders", 2, 20)
	r.settle()
	r.equal()
	r.ready()
	if n := w.logged.FilterMessageSnippet("halt the sink").Len(); n > 0 {
		t.Errorf("the sink was halted %d times", n)
	}
}

// TestLifecycleThatDeletesManifestsIsRed: a rule of the archive's bucket that reaches what the
// archive keeps of itself is named with what mends it. One for archived items alone is the
// archive's retention: a line of the log, and nothing red.
func TestLifecycleThatDeletesManifestsIsRed(t *testing.T) {
	w := newWorld(t)
	srv, err := s3.Serve("127.0.0.1:0", w.buckets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	if err := w.buckets.Create("kept"); err != nil {
		t.Fatal(err)
	}
	url := "s3://kept/a?region=us-east-1&endpoint=" + srv.URL()
	b, err := bucket.Open(t.Context(), url, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	w.archive, w.onTTL = &archiving.Place{
		Objects: b, URL: bucket.Place(url), Form: object.Options{Format: object.Parquet, Pipeline: "shop"},
		Once: &archiving.Once{}, Scratch: t.TempDir(), Roll: time.Millisecond,
	}, "archive"
	w.qopts = func(o *queue.Options) { o.ArchiveMaxBytes = 8 << 20 }
	w.createExpiring("Orders")
	expire := func(prefix string) {
		t.Helper()
		rules := "<LifecycleConfiguration><Rule><ID>old</ID><Filter><Prefix>" + prefix + "</Prefix></Filter>" +
			"<Status>Enabled</Status><Expiration><Days>365</Days></Expiration></Rule></LifecycleConfiguration>"
		put := http.MethodPut
		req, err := http.NewRequestWithContext(t.Context(), put, srv.URL()+"/kept?lifecycle", strings.NewReader(rules))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_ = res.Body.Close()
	}
	r := w.start("Orders")
	shown := func() bool {
		reasons := strings.Join(r.table("Orders").Reasons, "\n")
		return strings.Contains(reasons, "put-bucket-lifecycle-configuration --bucket kept ")
	}
	r.settle()
	expire("")
	r.until("the rule is shown", shown)
	w.expire("Orders", "x", 10, 100)
	expire("a/tr_table=")
	r.until("the rule is not shown any more", func() bool { return !shown() })
	r.until("the retention is named", func() bool { return w.saidOf("lifecycle_data") == 1 })
	r.settle()
	r.ready()
	r.archivedOnce(b, "Orders", 0)
	r.equal()
}
