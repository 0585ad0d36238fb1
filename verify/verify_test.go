package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	schema = change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'},
		Sort: &change.KeyAttr{Name: "sk", Type: 'S'}}
	present = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

const target = "target"

// world is a source table in memory, replicated into the sandbox's Bigtable by program and sink.
type world struct {
	t       testing.TB
	front   *sandbox.Front
	client  *bigtable.Client
	program *transform.Program
	items   map[string]string // key → item, as the source holds it
	version int64
}

func newWorld(t testing.TB, mapping string) *world {
	t.Helper()
	f, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	c, err := bigtable.Open(t.Context(), bigtable.Options{
		Project: "p", Instance: "i", Endpoint: f.Addr(), Pipeline: "p", Now: func() time.Time { return present },
	}, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w := &world{t: t, front: f, client: c, program: compile(t, mapping), items: map[string]string{},
		version: present.UnixMilli()}
	var names []string
	for _, f := range w.program.Families() {
		names = append(names, f.Name)
	}
	c.Declare(target, names)
	tables := tableschema.Tables([]tableschema.Table{{Name: target, Families: w.program.Families()}}, 7*24*time.Hour)
	if _, err := c.Ensure(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	return w
}

func compile(t testing.TB, mapping string) *transform.Program {
	t.Helper()
	table := transform.Table{Pipeline: "p", Source: "S", Target: target, Schema: schema, View: "NEW_AND_OLD_IMAGES"}
	if mapping != "" {
		m, problems := transform.ParseMapping("test.yaml", []byte(mapping))
		if m == nil {
			t.Fatalf("parse: %v", problems)
		}
		table.Mapping = m
	}
	p, problems := transform.Compile(table)
	if p == nil {
		t.Fatalf("compile: %v", problems)
	}
	return p
}

// change makes the next change of an item; an empty item removes it.
func (w *world) change(key, item string) *change.Change {
	w.version++
	c := &change.Change{Op: change.Modify, Version: change.Version(w.version), Created: change.Millis(w.version),
		SequenceNumber: change.SequenceNumber(fmt.Sprint(w.version)),
		Feed:           change.Feed{Stream: "arn:aws:dynamodb:x:1:table/S/stream/l", Shard: "s"}, Keys: []byte(key)}
	if old, ok := w.items[key]; ok {
		c.Old = []byte(old)
	} else {
		c.Op = change.Insert
	}
	if item == "" {
		c.Op = change.Remove
		delete(w.items, key)
		return c
	}
	c.New = []byte(item)
	w.items[key] = item
	return c
}

// put changes an item, by its attributes beside the key, and applies it.
func (w *world) put(pk, sk, rest string) {
	w.t.Helper()
	key := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	item := ""
	if rest != "" {
		item = fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},%s}`, pk, sk, rest)
	}
	w.apply(w.change(key, item))
}

func (w *world) apply(cs ...*change.Change) {
	w.t.Helper()
	var d change.Decoder
	var write transform.Write
	if err := w.program.Coalesce(&d, cs, &write); err != nil {
		w.t.Fatal(err)
	}
	w.write(&write)
}

func (w *world) write(write *transform.Write) {
	w.t.Helper()
	if err := w.client.Apply(w.t.Context(), target, write); err != nil {
		w.t.Fatal(err)
	}
}

// foreign sets or deletes one cell behind the replicator's back.
func (w *world) foreign(row, family, qualifier, value string) {
	w.t.Helper()
	r := transform.Row{Key: []byte(row), Class: transform.ClassK}
	if value == "" {
		r.Deletes = []transform.Delete{{Family: family, Qualifier: []byte(qualifier)}}
	} else {
		r.Cells = []transform.Cell{{Family: family, Qualifier: []byte(qualifier), Value: []byte(value)}}
	}
	w.version++
	w.write(&transform.Write{Item: transform.Item{Guard: [16]byte{1}, Table: "foreign"},
		Version: change.Version(w.version), Rows: []transform.Row{r}})
}

func (w *world) read(ctx context.Context, f func(change.Image) error) error {
	var d change.Decoder
	for _, item := range w.items {
		d.Reset()
		img, err := d.Image([]byte(item))
		if err != nil {
			return err
		}
		if err := f(img); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *world) sources() []oracle.Source {
	return []oracle.Source{{Program: w.program, Schema: schema, Items: w.read}}
}

func (w *world) compare(o oracle.Options) *oracle.Result {
	w.t.Helper()
	rows := func(ctx context.Context, f func(*bigtable.Row) error) error {
		return w.client.Rows(ctx, target, "", "", Views(w.program), f)
	}
	res, err := oracle.Compare(w.t.Context(), o, w.sources(), rows)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func TestEqualSidesAreEqual(t *testing.T) {
	w := newWorld(t, "")
	for i := range 200 {
		w.put(fmt.Sprintf("p%03d", i%17), fmt.Sprintf("s%03d", i), fmt.Sprintf(`"a":{"N":"%d"},"b":{"S":"x"}`, i))
	}
	for i := range 20 {
		w.put(fmt.Sprintf("p%03d", i%17), fmt.Sprintf("s%03d", i), "")
	}
	res := w.compare(oracle.Options{})
	if diff := cmp.Diff(&oracle.Result{Items: 180, Rows: 180, Cells: 360}, res); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryKindOfDifferenceIsFound(t *testing.T) {
	w := newWorld(t, "")
	for _, sk := range []string{"a", "b", "c", "d", "e", "f"} {
		w.put("p", sk, `"x":{"S":"1"},"y":{"S":"2"}`)
	}
	w.foreign("a row before all", "d", "x", "9")
	w.foreign("p#b", "d", "x", "changed")
	w.foreign("p#c", "d", "y", "")
	w.foreign("p#d", "d", "x", "")
	w.foreign("p#d", "d", "y", "")
	w.foreign("p#e", "d", "ghost", "boo")
	w.foreign("z row after all", "d", "x", "9")
	want := []oracle.Difference{
		{Kind: oracle.ExtraRow, Row: "a row before all"},
		{Kind: oracle.Value, Row: "p#b", Family: "d", Qualifier: "x"},
		{Kind: oracle.MissingCell, Row: "p#c", Family: "d", Qualifier: "y"},
		{Kind: oracle.MissingRow, Row: "p#d"},
		{Kind: oracle.ExtraCell, Row: "p#e", Family: "d", Qualifier: "ghost"},
		{Kind: oracle.ExtraRow, Row: "z row after all"},
	}
	res := w.compare(oracle.Options{})
	if diff := cmp.Diff(want, res.Differences, cmpopts.IgnoreFields(oracle.Difference{}, "KeyHash")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if res.Count != 6 || res.MissingRows != 1 || res.ExtraRows != 2 || res.Equal() {
		t.Errorf("%+v", res)
	}
	if res.Differences[3].KeyHash == 0 {
		t.Error("the missing row does not say whose it is")
	}
	shown := w.compare(oracle.Options{ShowValues: true, Limit: 2})
	if d := shown.Differences[1]; string(d.Want) != "1" || string(d.Have) != "changed" || len(shown.Differences) != 2 ||
		shown.Count != 6 {
		t.Errorf("%+v", shown)
	}
}

func TestOldVersionUnderTheNewestIsNotSeen(t *testing.T) {
	w := newWorld(t, "")
	w.put("p", "a", `"x":{"S":"1"}`)
	old := transform.Row{Key: []byte("p#a"), Class: transform.ClassK, Cells: []transform.Cell{
		{Family: "d", Qualifier: []byte("x"), Value: []byte("old"), Time: 1000, Mapped: true}}}
	w.write(&transform.Write{Item: transform.Item{Guard: [16]byte{1}}, Version: change.Version(w.version),
		Rows: []transform.Row{old}})
	if res := w.compare(oracle.Options{}); !res.Equal() {
		t.Errorf("%+v", res)
	}
}

const comments = `
mapping: 1
families: {c: {max_versions: 3}}
rules:
- name: comment
  match: {pk: "{vid}", sk: "c{at:d}"}
  row: "{vid}"
  cells: [{attr: text, to: "c:comments", ts: "{at|int}", cell_id: ts}]
`

func TestSiblingsInOneColumnAreComparedByTheirTimes(t *testing.T) {
	w := newWorld(t, comments)
	for i := range 6 {
		w.put("v1", fmt.Sprintf("c%d", 1000+i), fmt.Sprintf(`"text":{"S":"%d"}`, i))
	}
	w.put("v2", "c1000", `"text":{"S":"x"}`)
	w.put("v2", "c1001", `"text":{"S":"y"}`)
	res := w.compare(oracle.Options{})
	if !res.Equal() || res.Cells != 5 { // max_versions: 3 of six, and two
		t.Errorf("%+v", res)
	}
	w.put("v2", "c1000", "")
	w.items[`{"pk":{"S":"v2"},"sk":{"S":"c1002"}}`] = `{"pk":{"S":"v2"},"sk":{"S":"c1002"},"text":{"S":"z"}}`
	delete(w.items, `{"pk":{"S":"v2"},"sk":{"S":"c1001"}}`)
	want := []oracle.Difference{
		{Kind: oracle.MissingCell, Row: "v2", Family: "c", Qualifier: "comments", Time: 1002},
		{Kind: oracle.ExtraCell, Row: "v2", Family: "c", Qualifier: "comments", Time: 1001},
	}
	if diff := cmp.Diff(want, w.compare(oracle.Options{}).Differences,
		cmpopts.IgnoreFields(oracle.Difference{}, "KeyHash")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDocumentsAsTheyCameAreComparedByContent: the source does not say in which order their JSON
// once came.
func TestDocumentsAsTheyCameAreComparedByContent(t *testing.T) {
	for _, o := range []oracle.Options{{}, {ShowValues: true}} {
		w := newWorld(t, `
families: {d: {max_versions: 1}}
rules: [{name: doc, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{doc: all, to: "d:j", format: raw}]}]`)
		w.apply(w.change(`{"pk":{"S":"a"},"sk":{"S":"1"}}`,
			`{"z":{"SS":["y","x"]},"sk":{"S":"1"}, "pk":{"S":"a"},"n":{"N":"1.0"},"aws:rep:x":{"S":"eu"}}`))
		w.apply(w.change(`{"pk":{"S":"a"},"sk":{"S":"2"}}`, `{"pk":{"S":"a"},"sk":{"S":"2"}}`))
		if res := w.compare(o); !res.Equal() || res.Cells != 2 {
			t.Errorf("%+v: %+v", o, res)
		}
		w.foreign("a#1", "d", "j", `{"pk":{"S":"a"},"sk":{"S":"1"},"n":{"N":"2"}}`)
		w.foreign("a#2", "d", "j", "no document")
		res := w.compare(o)
		if res.Count != 2 || res.Differences[0].Kind != oracle.Value || res.Differences[1].Kind != oracle.Value {
			t.Errorf("%+v: %+v", o, res)
		}
	}
}

func TestRefusedItemIsNotEqual(t *testing.T) {
	w := newWorld(t, comments)
	w.items["x"] = `{"pk":{"S":"v1"},"sk":{"S":"no comment"}}`
	if res := w.compare(oracle.Options{}); res.Refused != 1 || res.Equal() {
		t.Errorf("%+v", res)
	}
}

func TestErrorOfASideIsAnError(t *testing.T) {
	w := newWorld(t, "")
	w.items["x"] = `{"broken`
	_, err := oracle.Compare(t.Context(), oracle.Options{}, w.sources(),
		func(context.Context, func(*bigtable.Row) error) error { return nil })
	if err == nil {
		t.Error("a source that cannot be read was compared")
	}
	w.items = nil
	_, err = oracle.Compare(t.Context(), oracle.Options{}, w.sources(),
		func(ctx context.Context, f func(*bigtable.Row) error) error {
			return w.client.Rows(ctx, "nowhere", "", "", Views(w.program), f)
		})
	if err == nil {
		t.Error("a target that cannot be read was compared")
	}
}

func TestResultInJSON(t *testing.T) {
	out, err := json.Marshal(&oracle.Result{
		Items: 1, Count: 1, Differences: []oracle.Difference{{Kind: oracle.ExtraRow, Row: "r"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"items":1,"refused":0,"rows":0,"cells":0,"unproven":0,"differences":1,"missing_rows":0,"extra_rows":0,` +
		`"list":[{"kind":"extra_row","row":"r"}]}`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}
