package transform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// scenario says how the items of a worked example look in random histories.
type scenario struct {
	mapping  string
	keys     []string // key attributes as JSON members
	body     func(t *rapid.T, key string) string
	siblings map[string]bool // families whose cells only their time distinguishes
}

var scalars = []string{`{"S":"x"}`, `{"S":""}`, `{"S":"long text with # and %"}`, `{"N":"1"}`, `{"N":"1.50"}`,
	`{"N":"-7E+40"}`, `{"BOOL":true}`, `{"NULL":true}`, `{"B":"AP8="}`,
	`{"SS":["b","a"]}`, `{"NS":["1.0","2"]}`, `{"L":[{"S":"a"},{"N":"3"}]}`, `{"M":{"k":{"S":"v"},"l":{"N":"2"}}}`,
	`{"M":{}}`}

// anyAttrs draws a subset of attributes with values of any type.
func anyAttrs(names ...string) func(*rapid.T, string) string {
	return func(t *rapid.T, _ string) string {
		var out []string
		for _, n := range names {
			if rapid.Bool().Draw(t, n) {
				out = append(out, fmt.Sprintf("%q:%s", n, rapid.SampledFrom(scalars).Draw(t, n+" value")))
			}
		}
		return strings.Join(out, ",")
	}
}

func number(t *rapid.T, name string) string {
	return fmt.Sprintf(`%q:{"N":"%d"}`, name, rapid.IntRange(0, 5).Draw(t, name))
}

func two(names string, values ...string) (out []string) {
	pk, sk, _ := strings.Cut(names, ",")
	for _, v := range values {
		a, b, _ := strings.Cut(v, "|")
		out = append(out, fmt.Sprintf(`%q:{"S":%q},%q:{"S":%q}`, pk, a, sk, b))
	}
	return out
}

func videoBody(t *rapid.T, key string) string {
	switch {
	case strings.Contains(key, "VideoComment"):
		// Comment times are unique per key, as the acknowledgement in the mapping promises.
		return fmt.Sprintf(`"Content":{"S":"c%d"},"CreatedAt":{"S":"2023-09-10T19:0%d:%s"}`,
			rapid.IntRange(0, 9).Draw(t, "content"), rapid.IntRange(0, 3).Draw(t, "minute"), key[len(key)-4:len(key)-2])
	case strings.Contains(key, "Stats"):
		return number(t, "Count") + "," + number(t, "ViewCount")
	}
	return fmt.Sprintf(`"Format":{"S":"{\"v\":%d}"},"UploadDate":{"S":"2023-09-10T15:21:4%d"}`,
		rapid.IntRange(0, 9).Draw(t, "format"), rapid.IntRange(0, 3).Draw(t, "date"))
}

var videoKeys = two("pk,sk", "1|Video", "1|VideoComment#9811", "1|VideoComment#8622", "1|VideoStatsLikes",
	"1|VideoStatsViews", "2|Video", "2|VideoStats", "2|VideoComment#7733")

var scenarios = []scenario{
	{mapping: "01_catalog.yaml", keys: two("pk,sk", "hats|a", "hats|b#c", "shoes|a"), body: anyAttrs("x", "y", "z")},
	{mapping: "02_video.yaml", keys: videoKeys, body: videoBody, siblings: map[string]bool{"Attributes": true}},
	{mapping: "02b_video_safe.yaml", keys: videoKeys, body: videoBody},
	{mapping: "02c_video_sk_time.yaml", keys: videoKeys, body: videoBody, siblings: map[string]bool{"Comments": true}},
	{mapping: "03_invoice.yaml", keys: two("pk,sk", "Invoice-1|Invoice-1", "Invoice-1|Payment-1", "Invoice-1|Payment-2",
		"Invoice-2|Payment-1"),
		body: func(t *rapid.T, _ string) string {
			return fmt.Sprintf(`"Details":{"S":"d%d"},"DateCreated":{"S":"2023-09-0%d"}`,
				rapid.IntRange(0, 9).Draw(t, "details"), rapid.IntRange(1, 3).Draw(t, "date"))
		}},
	{mapping: "04_counter.yaml", keys: []string{`"pk":{"S":"A.0"}`, `"pk":{"S":"A.1"}`, `"pk":{"S":"A"}`,
		`"pk":{"S":"B.1"}`},
		body: func(t *rapid.T, _ string) string { return number(t, "votes") }},
	{mapping: "05_versions.yaml", keys: two("pk,sk", "o|v0_d", "o|v1_d", "o|v2_d", "o|v3_d", "p|v1_d"),
		body: anyAttrs("t"), siblings: map[string]bool{"d": true}},
	{mapping: "06_erd.yaml", keys: two("PK,SK", "USER#1|USER#", "USER#1|PERSONAL#s#layout", "USER#1|SUBSCRIBE#s#NEWS#7",
		"USER#2|SUBSCRIBE#s#NEWS#7", "SERVICE#s|SERVICE#", "SUBSCRIBE#s#NEWS#7|SUBSCRIBE#"),
		body: func(t *rapid.T, key string) string {
			if strings.Contains(key, `USER#1"},"SK":{"S":"SUB`) || strings.Contains(key, "USER#2") {
				return `"data":{"S":"SUBSCRIBE_USER"}` + suffix(number(t, "n"))
			}
			return anyAttrs("email", "name")(t, key)
		}},
	{mapping: "07_ttl.yaml", keys: two("userId,msgId", "u|1", "u|2", "v|1"), body: anyAttrs("text", "more")},
	{mapping: "07b_ttl_gc.yaml", keys: two("userId,msgId", "u|1", "u|2"),
		body: func(t *rapid.T, k string) string {
			return fmt.Sprintf(`"expiresAt":{"N":"17000000%02d"}`, rapid.IntRange(0, 3).Draw(t, "exp")) +
				suffix(anyAttrs("text")(t, k))
		}},
	{mapping: "08_document.yaml", keys: two("pk,sk", "a|1", "a|2"), body: anyAttrs("x", "y")},
	{mapping: "09_tags_lists.yaml", keys: []string{`"pk":{"S":"t#a@b"},"sk":{"N":"-1.5"}`,
		`"pk":{"S":"t#a@b"},"sk":{"N":"20"}`}, body: func(t *rapid.T, k string) string {
		tags := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string]).Draw(t, "tags")
		lines := rapid.IntRange(0, 3).Draw(t, "lines")
		return fmt.Sprintf(`"tags":{"SS":["%s"]},"lines":{"L":[%s]},"opts":{"M":{"k%d":{"N":"1"}}}`,
			strings.Join(tags, `","`),
			strings.TrimSuffix(strings.Repeat(`{"S":"l"},`, lines), ","), lines) + suffix(anyAttrs("x", "y")(t, k))
	}},
	{mapping: "10_regroup.yaml", keys: []string{`"id":{"S":"a"}`, `"id":{"S":"b"}`, `"id":{"S":"c"}`},
		body: func(t *rapid.T, k string) string {
			return fmt.Sprintf(`"site":{"S":"s%d"}`, rapid.IntRange(0, 2).Draw(t, "site")) + suffix(anyAttrs("x", "y")(t, k))
		}},
	{mapping: "11_google.yaml", keys: []string{`"Username":{"S":"a"}`, `"Username":{"S":"b"}`},
		body: anyAttrs("x", "y", "z")},
}

func suffix(s string) string {
	if s == "" {
		return ""
	}
	return "," + s
}

// history is a random life of a few items: the changes in order, and what is left at the end.
type history struct {
	changes []*change.Change
	items   map[string]string
}

func drawHistory(t *rapid.T, p *Program, keys []string, body func(*rapid.T, string) string) history {
	h := history{items: map[string]string{}}
	version := int64(1_000_000)
	for range rapid.IntRange(2, 16).Draw(t, "changes") {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		old := h.items[key]
		version += int64(rapid.IntRange(1, 3).Draw(t, "gap"))
		now := ""
		if old == "" || rapid.IntRange(0, 3).Draw(t, "remove") > 0 {
			now = "{" + key + suffix(body(t, key)) + "}"
		}
		h.changes = append(h.changes, step(t, p, version, old, now))
		if now == "" {
			delete(h.items, key)
		} else {
			h.items[key] = now
		}
	}
	return h
}

// deliver applies changes in batches: neighbours of one item are united where the coin says so.
func deliver(t *rapid.T, p *Program, m *model, cs []*change.Change) {
	pending := map[string][]*change.Change{}
	var order []string
	flush := func(k string) {
		if len(pending[k]) > 0 {
			w := writeOf(t, p, pending[k]...)
			checkWrite(t, w)
			m.apply(t, w)
			delete(pending, k)
		}
	}
	for _, c := range cs {
		k := string(c.Keys)
		pending[k] = append(pending[k], c)
		order = append(order, k)
		if !p.CanCoalesce() || rapid.Bool().Draw(t, "flush") {
			flush(k)
		}
	}
	for _, k := range order {
		flush(k)
	}
}

// checkWrite holds a Write to what every sink relies on.
func checkWrite(t tb, w *Write) {
	t.Helper()
	left := false
	for _, r := range w.Rows {
		if left && !r.Left {
			t.Fatalf("row %q is entered after another one was left", r.Key)
		}
		left = left || r.Left
		for _, d := range r.Deletes {
			if d.Qualifier == nil {
				t.Fatalf("row %q: a delete takes the whole family %s", r.Key, d.Family)
			}
			if d.To < d.From || (d.To == d.From && d.To != 0) {
				t.Fatalf("row %q: delete [%d, %d) of %s:%s is empty or backwards", r.Key, d.From, d.To, d.Family, d.Qualifier)
			}
			for _, c := range r.Cells {
				exact := d.To > 0 && c.Family == d.Family && string(c.Qualifier) == string(d.Qualifier) && c.Mapped &&
					c.Time >= d.From && c.Time < d.To
				if exact {
					t.Fatalf("row %q: the write deletes a cell that it sets: %s:%s at %d", r.Key, d.Family, d.Qualifier, c.Time)
				}
				if d.Versioned && c.Mapped && c.Family == d.Family && string(c.Qualifier) == string(d.Qualifier) {
					t.Fatalf("row %q: column %s:%s has the mapping's times, but its delete may run bounded by a version", r.Key,
						d.Family, d.Qualifier)
				}
			}
		}
	}
}

func expectEqual(t *rapid.T, p *Program, m *model, h history, siblings map[string]bool) {
	t.Helper()
	want, got := projection(t, p, h.items, siblings), m.plain(siblings)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the table is not the projection of the final items (-want +got):\n%s", diff)
	}
}

func eachScenario(t *testing.T, f func(t *rapid.T, p *Program, s scenario, h history)) {
	for _, s := range scenarios {
		t.Run(s.mapping, func(t *testing.T) {
			p := example(t, s.mapping)
			rapid.Check(t, func(t *rapid.T) { f(t, p, s, drawHistory(t, p, s.keys, s.body)) })
		})
	}
}

// eachHealing runs the scenarios whose rows and columns are functions of the key alone.
func eachHealing(t *testing.T, f func(t *rapid.T, p *Program, s scenario, h history)) {
	ran := 0
	for _, s := range scenarios {
		p := example(t, s.mapping)
		if slices.ContainsFunc(p.prog.Rules, func(r *ir.Rule) bool { return !r.Heals }) {
			continue
		}
		ran++
		t.Run(s.mapping, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { f(t, p, s, drawHistory(t, p, s.keys, s.body)) })
		})
	}
	if ran < 5 {
		t.Errorf("only %d mappings have rows that depend on the key alone", ran)
	}
}

func TestInOrderDeliveryEndsAtTheProjection(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		deliver(t, p, m, h.changes)
		expectEqual(t, p, m, h, s.siblings)
	})
}

func TestReplayedSuffixesChangeNothing(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		for at := 0; at < len(h.changes); {
			to := rapid.IntRange(at+1, len(h.changes)).Draw(t, "crash at")
			back := rapid.IntRange(0, at).Draw(t, "resume at")
			deliver(t, p, m, h.changes[back:to])
			at = to
		}
		expectEqual(t, p, m, h, s.siblings)
	})
}

// interleave keeps the order of each item's changes and nothing else.
func interleave(t *rapid.T, cs []*change.Change) (out []*change.Change) {
	queues := map[string][]*change.Change{}
	for _, c := range cs {
		queues[string(c.Keys)] = append(queues[string(c.Keys)], c)
	}
	for len(queues) > 0 {
		k := rapid.SampledFrom(slices.Sorted(maps.Keys(queues))).Draw(t, "next item")
		out = append(out, queues[k][0])
		if queues[k] = queues[k][1:]; len(queues[k]) == 0 {
			delete(queues, k)
		}
	}
	return out
}

func TestItemsMayInterleaveInAnyWay(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		deliver(t, p, m, interleave(t, h.changes))
		expectEqual(t, p, m, h, s.siblings)
	})
}

func TestStaleRedeliveryChangesNothing(t *testing.T) {
	eachScenario(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		deliver(t, p, m, h.changes)
		for range rapid.IntRange(1, 3).Draw(t, "stale") {
			deliver(t, p, m, []*change.Change{rapid.SampledFrom(h.changes).Draw(t, "late")})
		}
		expectEqual(t, p, m, h, s.siblings)
	})
}

func TestAnyOrderEndsRightWhereRowsDependOnTheKeyAlone(t *testing.T) {
	eachHealing(t, func(t *rapid.T, p *Program, s scenario, h history) {
		m := newModel()
		cs := rapid.Permutation(h.changes).Draw(t, "order")
		for _, c := range cs {
			deliver(t, p, m, []*change.Change{c})
			if rapid.Bool().Draw(t, "again") {
				deliver(t, p, m, []*change.Change{rapid.SampledFrom(cs).Draw(t, "which")})
			}
		}
		expectEqual(t, p, m, h, s.siblings)
	})
}
