package bigtable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/sandbox"
	front "github.com/tailrace-cdc/replicator/sandbox/bigtable"
)

func TestRefusedWriteLeavesNothing(t *testing.T) {
	r := newRig(t)
	half := set(1, "half")
	half.Set("nofamily", "a", 1000, []byte("x"))
	wantCode(t, r.table.Apply(t.Context(), "row", half), codes.NotFound)
	wantCode(t, r.table.Apply(t.Context(), "row", guarded(half)), codes.NotFound)
	errs, err := r.table.ApplyBulk(t.Context(), []string{"row", "other"}, []*bigtable.Mutation{half, set(1, "whole")})
	if err != nil || len(errs) != 2 || errs[1] != nil {
		t.Fatalf("bulk: %v %v", errs, err)
	}
	wantCode(t, errs[0], codes.NotFound)
	if got := r.value("row"); got != "" {
		t.Errorf("row holds %q", got)
	}
	if got := r.value("other"); got != "whole" {
		t.Errorf("other holds %q", got)
	}
}

func TestLimitsOfTheServiceHold(t *testing.T) {
	r := newRig(t)
	long := func(n int) string { return strings.Repeat("k", n) }
	wide := bigtable.NewMutation()
	wide.Set("d", long(16<<10+1), 1000, nil)
	inverted := bigtable.NewMutation()
	inverted.DeleteTimestampRange("d", "a", 5000, 5000)
	many := bigtable.NewMutation()
	for range 100_001 {
		many.Set("d", "a", 1000, nil)
	}
	for name, apply := range map[string]func() error{
		"key":       func() error { return r.table.Apply(t.Context(), long(4<<10+1), set(1, "")) },
		"qualifier": func() error { return r.table.Apply(t.Context(), "row", wide) },
		"range":     func() error { return r.table.Apply(t.Context(), "row", guarded(inverted)) },
		"mutations": func() error { return r.table.Apply(t.Context(), "row", many) },
		"filter": func() error {
			_, err := r.table.ReadRow(t.Context(), "row", bigtable.RowFilter(bigtable.ValueFilter(long(21<<10))))
			return err
		},
		"table": func() error { return r.admin.CreateTable(t.Context(), "no/slash") },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, apply(), codes.InvalidArgument) })
	}
	if err := r.table.Apply(t.Context(), long(4<<10), set(1, "x")); err != nil {
		t.Errorf("key at the limit: %v", err)
	}
	wantCode(t, r.data.Open("nowhere").Apply(t.Context(), "row", set(1, "")), codes.NotFound)
}

func TestAmbiguousWriteIsApplied(t *testing.T) {
	r := newRig(t)
	r.front.Faults.Code(codes.Internal) // the library does not retry it
	for i, m := range []*bigtable.Mutation{set(1, "plain"), guarded(set(2, "guarded"))} {
		r.front.Faults.Next(front.Ambiguous, 1)
		wantCode(t, r.table.Apply(t.Context(), "row", m), codes.Internal)
		if got, want := r.value("row"), []string{"plain", "guarded"}[i]; got != want {
			t.Errorf("row holds %q, want %q", got, want)
		}
		r.front.Faults.Next(front.Refuse, 1)
		wantCode(t, r.table.Apply(t.Context(), fmt.Sprint("refused", i), m), codes.Internal)
		if got := r.value(fmt.Sprint("refused", i)); got != "" {
			t.Errorf("refused row holds %q", got)
		}
	}
}

func TestLateWriteLandsAfterItsFailure(t *testing.T) {
	r := newRig(t)
	r.front.Faults.HoldLate()
	for i, m := range []*bigtable.Mutation{set(1, "late"), guarded(set(1, "late"))} {
		key := fmt.Sprint("row", i)
		r.front.Faults.Code(codes.Internal)
		r.front.Faults.Next(front.Late, 1)
		wantCode(t, r.table.Apply(t.Context(), key, m), codes.Internal)
		if got := r.value(key); got != "" {
			t.Errorf("%s holds %q before the release", key, got)
		}
		r.front.Faults.ReleaseLate()
		sandbox.Watch{}.Until(t, "the late write is applied", func() bool { return r.front.Faults.LateWaiting() == 0 })
		if got := r.value(key); got != "late" {
			t.Errorf("%s holds %q after the release", key, got)
		}
	}
}

func TestCallerWhoGaveUpDoesNotStopItsWrite(t *testing.T) {
	r := newRig(t)
	var given []string // rows whose writers gave up: on a busy machine some of them before their call was sent
	sandbox.Watch{}.Until(t, "a write is applied whose caller gave up", func() bool {
		row := fmt.Sprint("row", len(given))
		r.front.Faults.Latency(50*time.Millisecond, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := r.table.Apply(ctx, row, guarded(set(1, "landed")))
		r.front.Faults.Latency(0, 0)
		if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
			given = append(given, row)
		} else if err != nil {
			t.Fatalf("apply: %v", err)
		}
		return slices.ContainsFunc(given, func(row string) bool { return r.value(row) == "landed" })
	})
}

func TestOutageRefusesEverythingUntilItEnds(t *testing.T) {
	r := newRig(t)
	r.front.Faults.Outage(0)
	wantCode(t, r.table.Apply(t.Context(), "row", guarded(set(1, "x"))), codes.Unavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.table.ReadRow(ctx, "row"); err == nil {
		t.Error("read during an outage")
	}
	r.front.Faults.Recover()
	if err := r.table.Apply(t.Context(), "row", guarded(set(1, "x"))); err != nil {
		t.Error(err)
	}
}

func TestBulkFaultsHitEntriesAlone(t *testing.T) {
	r := newRig(t)
	r.front.Faults.Code(codes.FailedPrecondition)
	r.front.Faults.Random(front.Odds{EntryRefuse: 0.3, EntryAmbiguous: 0.3, Missing: 0.1})
	r.front.Faults.RefuseRow([]byte("row00"), codes.InvalidArgument, -1)
	var keys []string
	var muts []*bigtable.Mutation
	for i := range 200 {
		keys, muts = append(keys, fmt.Sprintf("row%03d", i)), append(muts, set(1, "x"))
	}
	errs, err := r.table.ApplyBulk(t.Context(), keys, muts)
	if err != nil || len(errs) != 200 {
		t.Fatalf("bulk: %d errors, %v", len(errs), err)
	}
	r.front.Faults.Calm()
	lied, refused := 0, 0
	for i, key := range keys {
		there := r.value(key) != ""
		switch {
		case errs[i] == nil && !there:
			t.Errorf("%s reported applied, but is not there", key)
		case errs[i] != nil && there:
			lied++
		case errs[i] != nil:
			refused++
		}
		if i < 10 {
			wantCode(t, errs[i], codes.InvalidArgument)
		}
	}
	if lied == 0 || refused == 0 {
		t.Errorf("%d failures of applied entries, %d of others: want both", lied, refused)
	}
}

func TestEntriesOfOneRowComeInAnyOrder(t *testing.T) {
	r := newRig(t)
	seen := map[string]bool{}
	for i := range 40 {
		key := fmt.Sprint("row", i)
		wipe := bigtable.NewMutation()
		wipe.DeleteRow()
		if _, err := r.table.ApplyBulk(t.Context(), []string{key, key},
			[]*bigtable.Mutation{set(1, "kept"), wipe}); err != nil {
			t.Fatal(err)
		}
		seen[r.value(key)] = true
	}
	if len(seen) != 2 {
		t.Errorf("only one order seen: %v", seen)
	}
}

func TestMultiClusterProfileTakesNoConditionalWrites(t *testing.T) {
	r := newRig(t)
	r.front.Faults.MultiCluster("")
	wantCode(t, r.table.Apply(t.Context(), "row", guarded(set(1, "x"))), codes.FailedPrecondition)
	if err := r.table.Apply(t.Context(), "row", set(1, "x")); err != nil {
		t.Error(err)
	}
	conn, err := grpc.NewClient(r.front.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	admin, err := bigtable.NewInstanceAdminClient(t.Context(), "p", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	r.front.Faults.MultiCluster("spread")
	for profile, transactional := range map[string]bool{"single": true, "spread": false} {
		got, err := admin.GetAppProfile(t.Context(), "i", profile)
		if err != nil || got.GetSingleClusterRouting().GetAllowTransactionalWrites() != transactional {
			t.Errorf("profile %s: %v, %v", profile, got, err)
		}
	}
}

func TestReadsAreNeverTorn(t *testing.T) {
	r := newRig(t)
	var work errgroup.Group
	for w := range 2 {
		work.Go(func() error {
			for i := range 150 {
				m := bigtable.NewMutation()
				for _, q := range "abcdefgh" { // a whole-row delete would not share memory with readers
					m.DeleteCellsInColumn("d", string(q))
				}
				for _, q := range "abcdefgh"[:1+(i+w)%8] {
					m.Set("d", string(q), 1000, fmt.Append(nil, (i+w)%8))
				}
				if err := r.table.Apply(t.Context(), "row", guarded(m)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	work.Go(func() error {
		for range 300 {
			row, err := r.table.ReadRow(t.Context(), "row")
			if err != nil {
				return err
			}
			for _, item := range row["d"] {
				if string(item.Value) != fmt.Sprint(len(row["d"])-1) {
					t.Errorf("torn row %v", row)
				}
			}
		}
		return nil
	})
	if err := work.Wait(); err != nil {
		t.Error(err)
	}
}

func TestGarbageIsCollectedByTheSandboxClock(t *testing.T) {
	r := newRig(t)
	now := r.clock.Now().UnixMilli()
	for ts := range int64(3) {
		if err := r.table.Apply(t.Context(), "row", set(now+ts, fmt.Sprint(ts))); err != nil {
			t.Fatal(err)
		}
	}
	dead := bigtable.NewMutation()
	dead.Set("t", "i", bigtable.Timestamp(now*1000), []byte("tombstone"))
	if err := r.table.Apply(t.Context(), "row", dead); err != nil {
		t.Fatal(err)
	}
	collect := func(want int) {
		t.Helper()
		if n, err := r.front.Collect(t.Context()); err != nil || n != want {
			t.Errorf("collected %d (%v), want %d", n, err, want)
		}
	}
	collect(2) // two superseded versions
	collect(0)
	r.clock.Advance(7*24*time.Hour + time.Second)
	collect(1) // the tombstone
	if got := r.value("row"); got != "2" {
		t.Errorf("row holds %q", got)
	}
	info, err := r.admin.TableInfo(t.Context(), "orders")
	if err != nil || len(info.FamilyInfos) != 2 || info.FamilyInfos[0].GCPolicy == "" {
		t.Errorf("table info %+v, %v", info, err)
	}
}

func TestTablesSurviveARestart(t *testing.T) {
	r := newRig(t)
	for i := range 1500 {
		if err := r.table.Apply(t.Context(), fmt.Sprintf("row%04d", i), set(7, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := r.front.Save(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	again := openFront(t, nil)
	if err := again.Restore(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	r.front.Faults.Outage(0)
	q := &rig{t: t, front: again}
	q.connect()
	n := 0
	err := q.table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if item := row["d"][0]; item.Timestamp != 7000 || string(item.Value) != fmt.Sprint(n) {
			t.Errorf("row %d: %+v", n, item)
		}
		n++
		return true
	})
	if err != nil || n != 1500 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := q.table.Apply(t.Context(), "row", guarded(set(1, "x"))); err != nil {
		t.Error(err)
	}
	r.front.Faults.Calm()
}

// TestDescriptionBesideASchemaChange: the emulator reads its families without its lock, so the race
// detector finds a description that does not wait for the front's.
func TestDescriptionBesideASchemaChange(t *testing.T) {
	r := newRig(t)
	var g errgroup.Group
	for days := range 20 {
		g.Go(func() error {
			return r.admin.SetGCPolicy(t.Context(), "orders", "d", bigtable.MaxAgePolicy(time.Duration(days+1)*24*time.Hour))
		})
		g.Go(func() error {
			_, err := r.admin.TableInfo(t.Context(), "orders")
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
