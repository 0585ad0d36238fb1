package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
)

// drawMapping draws a mapping for a table with keys pk and sk: one to three rules over kinds of
// items, with rows of any class, index rows, and emitters of any form. Many are refused by the
// compiler; what it takes must be right.
func drawMapping(t *rapid.T) string {
	pick := func(label string, options ...string) string { return rapid.SampledFrom(options).Draw(t, label) }
	var sb strings.Builder
	fmt.Fprintf(&sb, "segments: %s\nfamilies: {a: {max_versions: 1}, b: {max_versions: 1}, c: {max_versions: "+
		"1}}\nrules:\n", pick("segments", "strict", "escape", "ordered"))
	for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
		match := pick("match", `pk: "{p}", sk: "k1#{s}"`, `pk: "{p}", sk: "k2#{s}"`, `pk: "{p}", sk: "{s}"`,
			`pk: "{p}", sk: "{s}", site: {exists: true}`, `pk: "{p}", sk: "k1#{s}", site: {equals: A}`)
		row := pick("row", "{p}#{s}", "r%d#{p}#{s}", "{p}", "r%d#{p}", "{site}", "{site}#{p}#{s}", "r%d#{site}#{s}#{p}")
		fmt.Fprintf(&sb, "- name: r%d\n  match: {%s}\n  row: \"%s\"\n  cells:\n", i, match,
			strings.ReplaceAll(row, "%d", fmt.Sprint(i)))
		for j := range rapid.IntRange(1, 3).Draw(t, "emitters") {
			family := string("abc"[j])
			prefix := pick("prefix", "", "{s}/", fmt.Sprintf("%d{p}/{s}/", i))
			fmt.Fprintf(&sb, "  - %s\n", pick("emitter",
				fmt.Sprintf(`{attrs: all, except: [pk, sk], to: "%s:%s{attr}"}`, family, prefix),
				fmt.Sprintf(`{attrs: [x, y], to: "%s:%s{attr}"}`, family, prefix),
				fmt.Sprintf(`{attr: x, to: "%s:%sX", as: json}`, family, prefix),
				fmt.Sprintf(`{attr: x, to: "%s:%sX", ts: "{n}", ts_missing: skip}`, family, prefix),
				fmt.Sprintf(`{attr: x, to: "%s:%s{site}"}`, family, prefix),
				fmt.Sprintf(`{doc: all, to: "%s:%sj"}`, family, prefix),
				fmt.Sprintf(`{map: m, to: "%s:%s{key}", otherwise: skip}`, family, prefix),
				fmt.Sprintf(`{set: m, to: "%s:%s{member}", otherwise: "%s:%sother"}`, family, prefix, family, prefix),
				fmt.Sprintf(`{list: m, to: "%s:%s{i|pad(4)}", otherwise: skip}`, family, prefix),
				fmt.Sprintf(`{const: "0x00", to: "%s:%sk"}`, family, prefix)))
		}
		if rapid.Bool().Draw(t, "index") {
			fmt.Fprintf(&sb, "  index:\n  - {name: x, row: \"x%d#{site}#{p}#{s}\", cells: [{attr: y, to: \"c:y\"}]}\n", i)
		}
	}
	return sb.String()
}

func drawBody(t *rapid.T, _ string) string {
	var out []string
	if rapid.IntRange(0, 3).Draw(t, "site") > 0 {
		out = append(out, fmt.Sprintf(`"site":{"S":%q}`, rapid.SampledFrom([]string{"A", "B", "C#"}).Draw(t, "site value")))
	}
	if rapid.Bool().Draw(t, "n") {
		out = append(out, fmt.Sprintf(`"n":{"N":"%d"}`, rapid.IntRange(1, 3).Draw(t, "n value")))
	}
	return strings.Join(append(out, anyAttrs("x", "y", "m")(t, "")), ",")
}

var randomKeys = two("pk,sk", "a|k1#1", "a|k1#2", "a|k2#1", "b|k1#1", "b|z")

// TestRandomMappingsEndAtTheProjection runs random histories through random mappings: a refused
// change is a dead letter, and its item is left out of the comparison, as is every item that shares
// a column by acknowledgement. Resyncs of items at the end change nothing.
func TestRandomMappingsEndAtTheProjection(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var p *Program
		var text string
		for range 10 {
			text = drawMapping(t)
			m, problems := ParseMapping("m.yaml", []byte(text))
			if len(problems) > 0 {
				t.Fatalf("%v\n%s", problems, text)
			}
			if p, _ = Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: schema("pk:S", "sk:S"),
				Mapping: m}); p != nil {
				break
			}
		}
		if p == nil {
			return
		}
		h := drawHistory(t, p, randomKeys, func(t *rapid.T, k string) string { return strings.Trim(drawBody(t, k), ",") })
		if slices.ContainsFunc(h.changes, func(c *change.Change) bool { return refused(t, p, c) }) {
			return
		}
		taken++
		table := newModel()
		deliver(t, p, table, interleave(t, h.changes))
		for range rapid.IntRange(0, 2).Draw(t, "stale") {
			deliver(t, p, table, []*change.Change{rapid.SampledFrom(h.changes).Draw(t, "late")})
		}
		defer func() {
			if t.Failed() {
				t.Log(text)
			}
		}()
		expectEqual(t, p, table, h, nil)
		for i := range rapid.IntRange(0, 3).Draw(t, "resyncs") {
			key := rapid.SampledFrom(randomKeys).Draw(t, "resynced")
			r := resyncOf(t, p, key, h.items[key], late+int64(i))
			r.First = rapid.Bool().Draw(t, "first")
			table.resync(t, p, r)
			expectEqual(t, p, table, h, nil)
		}
	})
	if taken == 0 {
		t.Error("no history was compared: the test proves nothing")
	}
	t.Logf("%d histories compared", taken)
}

func refused(t tb, p *Program, c *change.Change) bool {
	err := p.Change(new(change.Decoder), c, new(Write))
	if r := (*Refusal)(nil); err != nil && !errors.As(err, &r) {
		t.Fatal(err)
	}
	return err != nil
}
