package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// failing is a testing.TB whose failures are recorded instead of failing the test.
type failing struct {
	testing.TB
	errors []string
	fatal  string
}

func (f *failing) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatalOf returns what a function fails a test with, "" when it returns.
func fatalOf(t *testing.T, run func(t *failing)) string {
	t.Helper()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(f)
	}()
	<-done
	return f.fatal
}

func newWorld(t sandbox.TB, o sandbox.WorldOptions) *sandbox.World {
	o.Seed, o.NoNATS = 1, true
	return sandbox.NewWorld(t, o)
}

func TestWorldWritesItemsAndListsThem(t *testing.T) {
	w := newWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	w.Put("Orders", `a"`, "1", `"n":{"N":"1"}`)
	w.Put("Orders", `a"`, "2", "")
	w.Put("Orders", `a"`, "3", "")
	w.Update("Orders", `a"`, "1", "SET n = :n REMOVE gone", `":n":{"N":"2"}`)
	w.Delete("Orders", `a"`, "3")
	w.Delete("Orders", `a"`, "4")
	var got []string
	for _, item := range w.Items("Orders") {
		got = append(got, string(item))
	}
	want := []string{`{"n":{"N":"2"},"pk":{"S":"a\""},"sk":{"S":"1"}}`, `{"pk":{"S":"a\""},"sk":{"S":"2"}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if all, streamed := w.Ledger.Count("Orders"); all != 5 || streamed != 5 {
		t.Errorf("%d changes, %d streamed, want 5", all, streamed)
	}
}

func TestWorldTableHasTheKeysAndViewAskedFor(t *testing.T) {
	w := newWorld(t, sandbox.WorldOptions{View: "KEYS_ONLY"})
	w.CreateTable("Things", sandbox.Key{Name: "id", Type: "N"})
	var out struct {
		Table struct {
			KeySchema           []struct{ AttributeName, KeyType string }
			StreamSpecification struct{ StreamViewType string }
		}
	}
	if err := json.Unmarshal(w.Call("DescribeTable", `{"TableName":"Things"}`), &out); err != nil {
		t.Fatal(err)
	}
	if k := out.Table.KeySchema; len(k) != 1 || k[0].AttributeName != "id" || k[0].KeyType != "HASH" {
		t.Errorf("key schema %+v", k)
	}
	if v := out.Table.StreamSpecification.StreamViewType; v != "KEYS_ONLY" {
		t.Errorf("view %s", v)
	}
}

func TestRefusedCallFailsTheTestAndGoesOn(t *testing.T) {
	f := &failing{TB: t}
	w := newWorld(f, sandbox.WorldOptions{})
	w.Put("Nowhere", "a", "1", "")
	const want = "PutItem: 400 ResourceNotFoundException: Requested resource not found"
	if diff := cmp.Diff([]string{want}, f.errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if fatal := fatalOf(t, func(f *failing) { newWorld(f, sandbox.WorldOptions{}).Items("Nowhere") }); fatal == "" {
		t.Error("the items of a missing table do not end the test")
	}
}

func TestCallReturnsTheServicesErrorAndFaults(t *testing.T) {
	w := newWorld(t, sandbox.WorldOptions{})
	w.CreateTable("Orders")
	_, err := w.Sandbox.Call(t.Context(), "PutItem", `{"TableName":"Orders","Item":{"pk":{"S":"a"},"sk":{"S":"1"}},
		"ConditionExpression":"attribute_exists(pk)"}`)
	want := &sandbox.CallError{Operation: "PutItem", Status: 400, Code: "ConditionalCheckFailedException",
		Message: "The conditional request failed"}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Reset, Times: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Sandbox.Call(t.Context(), "ListStreams", `{}`)
	if broken := (*sandbox.CallError)(nil); !errors.As(err, &broken) || broken.Status != 0 {
		t.Errorf("reset: %v", err)
	}
	reply, err := w.Sandbox.Call(t.Context(), "ListStreams", `{}`)
	if err != nil || !strings.Contains(string(reply), "stream/") {
		t.Errorf("streams: %s, %v", reply, err)
	}
}

func TestProgressGrowsWithWritesAndServedRecords(t *testing.T) {
	w := newWorld(t, sandbox.WorldOptions{Options: sandbox.Options{Partitions: 1}})
	w.CreateTable("Orders")
	before := w.Progress()
	w.Call("GetItem", `{"TableName":"Orders","Key":{"pk":{"S":"a"},"sk":{"S":"1"}}}`)
	if n := w.Progress(); n != before {
		t.Errorf("a read moved progress from %d to %d", before, n)
	}
	w.Put("Orders", "a", "1", "")
	afterWrite := w.Progress()
	if afterWrite == before {
		t.Error("a write did not move progress")
	}
	arn, _, _, _ := w.Stream.Describe("Orders")
	var it struct{ ShardIterator string }
	reply := w.Call("GetShardIterator", fmt.Sprintf(`{"StreamArn":%q,"ShardId":%q,"ShardIteratorType":"TRIM_HORIZON"}`,
		arn, w.Stream.OpenShards("Orders")[0]))
	if err := json.Unmarshal(reply, &it); err != nil {
		t.Fatal(err)
	}
	w.Call("GetRecords", fmt.Sprintf(`{"ShardIterator":%q}`, it.ShardIterator))
	if w.Progress() != afterWrite+1 {
		t.Errorf("a served record moved progress from %d to %d", afterWrite, w.Progress())
	}
}

func TestWorldComparesThroughItsFunction(t *testing.T) {
	f := &failing{TB: t}
	w := newWorld(f, sandbox.WorldOptions{Compare: func(_ context.Context, table string) error {
		if table == "Orders" {
			return nil
		}
		return errors.New("2 differences")
	}})
	w.Equal("Orders", "Things")
	if diff := cmp.Diff([]string{"table Things: 2 differences"}, f.errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if fatal := fatalOf(t, func(f *failing) { newWorld(f, sandbox.WorldOptions{}).Equal("Orders") }); fatal == "" {
		t.Error("a world without Compare finds tables equal")
	}
}

// TestWaitLastsWhileThereIsProgress: the deadline renews with progress, up to Longest.
func TestWaitLastsWhileThereIsProgress(t *testing.T) {
	for name, c := range map[string]struct {
		moves time.Duration // how long progress is made
		fact  time.Duration // when the condition becomes true
		want  string        // in the failure; "" when there is none
	}{
		"at once":                   {0, 0, ""},
		"within patience":           {0, 50 * time.Second, ""},
		"no progress":               {0, 2 * time.Minute, "waited 1m0"},
		"progress":                  {2 * time.Minute, 150 * time.Second, ""},
		"progress, then none":       {90 * time.Second, 4 * time.Minute, "waited 2m30"},
		"progress and no end of it": {time.Hour, time.Hour, "waited 15m0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				watch := sandbox.Watch{
					Progress: func() uint64 { return uint64(min(time.Since(began), c.moves) / time.Second) },
					State:    func() any { return "half done" },
				}
				got := fatalOf(t, func(f *failing) {
					watch.Until(f, "all is done", func() bool { return time.Since(began) >= c.fact })
				})
				switch {
				case c.want == "" && got != "":
					t.Errorf("failed: %s", got)
				case !strings.HasPrefix(got, c.want):
					t.Errorf("failed with %q, want %q", got, c.want)
				case got != "" && !strings.HasSuffix(got, "half done"):
					t.Errorf("failed without the state: %s", got)
				}
			})
		})
	}
}

func TestWaitEndsWithTheSystemUnderTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		watch := sandbox.Watch{Err: func() error {
			if time.Since(began) > time.Second {
				return errors.New("the pipeline ended")
			}
			return nil
		}}
		got := fatalOf(t, func(f *failing) { watch.Until(f, "all is done", func() bool { return false }) })
		if want := "waiting until all is done: the pipeline ended"; got != want || time.Since(began) > 2*time.Second {
			t.Errorf("failed with %q after %v, want %q", got, time.Since(began), want)
		}
	})
}
