package fault_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rig is a server behind faults that counts the requests it carried out.
type rig struct {
	t       *testing.T
	faults  *fault.HTTP
	srv     *httptest.Server
	carried int
}

const body = `{"ok":"` + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" + `"}`

func newRig(t *testing.T) *rig {
	r := &rig{t: t, faults: fault.New(clock.NewVirtual(noon), 1)}
	r.srv = httptest.NewServer(r.faults.Wrap(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		r.carried++
		_, _ = io.WriteString(w, body)
	})))
	t.Cleanup(r.srv.Close)
	return r
}

func (r *rig) inject(rules ...fault.Rule) {
	r.t.Helper()
	for _, rule := range rules {
		if err := r.faults.Inject(rule); err != nil {
			r.t.Fatal(err)
		}
	}
}

// call posts an operation; it returns what came back.
func (r *rig) call(op string, headers ...string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.srv.URL, strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	if op != "" {
		req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

func TestRuleAppliesToItsOperationSoManyTimes(t *testing.T) {
	r := newRig(t)
	r.inject(fault.Rule{Effect: fault.Error, Operation: "PutItem", Code: "InternalServerError", Times: 2})
	var got []int
	for _, op := range []string{"GetItem", "PutItem", "", "PutItem", "PutItem"} {
		res, _, err := r.call(op)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, res.StatusCode)
	}
	if diff := cmp.Diff([]int{200, 500, 200, 500, 200}, got); diff != "" || r.carried != 3 {
		t.Errorf("%d carried out; statuses (-want +got):\n%s", r.carried, diff)
	}
}

func TestBrokenRepliesComeAfterTheRequestWasCarriedOut(t *testing.T) {
	r := newRig(t)
	r.inject(fault.Rule{Effect: fault.Cut, Times: 1})
	if _, text, err := r.call("PutItem"); !errors.Is(err, io.ErrUnexpectedEOF) || text != body[:len(body)/2] {
		t.Errorf("cut: %q, %v", text, err)
	}
	r.inject(fault.Rule{Effect: fault.Reset, Times: 1})
	if _, _, err := r.call("PutItem"); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("reset: %v", err)
	}
	r.inject(fault.Rule{Effect: fault.Stall, Times: 1, Delay: 5 * time.Millisecond})
	if _, text, err := r.call("PutItem"); err != nil || text != body {
		t.Errorf("stall: %q, %v", text, err)
	}
	if r.carried != 3 {
		t.Errorf("%d carried out", r.carried)
	}
}

func TestThrottleLetsItsRateThrough(t *testing.T) {
	r := newRig(t)
	r.inject(fault.Rule{Effect: fault.Throttle, PerSecond: 0.0001})
	for i, want := range []int{200, 400, 400} {
		if res, text, err := r.call("GetRecords"); err != nil || res.StatusCode != want || want == 400 &&
			!strings.Contains(text, "#ThrottlingException") {
			t.Errorf("call %d: %v %s %v", i, res, text, err)
		}
	}
	r.faults.Withdraw(fault.Throttle, "")
	if res, _, err := r.call("GetRecords"); err != nil || res.StatusCode != 200 {
		t.Errorf("after the end: %v %v", res, err)
	}
}

func TestOddsRepeatWithTheirSeed(t *testing.T) {
	draw := func() (got string) {
		r := newRig(t)
		r.inject(fault.Rule{Effect: fault.Expired, Odds: 0.5})
		for range 40 {
			res, _, err := r.call("PutItem")
			if err != nil {
				t.Fatal(err)
			}
			got += res.Status[:1]
		}
		return got
	}
	first := draw()
	if second := draw(); first != second {
		t.Errorf("%s, then %s", first, second)
	}
	if !strings.Contains(first, "2") || !strings.Contains(first, "4") {
		t.Errorf("drew %s", first)
	}
}

func TestTailOfRequestsWaitsLonger(t *testing.T) {
	r := newRig(t)
	r.inject(fault.Rule{Effect: fault.Latency, Delay: time.Millisecond, Tail: time.Hour, TailOdds: 1, Times: 1})
	done := make(chan error, 1)
	go func() {
		_, _, err := r.call("PutItem")
		done <- err
	}()
	// The first request waits for an hour; the next one does not.
	for r.faults.Pending() > 0 {
		select {
		case err := <-done:
			t.Fatalf("came back: %v", err)
		default:
		}
	}
	if _, _, err := r.call("PutItem"); err != nil {
		t.Error(err)
	}
	r.srv.CloseClientConnections()
	if err := <-done; err == nil {
		t.Error("the delayed request came back")
	}
}

func TestClockOfTheReply(t *testing.T) {
	r := newRig(t)
	r.faults.Skew(-time.Hour)
	res, _, err := r.call("PutItem")
	if err != nil || res.Header.Get("Date") != noon.Add(-time.Hour).Format(http.TimeFormat) {
		t.Errorf("date %v, %v", res.Header.Get("Date"), err)
	}
	r.faults.CheckTime(true)
	for at, want := range map[time.Duration]string{0: "Signature not yet current", -time.Hour: "ok",
		-2 * time.Hour: "Signature expired"} {
		if _, text, err := r.call("PutItem", "X-Amz-Date", noon.Add(at).Format("20060102T150405Z")); err != nil ||
			!strings.Contains(text, want) {
			t.Errorf("signed at %v: %s, %v", at, text, err)
		}
	}
}

func TestGzipForClientsThatAcceptIt(t *testing.T) {
	r := newRig(t)
	r.faults.Gzip(true)
	res, text, err := r.call("GetRecords", "Accept-Encoding", "gzip")
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v %v", res, err)
	}
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || string(plain) != body {
		t.Errorf("%s, %v", plain, err)
	}
	if res, text, err := r.call("GetRecords", "Accept-Encoding", "identity"); err != nil || text != body ||
		res.Header.Get("Content-Encoding") != "" {
		t.Errorf("identity: %s %v", text, err)
	}
}

func TestWrongRulesAreRefused(t *testing.T) {
	r := newRig(t)
	for _, rule := range []fault.Rule{
		{}, {Effect: "explode"}, {Effect: fault.Error}, {Effect: fault.Cut, Odds: 1.5}, {Effect: fault.Cut, Times: -1},
		{Effect: fault.Latency, Delay: -1},
	} {
		if err := r.faults.Inject(rule); err == nil {
			t.Errorf("rule %+v is taken", rule)
		}
	}
}

func TestRefusalHasTheSandboxTime(t *testing.T) {
	r := newRig(t)
	if err := r.faults.Inject(fault.Rule{Effect: fault.Throttle, Times: 1}); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	reply := httptest.NewRecorder()
	r.srv.Config.Handler.ServeHTTP(reply, req)
	if got, want := reply.Header().Get("Date"), noon.Format(http.TimeFormat); reply.Code == http.StatusOK || got != want {
		t.Errorf("%d with Date %q, want a refusal of %q", reply.Code, got, want)
	}
}
