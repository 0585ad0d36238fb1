package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// TestSegmentsAreReadOnFromTheirKeys reads three segments in turn, a page each, and carries nothing
// but After from one page to the next, as a copy does that was killed in between.
func TestSegmentsAreReadOnFromTheirKeys(t *testing.T) {
	const items, segments = 90, 3
	w := newWorld(t)
	info := createTable(t, w.testSource, "Tab")
	for i := range items {
		w.put(t, "Tab", i)
	}
	want := map[string]bool{}
	for page, err := range w.Scan(t.Context(), "Tab", 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			want[string(canonical(t, info, item))] = true
		}
	}
	var after [segments]string
	var done [segments]bool
	for open := segments; open > 0; {
		for i := range segments {
			if done[i] {
				continue
			}
			before := change.MillisOf(w.Clock.Now())
			r := ScanRequest{Table: "Tab", Segment: i, Total: segments, After: after[i], Limit: 7}
			page, err := w.ScanPage(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if page.Requested == 0 || page.Requested > before || page.Answered <= page.Requested || page.At.IsZero() ||
				page.Bytes == 0 || len(page.Items) > 7 || len(page.Items) > 0 && page.Units <= 0 {
				t.Fatalf("%+v, asked at %d", page, before)
			}
			for _, item := range page.Items {
				key := string(canonical(t, info, item))
				if !want[key] {
					t.Errorf("item %s comes twice or is none", key)
				}
				delete(want, key)
			}
			if after[i], done[i] = page.After, page.Done; page.Done {
				open--
			}
			page.Free()
		}
	}
	if len(want) != 0 {
		t.Errorf("%d items are missing", len(want))
	}
}

func canonical(t *testing.T, info TableInfo, item []byte) []byte {
	t.Helper()
	var d change.Decoder
	img, err := d.Image(item)
	if err != nil {
		t.Fatal(err)
	}
	key, err := info.Schema.Canonical(nil, img)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestStrongPageCostsTwice: the default is strongly consistent.
func TestStrongPageCostsTwice(t *testing.T) {
	w := newWorld(t)
	createTable(t, w.testSource, "Tab")
	for i := range 200 {
		w.put(t, "Tab", i)
	}
	strong, err := w.ScanPage(t.Context(), ScanRequest{Table: "Tab"})
	if err != nil {
		t.Fatal(err)
	}
	eventual, err := w.ScanPage(t.Context(), ScanRequest{Table: "Tab", Eventual: true})
	if err != nil {
		t.Fatal(err)
	}
	if strong.Units != 2*eventual.Units || strong.Units == 0 {
		t.Errorf("strong %v units, eventual %v", strong.Units, eventual.Units)
	}
}

const honestPage = `{"Count":1,"Items":[{"pk":{"S":"a"}}],"LastEvaluatedKey":{"pk":{"S":"a"}},"ScannedCount":1}`

// TestBadPageIsNeverTheEnd: a page that is cut, empty or undated is an error to try again, in one
// call each, and never the end of the segment.
func TestBadPageIsNeverTheEnd(t *testing.T) {
	dateless := map[string]string{"Date": ""}
	for name, c := range map[string]struct {
		reply wireReply
		is    error
	}{
		"no date":      {wireReply{body: honestPage, header: dateless}, ErrNoDate},
		"a bad date":   {wireReply{body: honestPage, header: map[string]string{"Date": "yesterday"}}, ErrNoDate},
		"cut":          {wireReply{body: honestPage[:len(honestPage)/2]}, change.ErrMalformed},
		"empty":        {wireReply{}, change.ErrMalformed},
		"no items":     {wireReply{body: `{}`}, nil},
		"null items":   {wireReply{body: `{"Items":null}`}, change.ErrMalformed},
		"items lost":   {wireReply{body: `{"Count":2,"Items":[{"pk":{"S":"a"}}]}`}, nil},
		"no object":    {wireReply{body: `{"Items":[1]}`}, nil},
		"an empty key": {wireReply{body: `{"Items":[],"LastEvaluatedKey":{}}`}, nil},
		"same key":     {wireReply{body: `{"Items":[],"LastEvaluatedKey":{"pk":{"S":"x"}}}`}, ErrRepeatedCursor},
		"wrong sum":    {wireReply{body: honestPage, header: map[string]string{"X-Amz-Crc32": "1"}}, nil},
		"proxy":        {wireReply{status: 502, body: "<html>"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			w.script = func(wireCall) *wireReply { r := c.reply; return &r }
			page, err := open(t, w).ScanPage(t.Context(), ScanRequest{Table: "Tab", After: `{"pk":{"S":"x"}}`})
			if page != nil || Classify(err) != failure.Transient || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%+v, %v: %v", page, Classify(err), err)
			}
			if n := w.count("Scan", ""); n != 1 {
				t.Errorf("%d calls: the pace is the caller's", n)
			}
		})
	}
}

// TestCutPageOnTheWire: the same over a connection that breaks in the middle of a page.
func TestCutPageOnTheWire(t *testing.T) {
	w := newWorld(t)
	createTable(t, w.testSource, "Tab")
	for i := range 100 {
		w.put(t, "Tab", i)
	}
	if err := w.Faults.Inject(fault.Rule{Effect: fault.Cut, Operation: "Scan", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ScanPage(t.Context(), ScanRequest{Table: "Tab"}); Classify(err) != failure.Transient {
		t.Errorf("%v: %v", Classify(err), err)
	}
	page, err := w.ScanPage(t.Context(), ScanRequest{Table: "Tab"})
	if err != nil || len(page.Items) == 0 || !page.Done {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestThrottledPageIsTheCallersToPace(t *testing.T) {
	w := newWire()
	w.script = func(wireCall) *wireReply { return refuse("ProvisionedThroughputExceededException", "slower") }
	_, err := open(t, w).ScanPage(t.Context(), ScanRequest{Table: "Tab"})
	if n := w.count("Scan", ""); Classify(err) != failure.Throttled || n != 1 {
		t.Errorf("%d calls, %v", n, err)
	}
	bad := ScanRequest{Table: "Tab", After: `{"pk":`}
	if _, err := open(t, w).ScanPage(t.Context(), bad); Classify(err) != failure.Fatal {
		t.Error(err)
	}
}

// slowNetwork takes random times for each way of a call, in virtual time.
type slowNetwork struct {
	next         direct
	there, back  time.Duration
	sent, served time.Time
}

func (n *slowNetwork) Do(r *http.Request) (*http.Response, error) {
	n.sent = time.Now()
	time.Sleep(n.there)
	n.served = time.Now()
	reply, err := n.next.Do(r)
	time.Sleep(n.back)
	return reply, err
}

// TestRequestedIsNeverLaterThanTheRequest: the version of what a page shows is computed from
// Requested, so that it must lie before any change which the page lacks, although Date has whole
// seconds and says nothing of the way back.
func TestRequestedIsNeverLaterThanTheRequest(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.script = func(wireCall) *wireReply { return &wireReply{body: honestPage} }
		network := &slowNetwork{next: direct{w}}
		s := open(t, w, func(o *Options) { o.HTTPClient = network })
		for range 500 {
			time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Second))))
			network.there = time.Duration(rnd.Int64N(int64(2 * time.Second)))
			network.back = time.Duration(rnd.Int64N(int64(2 * time.Second)))
			page, err := s.ScanPage(t.Context(), ScanRequest{Table: "Tab"})
			if err != nil {
				t.Fatal(err)
			}
			sent, served := change.MillisOf(network.sent), change.MillisOf(network.served)
			if page.Requested > sent || page.Requested < sent-5100 || page.Answered > served || page.Answered < served-1000 ||
				page.At.After(network.sent) {
				t.Fatalf("seed %d: sent at %d, served at %d, page from %d to %d", seed, sent, served, page.Requested, page.Answered)
			}
		}
	})
}

// TestTellingALargePage: a page of more than a megabyte, in which items hold braces, quotes and
// commas, is cut into the same items as the SDK's decoder makes of it.
func TestTellingALargePage(t *testing.T) {
	var items []string
	for i := range 3000 {
		const form = `{"pk":{"S":"%d}]\"{,\\"},"v":{"L":[{"S":"%s"},{"M":{}}]}}`
		items = append(items, fmt.Sprintf(form, i, strings.Repeat("x", 400)))
	}
	w := newWire()
	w.script = func(wireCall) *wireReply {
		return &wireReply{body: fmt.Sprintf(`{"Items":[%s],"Count":3000}`, strings.Join(items, " ,\n"))}
	}
	page, err := open(t, w).ScanPage(t.Context(), ScanRequest{Table: "Tab", Sampled: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range page.Items {
		if string(item) != items[i] {
			t.Fatalf("item %d is %s", i, item)
		}
	}
	if len(page.Items) != 3000 || !page.Done {
		t.Errorf("%d items", len(page.Items))
	}
}
