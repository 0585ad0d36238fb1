package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// plain turns a node into what encoding/json reads.
func plain(n *wire.Node) any {
	switch n.Kind {
	case wire.String:
		return n.Text
	case wire.Number:
		return json.Number(n.Text)
	case wire.Bool:
		return n.Text == "true"
	case wire.Array:
		out := []any{}
		for i := range n.Kids {
			out = append(out, plain(&n.Kids[i]))
		}
		return out
	case wire.Object:
		out := map[string]any{}
		for i := range n.Kids {
			out[n.Kids[i].Name] = plain(&n.Kids[i])
		}
		return out
	}
	return nil
}

func FuzzParseReadsWhatTheStandardLibraryReads(f *testing.F) {
	for _, s := range []string{`{}`, `[1,-2.5e10,true,false,null]`, `{"a":{"b":["\u00e9\ud83d\ude00\n",""]}}`,
		`{"a":1,"a":2}`, `[1,]`, `{"a"}`, `"\ud800x"`, "\"\x01\"", `nul`, `[[[]]] `, `-`, `01`, "\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := wire.Parse(s)
		var want any
		if !json.Valid([]byte(s)) {
			return // the parser may be more lenient, it must only not crash
		}
		if err != nil {
			t.Fatalf("%q is JSON: %v", s, err)
		}
		if err := decode(s, &want); err != nil {
			return
		}
		if d := cmp.Diff(want, plain(n)); d != "" {
			t.Fatalf("%q: (-want +got)\n%s", s, d)
		}
		back := wire.AppendNode(nil, n)
		again, err := wire.Parse(string(back))
		if err != nil {
			t.Fatalf("%q written as %q: %v", s, back, err)
		}
		if d := cmp.Diff(plain(n), plain(again)); d != "" {
			t.Fatalf("%q: (-want +got)\n%s", s, d)
		}
	})
}

func decode(s string, into *any) error {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	return d.Decode(into)
}
