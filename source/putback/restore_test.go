package putback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/source"
)

// rig is a sandbox with a table Orders, and a Writer that does not wait between retries.
type rig struct {
	*Writer
	world  *sandbox.World
	pauses int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "sandbox")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	w := sandbox.NewWorld(t, sandbox.WorldOptions{Options: sandbox.Options{NoBigtable: true, NoNATS: true}})
	w.CreateTable("Orders")
	src, err := source.Open(t.Context(), source.Options{Region: "eu-west-1", Endpoint: w.Endpoint()}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(src.Close)
	info, err := src.Table(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Writer: New(src, &info, 1e6), world: w}
	r.pause = func(ctx context.Context, _ time.Duration) error { r.pauses++; return context.Cause(ctx) }
	return r
}

// put puts an item, and returns what the table has of it afterwards.
func (r *rig) put(t *testing.T, item string, want error) (units float64) {
	t.Helper()
	units, err := r.Put(t.Context(), []byte(item))
	if !errors.Is(err, want) {
		t.Fatalf("put %.80s: %v, want %v", item, err, want)
	}
	return units
}

// hard has every type, and what is lost on the way through a float64, a Go string or an omitted
// empty value.
const hard = `{"pk":{"S":"k\"\\\n\u0001/é😀"},"sk":{"S":"1"},"nul\u0000name":{"S":"x"},"empty":{"S":""},
"big":{"N":"12345678901234567890123456789012345678"},"tiny":{"N":"1E-130"},
"neg":{"N":"-9.9999999999999999999999999999999999999E+125"},
"b":{"B":"AAH/"},"none":{"B":""},"null":{"NULL":true},"no":{"BOOL":false},
"ss":{"SS":["y","x\u0001"]},"ns":{"NS":["2.5","1"]},
"bs":{"BS":["AQ==","AgM="]},"l":{"L":[]},"m":{"M":{"l":{"L":[{"N":"0.1"},{"S":""},{"M":{}}]},"e":{"M":{}}}}}`

func TestItemsOfEveryTypeArriveExactly(t *testing.T) {
	r := newRig(t)
	large := `{"pk":{"S":"large"},"sk":{"S":"1"},"x":{"S":"` + strings.Repeat("é", (400<<10-12)/2) + `"}}`
	for _, item := range []string{hard, large} {
		size, err := Size([]byte(item))
		if err != nil {
			t.Fatal(err)
		}
		if units := r.put(t, item, nil); units != Units(size) {
			t.Errorf("%.40s of %d bytes took %v units", item, size, units)
		}
	}
	for _, got := range r.world.Items("Orders") {
		if !Equal(got, []byte(hard), "") && !Equal(got, []byte(large), "") {
			t.Errorf("%.2000s", got)
		}
	}
	if Equal([]byte(hard), []byte(strings.Replace(hard, "345678\"", "345679\"", 1)), "") {
		t.Error("a digit does not count")
	}
}

func TestPutNeverOverwritesAndSaysWhatIsRefused(t *testing.T) {
	r := newRig(t)
	item := `{"pk":{"S":"a"},"sk":{"S":"1"},"v":{"N":"1"}}`
	r.put(t, item, nil)
	r.put(t, strings.Replace(item, `"N":"1"`, `"N":"2"`, 1), ErrExists)
	r.put(t, `{"pk":{"S":"a"}}`, ErrRefused)
	r.put(t, `{"pk":{"S":"big"},"sk":{"S":"1"},"x":{"S":"`+strings.Repeat("x", 400<<10)+`"}}`, ErrRefused)
	r.put(t, `{"pk"`, ErrRefused)
	if all := r.world.Items("Orders"); len(all) != 1 || !Equal(all[0], []byte(item), "") {
		t.Errorf("%s", all)
	}
}

func TestThrottledAndLostWritesAreRepeated(t *testing.T) {
	r := newRig(t)
	inject := func(rule fault.Rule) {
		if err := r.world.Faults.Inject(rule); err != nil {
			t.Fatal(err)
		}
	}
	put := func(key string, want error) {
		r.put(t, fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":"1"}}`, key), want)
	}
	inject(fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "ProvisionedThroughputExceededException", Times: 5})
	if put("throttled", nil); r.pauses != 5 {
		t.Errorf("%d pauses", r.pauses)
	}
	inject(fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "InternalServerError", Times: 2})
	put("failed", nil)
	inject(fault.Rule{Effect: fault.Reset, Operation: "PutItem", Times: 1}) // after it was carried out
	put("lost", ErrExists)
	inject(fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "ProvisionedThroughputExceededException"})
	_, err := r.Put(t.Context(), []byte(`{"pk":{"S":"never"},"sk":{"S":"1"}}`))
	if source.Classify(err) != failure.Throttled {
		t.Errorf("throttled for good: %v", err)
	}
	r.world.Faults.Calm()
	if all := r.world.Items("Orders"); len(all) != 3 {
		t.Errorf("%s", all)
	}
}

func TestTimeToLiveOfARestoredItem(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	item := func(at string) string { return `{"pk":{"S":"a"},"e\"x":` + at + `,"z":{"N":"1"}}` }
	for _, c := range []struct{ ttl, at, want string }{
		{"keep", `{"N":"17E8"}`, item(`{"N":"17E8"}`)},
		{"remove", `{"N":"17E8"}`, `{"pk":{"S":"a"},"z":{"N":"1"}}`},
		{"remove", `{"S":"17"}`, item(`{"S":"17"}`)}, // never expires
		{"+30d", `{"N":"1700000000.5"}`, item(`{"N":"1802592000"}`)},
		{"+90s", `{"N":"1"}`, item(`{"N":"1800000090"}`)},
		{"+30d", `{"NULL":true}`, item(`{"NULL":true}`)},
	} {
		ttl, err := ParseTTL(c.ttl)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ttl.Apply([]byte(item(c.at)), `e"x`, now)
		if err != nil || !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("%s of %s: %s, %v", c.ttl, c.at, got, err)
		}
		if !Equal(got, []byte(item(c.at)), `e"x`) {
			t.Errorf("%s changed more than the attribute: %s", c.ttl, got)
		}
	}
	for at, want := range map[string]bool{
		`{"N":"1800000000"}`: true, `{"N":"1800000001"}`: false, `{"N":"17E8"}`: true, `{"N":"1"}`: false,
		`{"S":"1700000000"}`: false,
	} {
		if got := Expires([]byte(item(at)), `e"x`, now); got != want {
			t.Errorf("expires at %s: %v", at, got)
		}
	}
	for _, text := range []string{"30d", "+0d", "+x", "never", "+1ms", "+-5h", "+99999d"} {
		if _, err := ParseTTL(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
