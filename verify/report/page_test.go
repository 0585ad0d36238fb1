package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/verify"
)

// found is the result of a table in which some items differ, and its differences as their file has
// them.
func found(t *testing.T, items int, values bool) ([]Table, *Collector) {
	t.Helper()
	table := Table{Source: "Orders", Target: "orders", Items: 12_000, Rows: 12_000, Cells: 48_000,
		Began: time.Unix(1_700_000_000, 0), Ended: time.Unix(1_700_000_042, 0)}
	table.CountGroups(map[string]string{"rule item": "{p}#{s}", "index by_text": "by#{text}#{p}"}, values)
	var file bytes.Buffer
	content := func(s string) *verify.Content {
		c := &verify.Content{Bytes: len(s)}
		if values {
			c.Value = []byte(s)[:min(len(s), 40)]
		}
		return c
	}
	write := func(d *Difference) {
		t.Helper()
		if err := d.Write(&file); err != nil {
			t.Fatal(err)
		}
	}
	cell := verify.Open{Kind: verify.Foreign, Row: []byte("secret#nobody"), Family: "d", Qualifier: []byte("secretcolumn")}
	table.AddCell(&cell)
	write(OfCell("orders", &cell))
	for i := range items {
		row, other := fmt.Appendf(nil, "secret#hats#%d", i), fmt.Appendf(nil, "by#secret#%d", i)
		v := verify.Verdict{Key: fmt.Sprintf(`{"pk":{"S":"secret#hats"},"sk":{"N":"%d"}}`, i), Status: verify.Different,
			Kinds: []verify.Kind{verify.Value, verify.MissingCell, verify.Stale}, Cells: []verify.CellDifference{
				{Kind: verify.Value, Row: row, Rule: "rule item", Entry: "attrs: all → d:{attr}", Columns: "d:{attr}", Family: "d",
					Qualifier: []byte("price"), Have: content("12.50"), Want: content("<script>secret</script>")},
				{Kind: verify.MissingCell, Row: row, Rule: "rule item", Entry: "attrs: all → d:{attr}", Columns: "d:{attr}",
					Family:    "d",
					Qualifier: []byte("description"), Want: content(strings.Repeat("secret and long ", 20))},
				{Kind: verify.Stale, Row: other, Rule: "index by_text", Guard: 1_700_000_000_123},
				{Kind: verify.ExtraCell, Row: other, Rule: "index by_text", Entry: "attr x → d:x", Columns: "d:x", Family: "d",
					Qualifier: []byte{0xff, 1}, Have: content("\x00\x01")},
			}}
		table.Add(&v)
		write(OfItem("Orders", "orders", &v))
	}
	refused := verify.Verdict{Key: `{"pk":{"S":"secret"}}`, Status: verify.Refused, Why: "pk secret matches no rule"}
	table.Add(&refused)
	write(OfItem("Orders", "orders", &refused))
	table.Finish()
	c := &Collector{}
	for rest := file.Bytes(); len(rest) > 0; { // in pieces that end anywhere
		n := min(len(rest), 97)
		if _, err := c.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	return []Table{table}, c
}

func written(t *testing.T, o PageOptions, items int) string {
	t.Helper()
	tables, c := found(t, items, o.ShowData)
	var b strings.Builder
	if err := WritePage(&b, o, tables, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNothingOfTheDataIsShownUnasked: no key, row, column name, value or refusal.
func TestNothingOfTheDataIsShownUnasked(t *testing.T) {
	out := written(t, PageOptions{Pipeline: "shop", File: "d.jsonl"}, 3)
	for _, hidden := range []string{"secret", "12.50", "description", "hats"} {
		if strings.Contains(out, hidden) {
			t.Errorf("%q is in the page", hidden)
		}
	}
	for _, shown := range []string{"is-different", "wrong cells", "d:{attr}", "by#{text}#{p}", "5 bytes",
		"lines of d.jsonl", "<b>5</b>", "2023-11-14 22:13:20.123 UTC"} {
		if !strings.Contains(out, shown) {
			t.Errorf("%q is not in the page", shown)
		}
	}
}

func TestDataIsShownAndEscaped(t *testing.T) {
	out := written(t, PageOptions{Pipeline: "shop", ShowData: true}, 3)
	for _, shown := range []string{"pk=secret#hats  sk=2", "&lt;script&gt;secret", "12.50", "d:0xff01",
		"0x0001", "(320 bytes)", "by#secret#1", "secret matches no rule", "secret#nobody", "<td>secret#</td>"} {
		if !strings.Contains(out, shown) {
			t.Errorf("%q is not in the page", shown)
		}
	}
}

// TestPageNeedsNothingElse: it loads nothing, runs nothing, and stays small.
func TestPageNeedsNothingElse(t *testing.T) {
	out := written(t, PageOptions{Pipeline: "shop", ShowData: true}, 5000)
	for _, part := range []string{"<script", "http:", "https:", "src=", "@import", "url("} {
		if strings.Contains(out, part) {
			t.Errorf("%q is in the page", part)
		}
	}
	if n := strings.Count(out, "<details"); n != shownItems+1 || !strings.Contains(out, "The first of 5,002 differences") {
		t.Errorf("%d differences are shown", n)
	}
	if len(out) > 1<<20 {
		t.Errorf("%d bytes", len(out))
	}
}
