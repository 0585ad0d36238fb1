package transform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// cellsOf shows an item's projection as row key → column → value.
func cellsOf(t tb, p *Program, item string) map[string]map[string]string {
	t.Helper()
	rows, err := p.Project(image(t, []byte(item)))
	if err != nil {
		t.Fatalf("project %s: %v", item, err)
	}
	out := map[string]map[string]string{}
	for _, r := range rows {
		cols := map[string]string{}
		for _, c := range r.Cells {
			cols[c.Family+":"+string(c.Qualifier)] = string(c.Value)
		}
		out[string(r.Key)] = cols
	}
	return out
}

func TestDefaultPresetKeepsAwkwardItemsApart(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S", "sk:S"), StripGlobal: true}, "")
	for _, tt := range []struct {
		name, item, key string
		cells           map[string]string
	}{
		{"plain", `{"pk":{"S":"hats"},"sk":{"S":"fedora"},"price":{"N":"12.50"}}`, "hats#fedora",
			map[string]string{"d:price": "12.5"}},
		{"hash in the partition key", `{"pk":{"S":"a#b%"},"sk":{"S":"c#d"}}`, "a%23b%25#c#d", map[string]string{}},
		{"null, empty and absent", `{"pk":{"S":"a"},"sk":{"S":"b"},"n":{"NULL":true},"e":{"S":""}}`, "a#b",
			map[string]string{"d:e": ""}},
		{"38 digits", `{"pk":{"S":"a"},"sk":{"S":"b"},"n":{"N":"12345678901234567890123456789012345678"}}`, "a#b",
			map[string]string{"d:n": "12345678901234567890123456789012345678"}},
		{"names with NUL, colon, hash, emoji", `{"pk":{"S":"a"},"sk":{"S":"b"},"x\u0000:y#😀":{"S":"v"}}`, "a#b",
			map[string]string{"d:x\x00:y#😀": "v"}},
		{"global table attributes", `{"pk":{"S":"a"},"sk":{"S":"b"},"aws:rep:updatetime":{"N":"1"}}`, "a#b",
			map[string]string{}},
		{"binary, bool, sets, maps",
			`{"pk":{"S":"a"},"sk":{"S":"b"},"b":{"B":"AP8="},"t":{"BOOL":true},"s":{"NS":["3","1.0","20"]},` +
				`"m":{"M":{"z":{"L":[{"NULL":true},{"B":"AA=="}]},"$a":{"N":"1"}}}}`, "a#b",
			map[string]string{"d:b": "\x00\xff", "d:t": "true", "d:s": "[1,20,3]", "d:m": `{"$$a":1,"z":[null,{"$b":"AA=="}]}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]map[string]string{tt.key: tt.cells}, cellsOf(t, p, tt.item)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultPresetWritesNumberAndBinaryKeys(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:B", "sk:N")}, "")
	got := cellsOf(t, p, `{"pk":{"B":"AP8="},"sk":{"N":"1.50E1"},"v":{"S":"x"}}`)
	if diff := cmp.Diff(map[string]map[string]string{"00ff#15": {"d:v": "x"}}, got); diff != "" {
		t.Error(diff)
	}
}

// step is one change of an item: nil images are absent.
func step(t tb, p *Program, version int64, old, now string) *change.Change {
	t.Helper()
	c := &change.Change{Version: change.Version(version), Created: change.Millis(version - version%1000),
		Op:             change.Modify,
		SequenceNumber: change.SequenceNumber(fmt.Sprint(version)),
		Feed: change.Feed{Stream: "arn:aws:dynamodb:eu-west-1:123456789012:table/T/stream/2026-01-01T00:00:00.000",
			Shard: "shardId-1"}}
	item := now
	switch {
	case old == "":
		c.Op = change.Insert
	case now == "":
		c.Op, item = change.Remove, old
	}
	if old != "" {
		c.Old = []byte(old)
	}
	if now != "" {
		c.New = []byte(now)
	}
	c.Keys = keysOf(t, p, []byte(item))
	return c
}

func writeOf(t tb, p *Program, cs ...*change.Change) *Write {
	t.Helper()
	w := new(Write)
	if err := p.Coalesce(new(change.Decoder), cs, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRemovedAttributeAndItemAreDeleted(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S")}, "")
	two, one := `{"pk":{"S":"a"},"x":{"S":"1"},"y":{"S":"2"}}`, `{"pk":{"S":"a"},"x":{"S":"3"}}`
	m := newModel()
	m.apply(t, writeOf(t, p, step(t, p, 1, "", two)))
	m.apply(t, writeOf(t, p, step(t, p, 2, two, one)))
	if got := len(m.rows["a"].cells); got != 2 { // x and the marker
		t.Errorf("after the removal of an attribute the row has %d cells: %v", got, m.rows["a"].cells)
	}
	m.apply(t, writeOf(t, p, step(t, p, 3, one, "")))
	cells := m.rows["a"].cells
	if len(cells) != 1 || cells[0].family != DeadFamily || cells[0].time != 3 {
		t.Errorf("after REMOVE the row has %v, want one tombstone at 3", cells)
	}
	m.apply(t, writeOf(t, p, step(t, p, 1, "", two)))
	if diff := cmp.Diff(cells, m.rows["a"].cells, cmp.AllowUnexported(modelCell{})); diff != "" {
		t.Errorf("a late write resurrected the item:\n%s", diff)
	}
}

func TestExpiredItemBecomesAnEvent(t *testing.T) {
	p := compiled(t, Table{Schema: schema("pk:S"), TTLAttr: "exp", OnTTLExpiry: "archive"}, "")
	c := step(t, p, 5007, `{"pk":{"S":"a"},"exp":{"N":"1700000000"}}`, "")
	var d change.Decoder
	// A deletion without an identity, after the item had expired at 4 s, at 5 s: TTL in another
	// region's replica.
	for expiry, want := range map[string]EventClass{
		"4": ClassInferred, "5": ClassInferred, "6": ClassUser, "": ClassUser,
	} {
		c := step(t, p, 5007, strings.Replace(`{"pk":{"S":"a"},"exp":{"N":"X"}}`, "X", expiry, 1), "")
		if expiry == "" {
			c = step(t, p, 5007, `{"pk":{"S":"a"}}`, "")
		}
		if e, err := p.Archive(&d, c); err != nil || e.Class != want {
			t.Errorf("a plain REMOVE of an item that expired at %q gave event %v, %v; want class %s", expiry, e, err, want)
		}
	}
	c.TTL = true
	e, err := p.Archive(&d, c)
	if err != nil {
		t.Fatal(err)
	}
	if e.Class != ClassTTL {
		t.Errorf("class %s", e.Class)
	}
	id, arn := "2026-01-01T00:00:00.000/shardId-1/5007", "arn:aws:dynamodb:eu-west-1:123456789012:table/T"
	if e.ID() != id || e.Source != arn {
		t.Errorf("event id %q source %q", e.ID(), e.Source)
	}
	want := `{"schema":1,"table":"T","keys":{"pk":{"S":"a"}},"item":{"pk":{"S":"a"},"exp":{"N":"1700000000"}},` +
		`"version":5007,"created":5000,"expiry":1700000000}`
	if diff := cmp.Diff(want, string(e.Data())); diff != "" {
		t.Error(diff)
	}
	if w := writeOf(t, p, c); len(w.Rows) != 1 || !w.Rows[0].Left {
		t.Errorf("an archived item must leave its row: %+v", w.Rows)
	}
}

func TestTwoTablesOnOneTargetMustNotShareRows(t *testing.T) {
	a := Table{Source: "A", Target: "t", Schema: schema("pk:S")}
	b := Table{Source: "B", Target: "t", Schema: schema("pk:S")}
	ps, problems := CompileAll([]Table{a, b})
	if ps[1] != nil || len(problems) == 0 || !strings.Contains(problems[0].What, "may write the same cell") {
		t.Errorf("two default mappings on one target were taken: %v", problems)
	}
}
