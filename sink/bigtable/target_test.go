package bigtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestSecondPipelineFindsTheTargetTaken(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if owner, err := c.TargetOwner(t.Context(), "products"); owner != "" || err != nil {
			t.Fatalf("before the first claim: %q, %v", owner, err)
		}
		for _, pipeline := range []string{"shop", "shop", "other"} {
			if owner, err := c.ClaimTarget(t.Context(), pipeline, "products"); owner != "shop" || err != nil {
				t.Errorf("claim by %s: %q, %v", pipeline, owner, err)
			}
		}
		if owner, err := c.ClaimTarget(t.Context(), "other", "orders"); owner != "other" || err != nil {
			t.Errorf("claim of another target: %q, %v", owner, err)
		}
		if name := c.TargetName("products"); !strings.HasPrefix(name, "projects/") ||
			!strings.HasSuffix(name, "/tables/products") {
			t.Errorf("name %q", name)
		}
	})
}

func TestOfPipelinesThatClaimATargetAtOnceOneHasIt(t *testing.T) {
	c, f := rig(t)
	f.fates(func(n int) fate { return []fate{pass, lose, refuse}[n%3] })
	owners := make([]string, 8)
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			owner, err := c.ClaimTarget(t.Context(), fmt.Sprint("pipeline-", i), "products")
			if err != nil {
				t.Error(err)
			}
			owners[i] = owner
		})
	}
	all.Wait()
	for i, owner := range owners {
		if owner != owners[0] || !strings.HasPrefix(owner, "pipeline-") {
			t.Errorf("pipeline-%d heard that %q has the target, pipeline-0 heard %q", i, owner, owners[0])
		}
	}
}

func TestNewerTargetRowIsRefused(t *testing.T) {
	c, _ := rig(t)
	x := &stateCell{key: []byte(c.TargetKey("products")), qualifier: targetQualifier,
		value: []byte(`{"format":9,"pipeline":"shop"}`)}
	if _, err := c.setIf(t.Context(), x, columnFilter(targetQualifier), false); err != nil {
		t.Fatal(err)
	}
	var newer *NewerFormatError
	if _, err := c.ClaimTarget(t.Context(), "shop", "products"); !errors.As(err, &newer) || newer.Have != 9 {
		t.Errorf("claim: %v", err)
	}
}

func TestMappingIsStoredBesideItsHash(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if _, err := c.LoadMapping(t.Context(), "shop", "Products", "h1"); !errors.Is(err, ErrNoMapping) {
			t.Fatalf("before it is kept: %v", err)
		}
		one, two := []byte("rules: one"), bytes.Repeat([]byte("a long mapping\n"), 100_000)
		for hash, text := range map[string][]byte{"h1": one, "h2": two, "h3": {}} {
			for range 2 {
				if err := c.StoreMapping(t.Context(), "shop", "Products", hash, text); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := c.LoadState(t.Context(), "shop", "Products"); !errors.Is(err, ErrNoState) {
			t.Errorf("a kept mapping is no state: %v", err)
		}
		s := firstState()
		if err := c.CreateState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		next := *s
		next.Issued = true
		if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
			t.Fatal(err)
		}
		for hash, text := range map[string][]byte{"h1": one, "h2": two, "h3": {}} {
			got, err := c.LoadMapping(t.Context(), "shop", "Products", hash)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: %d bytes, %v; want %d", hash, len(got), err, len(text))
			}
		}
		if _, err := c.LoadMapping(t.Context(), "shop", "Orders", "h1"); !errors.Is(err, ErrNoMapping) {
			t.Errorf("another table's: %v", err)
		}
	})
}

func TestNewerOrEnormousStoredMappingIsRefused(t *testing.T) {
	c, _ := rig(t)
	for hash, value := range map[string][]byte{"newer": {9, 1}, "empty": {0}} {
		x := &stateCell{key: stateKey("shop", "Products"), qualifier: mappingQualifier(hash), value: value}
		if _, err := c.setIf(t.Context(), x, columnFilter(x.qualifier), false); err != nil {
			t.Fatal(err)
		}
		_, err := c.LoadMapping(t.Context(), "shop", "Products", hash)
		if newer := (*NewerFormatError)(nil); err == nil || errors.As(err, &newer) != (hash == "newer") {
			t.Errorf("%s: %v", hash, err)
		}
	}
	noise := make([]byte, maxMapping+1)
	rand.NewChaCha8([32]byte{}).Read(noise)
	if err := c.StoreMapping(t.Context(), "shop", "Products", "enormous", noise); err == nil {
		t.Error("a mapping larger than a cell should be was kept")
	}
}

// claimed claims the target for a pipeline.
func claimed(t testing.TB, c *Client, pipeline string) {
	t.Helper()
	if owner, err := c.ClaimTarget(t.Context(), pipeline, target); owner != pipeline || err != nil {
		t.Fatalf("claim by %s: %q, %v", pipeline, owner, err)
	}
}

func TestAdoptedTargetHasItsFloor(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		claimed(t, c, "shop")
		if floor, err := c.TargetFloor(t.Context(), target); floor != 0 || err != nil {
			t.Errorf("before: floor %d, %v", floor, err)
		}
		for range 2 { // a start that was interrupted adopts again
			if err := c.AdoptTarget(t.Context(), "new", target, "shop", 900); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.AdoptTarget(t.Context(), "new", target, "shop", 700); err != nil {
			t.Error(err)
		}
		if floor, err := c.TargetFloor(t.Context(), target); floor != 900 || err != nil {
			t.Errorf("floor %d, %v", floor, err)
		}
		if owner, err := c.ClaimTarget(t.Context(), "shop", target); owner != "new" || err != nil {
			t.Errorf("the pipeline before: %q, %v", owner, err)
		}
		if err := c.AdoptTarget(t.Context(), "third", target, "shop", 1); !errors.Is(err, ErrTargetChanged) {
			t.Errorf("adopt from a pipeline that has it no longer: %v", err)
		}
		if err := c.AdoptTarget(t.Context(), "first", "orders", "", 5); err != nil {
			t.Errorf("adopt a target that none has claimed: %v", err)
		}
		if floor, err := c.TargetFloor(t.Context(), "orders"); floor != 5 || err != nil {
			t.Errorf("floor of a target that none had claimed: %d, %v", floor, err)
		}
	})
}

// TestRetiredTablesStayRetired: whatever is retired or adopted later, because their rows may belong
// to the application.
func TestRetiredTablesStayRetired(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		ctx, at := t.Context(), time.Unix(1_790_000_000, 0).UTC()
		claimed(t, c, "shop")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		is := func(when string, want map[string]Retired) {
			t.Helper()
			row, err := c.targetRepeatedly(ctx, target)
			if d := cmp.Diff(want, row.Retired); err != nil || d != "" {
				t.Errorf("%s: %v, (-want +got):\n%s", when, err, d)
			}
		}
		must(c.Retire(ctx, "shop", target, "A", Retired{At: at, Floor: 10}))
		must(c.Retire(ctx, "shop", target, "A", Retired{At: at, Floor: 99}))
		is("retired twice", map[string]Retired{"A": {At: at, Floor: 10}})
		must(c.Retire(ctx, "other", target, "C", Retired{At: at, Floor: 10}))
		must(c.Unretire(ctx, "other", target, "A"))
		is("by another pipeline", map[string]Retired{"A": {At: at, Floor: 10}})
		must(c.Retire(ctx, "shop", target, "B", Retired{At: at, Floor: 20}))
		is("both", map[string]Retired{"A": {At: at, Floor: 10}, "B": {At: at, Floor: 20}})
		must(c.AdoptTarget(ctx, "new", target, "shop", 900))
		is("adopted", map[string]Retired{"A": {At: at, Floor: 10}, "B": {At: at, Floor: 20}})
		for range 2 {
			must(c.Unretire(ctx, "new", target, "A"))
			is("begun again", map[string]Retired{"B": {At: at, Floor: 20}})
		}
		for _, x := range []struct {
			from        string
			floor, want change.Version
		}{{"shop", 950, 950}, {"new", 700, 950}} {
			must(c.AdoptTarget(ctx, "new", target, x.from, x.floor))
			if floor, err := c.TargetFloor(ctx, target); floor != x.want || err != nil {
				t.Errorf("adopted from %s above %d: floor %d, %v", x.from, x.floor, floor, err)
			}
		}
	})
}

func TestOfPipelinesThatAdoptAtOnceOneHasTheTarget(t *testing.T) {
	c, f := rig(t)
	claimed(t, c, "shop")
	f.fates(func(n int) fate { return []fate{pass, lose, refuse}[n%3] })
	won := make([]error, 8)
	var all sync.WaitGroup
	for i := range won {
		all.Go(func() {
			won[i] = c.AdoptTarget(t.Context(), fmt.Sprint("pipeline-", i), target, "shop", change.Version(100+i))
		})
	}
	all.Wait()
	owner, err := c.TargetOwner(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range won {
		if mine := owner == fmt.Sprint("pipeline-", i); mine != (err == nil) || !mine && !errors.Is(err, ErrTargetChanged) {
			t.Errorf("%s has the target, pipeline-%d heard %v", owner, i, err)
		}
	}
}

// TestTargetAdoptedBetweenReadAndWriteIsNotTakenAgain: another adoption comes after the claim was
// read.
func TestTargetAdoptedBetweenReadAndWriteIsNotTakenAgain(t *testing.T) {
	other, f := rig(t)
	claimed(t, other, "shop")
	var first sync.Once
	c := open(t, f.addr, func(o *Options) {
		o.Report = func(string, error) {
			first.Do(func() {
				if err := other.AdoptTarget(t.Context(), "third", target, "shop", 5); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if err := c.AdoptTarget(t.Context(), "new", target, "shop", 9); !errors.Is(err, ErrTargetChanged) {
		t.Errorf("adopt: %v", err)
	}
	if owner, err := c.TargetOwner(t.Context(), target); owner != "third" || err != nil {
		t.Errorf("the target belongs to %q, %v", owner, err)
	}
}

// TestGuardsOfTwoPipelinesInOneTarget is attack 47: what another pipeline wrote is neither ours nor
// unseen.
func TestGuardsOfTwoPipelinesInOneTarget(t *testing.T) {
	c, f := rig(t, func(o *Options) { o.Pipeline = "shop" })
	if v, pipelines, err := c.HighestGuard(t.Context(), target); v != 0 || len(pipelines) != 0 || err != nil {
		t.Errorf("empty table: %d, %q, %v", v, pipelines, err)
	}
	other := open(t, f.addr, func(o *Options) { o.Pipeline, o.Seal = "other", sealer(t, 1) })
	theirs := func(w *transform.Write) *transform.Write {
		w.Item.Pipeline = "other"
		w.Item.Guard = guard.Qualifier("other", w.Item.Table, w.Item.Key)
		return w
	}
	mustApply(t, c, own("a", 3, "x", "3"), share(transform.ClassD, "a", "row", 4, nil, "x", "4"),
		share(transform.ClassD, "a", "row", 5, []string{"x"}))
	mustApply(t, other, theirs(share(transform.ClassD, "a", "row", 7, nil, "y", "7")),
		theirs(share(transform.ClassD, "a", "row", 9, []string{"y"})))
	v, pipelines, err := c.HighestGuard(t.Context(), target)
	if diff := cmp.Diff([]string{"other", "shop"}, pipelines); v != change.Version(at(9)) || err != nil || diff != "" {
		t.Errorf("highest %d, %v (-want +got):\n%s", v, err, diff)
	}
	for limit, want := range map[int][]string{0: {"other"}, 1: {}, 2: {"other"}} {
		got, err := c.ForeignGuards(t.Context(), target, limit)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("in %d rows: %v (-want +got):\n%s", limit, err, diff)
		}
	}
	mustApply(t, other, sealed(theirs(own("z", 9, "x", "9"))))
	got, err := c.ForeignGuards(t.Context(), target, 0)
	if diff := cmp.Diff([]string{"", "other"}, got); err != nil || diff != "" {
		t.Errorf("with one that we cannot open: %v (-want +got):\n%s", err, diff)
	}
}

// TestFloorOfAnAdoptedTargetBeatsItsGuards: above the highest guard, every write of the new
// pipeline is done.
func TestFloorOfAnAdoptedTargetBeatsItsGuards(t *testing.T) {
	c, _ := rig(t)
	before := own("hats", 9, "x", "9")
	before.Item.Pipeline = "before"
	mustApply(t, c, before)
	v, _, err := c.HighestGuard(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, c, own("hats", int64(v)-at(0), "x", "late"), own("hats", int64(v)+1-at(0), "x", "new"))
	if diff := cmp.Diff(map[string]string{"hats d:x": "new"}, plain(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTargetIsForOneTableAlone: of replicas that found two tables of one target, the first takes
// it, at whatever moment the other one looks; until its replication has ended.
func TestTargetIsForOneTableAlone(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) { isForOneTable(t, c, "products") })
}

func isForOneTable(t *testing.T, c *Client, target string) {
	ctx := t.Context()
	if _, err := c.ClaimTarget(ctx, "shop", target); err != nil {
		t.Fatal(err)
	}
	holders := make([]string, 8)
	var wg sync.WaitGroup
	for i := range holders {
		wg.Go(func() {
			var err error
			if holders[i], err = c.ClaimSole(ctx, "shop", target, string('A'+rune(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, h := range holders {
		if h == "" || h != holders[0] {
			t.Errorf("table %d sees that the target is for %q, table 0 that it is for %q", i, h, holders[0])
		}
	}
	row, err := c.targetRepeatedly(ctx, target)
	if err != nil || row.Format != targetFormat {
		t.Errorf("format %d, %v", row.Format, err)
	}
	if err := c.Retire(ctx, "shop", target, holders[0], Retired{At: row.Since}); err != nil {
		t.Fatal(err)
	}
	if h, err := c.ClaimSole(ctx, "shop", target, "Z"); h != "Z" || err != nil {
		t.Errorf("after the end of the first: %q, %v", h, err)
	}
}

// TestMissingFamilyIsAnAnswer: the table that lacks it halts by itself, and Bigtable is not away.
func TestMissingFamilyIsAnAnswer(t *testing.T) {
	c, _ := rig(t)
	var told []error
	c.opt.Report = func(_ string, err error) { told = append(told, err) }
	for _, err := range []error{
		nil, status.Error(codes.NotFound, "no family"), status.Error(codes.Unavailable, "away"), context.Canceled,
		status.Error(codes.PermissionDenied, "no role"),
	} {
		c.report(target, err)
	}
	if len(told) != 4 || told[0] != nil || told[1] != nil || told[2] == nil || told[3] == nil {
		t.Errorf("%v", told)
	}
}
