package presence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// deaf returns a group that hears only what a test gives it.
func deaf() *Group { return New(Options{Me: "me", Logger: zap.NewNop()}, &conn.Conn{}) }

// FuzzDecode: no message makes the reader panic, no age is negative, and what it takes is written
// again as it is.
func FuzzDecode(f *testing.F) {
	full := Message{Member: "a/1", Build: "1.2.3", Reads: 5, Number: 7, Moved: -1, Wanted: []string{"Orders", "Hats"},
		Services: map[string]Service{"dynamodb": {Success: 20}, "bigtable": {Success: -1, Failing: 9000}},
		Logs:     []Log{{Table: "Orders", Epoch: 3, Seq: 99, Appended: 12, Rate: 0.5, Moved: -1}}}
	for _, m := range []Message{full, {Member: "b/2", Leaving: true, Gone: true, Moved: 3}} {
		for _, p := range m.split() {
			data, err := json.Marshal(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, odd := range []string{
		`null`, `{"member":"a","parts":1,"part":-1}`, `{"member":"a","parts":201}`, `{"member":"a","parts":1,"part":1}`,
		`{"member":"a","parts":1,"moved":9223372036854775807,"logs":[{"appended":9223372036855}]}`,
	} {
		f.Add([]byte(odd))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decode(again)
		if third, _ := json.Marshal(same); err != nil || string(third) != string(again) {
			t.Errorf("%s became %s, %v", again, third, err)
		}
		for _, l := range m.Logs {
			for _, ms := range []int64{l.Appended, l.Moved, m.Moved} {
				if age, known := Age(ms); known && age < 0 {
					t.Errorf("%d ms is an age of %s", ms, age)
				}
			}
		}
		g := deaf()
		g.hear(data)
		g.hear(data)
		if g.Hears(m.Member) != (m.Member != g.o.Me && m.Parts == 1 && m.Number > 0 && !m.Gone) {
			t.Errorf("%s is heard: %t", data, g.Hears(m.Member))
		}
	})
}

// FuzzParts: parts of messages that come in any order, several times or not at all, with other
// bytes between them, add up to one of the messages that was said, or to none.
func FuzzParts(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte(`{"member":"m"}`))
	f.Add([]byte{2, 1, 0, 0, 1, 255, 5, 4, 3}, []byte(`{"member":"m","number":2,"part":4,"parts":5}`))
	f.Add([]byte{3, 0, 4, 1, 5, 2}, []byte(`{"member":"other","number":9,"part":0,"parts":1}`))
	f.Add([]byte{255, 0, 1, 255, 2, 255}, []byte(`{"member":"m","number":1,"part":1,"parts":2,"logs":[{"table":"a1"}]}`))
	const messages, parts = 3, 3
	var said [messages][parts][]byte
	var all [messages][]Log
	for n := range said {
		for i := range parts {
			m := Message{Member: "m", Number: uint64(n + 1), Part: i, Parts: parts, Moved: -1,
				Logs: []Log{{Table: fmt.Sprint("a", i), Epoch: uint64(n)}, {Table: fmt.Sprint("b", i), Epoch: uint64(n)}}}
			data, err := json.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			said[n][i], all[n] = data, append(all[n], m.Logs...)
		}
		slices.SortFunc(all[n], byTable)
	}
	f.Fuzz(func(t *testing.T, order, foreign []byte) {
		g := deaf()
		whole := [messages]map[int]bool{}
		for _, i := range order[:min(len(order), 32)] {
			if i == 255 {
				if m, err := decode(foreign); err == nil && m.Member == "m" && (m.Number > messages || m.Parts == parts) {
					return // nothing tells it from what the member says
				}
				g.hear(foreign)
				continue
			}
			n, part := int(i)/parts%messages, int(i)%parts
			g.hear(said[n][part])
			if whole[n] == nil {
				whole[n] = map[int]bool{}
			}
			whole[n][part] = true
		}
		got := g.members["m"]
		if got == nil || got.Number == 0 {
			return
		}
		if got.Parts != parts { // the foreign one
			return
		}
		if len(whole[got.Number-1]) != parts {
			t.Fatalf("message %d is whole after %v", got.Number, whole)
		}
		logs := slices.Clone(got.Logs)
		slices.SortFunc(logs, byTable)
		if d := cmp.Diff(all[got.Number-1], logs); d != "" {
			t.Error(d)
		}
	})
}

func byTable(a, b Log) int { return strings.Compare(a.Table, b.Table) }
