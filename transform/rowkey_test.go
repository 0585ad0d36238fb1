package transform

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestKeyOfRow: a row of class R names its item, whatever its parts and escapes are. A row that
// shows the key only hashed, that several items share, or that no item can have, names none.
func TestKeyOfRow(t *testing.T) {
	text := &change.KeyAttr{Name: "sk", Type: 'S'}
	number := &change.KeyAttr{Name: "sk", Type: 'N'}
	for _, c := range []struct {
		sort       *change.KeyAttr
		rule, keys string
		named      bool
	}{
		{text, `match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}"`, `{"pk":{"S":"a"},"sk":{"S":"b#c%23"}}`, true},
		{text, `segments: escape, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}"`,
			`{"pk":{"S":"a#%23"},"sk":{"S":"b#c"}}`, true},
		{text, `segments: ordered, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}"`,
			`{"pk":{"S":"a\u0000#"},"sk":{"S":"b"}}`, true},
		{text, `match: {pk: "USER#{p}", sk: "ORDER#{s}"}, row: "u/{s}/{p}"`,
			`{"pk":{"S":"USER#7"},"sk":{"S":"ORDER#8"}}`, true},
		{text, `match: {pk: "USER#{p}", sk: "USER#{=p}"}, row: "{p}"`, `{"pk":{"S":"USER#7"},"sk":{"S":"USER#7"}}`, true},
		{text, `match: {sk: "META"}, row: "{pk}"`, `{"pk":{"S":"x"},"sk":{"S":"META"}}`, true},
		{number, `row: "{salt(pk;16)}#{pk}#{sk}"`, `{"pk":{"S":"a"},"sk":{"N":"12.5"}}`, true},
		{nil, `row: "{pk}"`, `{"pk":{"S":"big"}}`, true},
		{nil, `row: "{pk|hex}"`, `{"pk":{"S":"big"}}`, false},
		{text, `row: "{pk}"`, `{"pk":{"S":"a"},"sk":{"S":"b"}}`, false},
	} {
		tab := Table{Pipeline: "p", Source: "T", Target: "t",
			Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: c.sort}}
		p := compiled(t, tab, "families: {d: {max_versions: 1}}\nrules:\n- {name: r, "+c.rule+
			`, cells: [{attrs: all, except: [pk, sk], to: "d:{pk}/{sk}/{attr}"}]}`)
		rows, err := p.Project(image(t, []byte(c.keys)))
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %d rows, %v", c.rule, len(rows), err)
		}
		if got := string(p.KeyOfRow(rows[0].Key)); (got == c.keys) != c.named || !c.named && got != "" {
			t.Errorf("%s: row %q names %s, not %s", c.rule, rows[0].Key, got, c.keys)
		}
		if got := p.KeyOfRow([]byte("\xff\x00\x01")); c.sort != nil && got != nil {
			t.Errorf("%s: a row that no item has names %s", c.rule, got)
		}
	}
}

// TestKeyOfRowIsOneThatAnItemCanHave: a row with an empty part, or with one that is longer than
// DynamoDB takes, names no key. A reading of such a key is refused.
func TestKeyOfRowIsOneThatAnItemCanHave(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, kind := range []byte{'S', 'B'} {
		tab := Table{Pipeline: "p", Source: "T", Target: "t", Schema: change.KeySchema{
			Partition: change.KeyAttr{Name: "pk", Type: kind}, Sort: &change.KeyAttr{Name: "sk", Type: kind},
		}}
		p := compiled(t, tab, "families: {d: {max_versions: 1}}\nrules:\n"+
			`- {name: r, segments: escape, row: "{pk}#{sk}", cells: [{attrs: all, except: [pk, sk], to: "d:{attr}"}]}`)
		for row, named := range map[string]bool{
			"a#b": true, "": false, "#": false, "a#": false, "#b": false,
			"a#" + long: false, "a#" + long[1:]: true, long + "#b": true, long + long[1:] + "#b": false,
		} {
			if key := p.KeyOfRow([]byte(row)); (key != nil) != named {
				t.Errorf("key of type %c: row %.9q of %d bytes names %.60s", kind, row, len(row), key)
			}
		}
	}
}
