package source

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/failure"
)

// scanWire serves Scan of so many items with the keys 0, 1, …, three items a page.
func scanWire(items int, lie func(n int) *wireReply) *wire {
	w, n := newWire(), 0
	w.script = func(c wireCall) *wireReply {
		switch c.op {
		case "DescribeTable":
			return &wireReply{body: tableReply}
		case "DescribeTimeToLive":
			return &wireReply{body: `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`}
		}
		if n++; lie != nil {
			if reply := lie(n); reply != nil {
				return reply
			}
		}
		from, limit := 0, 3
		if key, ok := c.in["ExclusiveStartKey"].(map[string]any); ok {
			at, _ := strconv.Atoi(key["pk"].(map[string]any)["S"].(string))
			from = at + 1
		}
		if l, ok := c.in["Limit"].(float64); ok {
			limit = int(l)
		}
		var list []string
		for i := from; i < min(from+limit, items); i++ {
			list = append(list, fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))
		}
		cursor := ""
		if from+limit < items {
			cursor = fmt.Sprintf(`,"LastEvaluatedKey":{"pk":{"S":"%d"}}`, from+limit-1)
		}
		return &wireReply{body: fmt.Sprintf(`{"Items":[%s],"Count":%d%s}`, strings.Join(list, ","), len(list), cursor)}
	}
	return w
}

func scanAll(t *testing.T, s testSource, r ScanRequest) (keys []string, err error) {
	for {
		page, err := s.ScanPage(t.Context(), r)
		if err != nil {
			return keys, err
		}
		for _, item := range page.Items {
			keys = append(keys, strings.Trim(string(item), `{}:"pkS`))
		}
		if page.Done {
			return keys, nil
		}
		r.After = page.After
		page.Free()
	}
}

// TestFalseEndOfASegmentLeavesOutNothing: each call of a scan in turn answers with an empty page
// without a key to go on from, or with its items and without the key.
func TestFalseEndOfASegmentLeavesOutNothing(t *testing.T) {
	var want []string
	for i := range 10 {
		want = append(want, strconv.Itoa(i))
	}
	for lies := range 6 {
		w := scanWire(10, func(n int) *wireReply {
			if n == lies {
				return &wireReply{body: `{"Items":[],"Count":0}`}
			}
			return nil
		})
		got, err := scanAll(t, open(t, w), ScanRequest{Table: "T"})
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("empty page %d: %v: %s", lies, err, d)
		}
	}
	w := scanWire(10, func(n int) *wireReply {
		if n == 2 {
			return &wireReply{body: `{"Items":[{"pk":{"S":"3"}}],"Count":1}`}
		}
		return nil
	})
	got, err := scanAll(t, open(t, w), ScanRequest{Table: "T"})
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("a page without its key: %v: %s", err, d)
	}
}

// TestEndOfASegmentThatIsFalseAgainAndAgainIsAnError: the calls contradict each other.
func TestEndOfASegmentThatIsFalseAgainAndAgainIsAnError(t *testing.T) {
	w := scanWire(10, func(n int) *wireReply {
		if n%2 == 1 {
			return &wireReply{body: `{"Items":[],"Count":0}`}
		}
		return nil
	})
	if got, err := scanAll(t, open(t, w), ScanRequest{Table: "T"}); Classify(err) != failure.Transient || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestEmptySegmentEnds: two calls say so. A sample asks once.
func TestEmptySegmentEnds(t *testing.T) {
	for _, sampled := range []bool{false, true} {
		w := scanWire(0, nil)
		got, err := scanAll(t, open(t, w), ScanRequest{Table: "T", Sampled: sampled})
		want := 2
		if sampled {
			want = 1
		}
		if n := w.count("Scan", ""); err != nil || len(got) != 0 || n != want {
			t.Errorf("sampled %v: %v, %v, %d calls", sampled, got, err, n)
		}
	}
}
