package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

// plant writes a cell as another program would: without a guard, or with one of a pipeline.
func (r *run) plant(row, family, qualifier, pipeline string, at time.Time) {
	r.t.Helper()
	key := []byte("k")
	of := transform.Item{Guard: guard.Qualifier(pipeline, "T", key), Table: "T", Pipeline: pipeline, Key: key}
	cell := transform.Cell{Family: family, Qualifier: []byte(qualifier), Value: []byte("planted")}
	err := r.sink.Apply(r.t.Context(), target("Orders"), &transform.Write{Item: of,
		Version: change.Version(at.UnixMilli()),
		Rows:    []transform.Row{{Key: []byte(row), Class: transform.ClassK, Cells: []transform.Cell{cell}}}})
	if err == nil && pipeline == "" {
		err = r.sink.DeleteCells(r.t.Context(), target("Orders"), []byte(row),
			[]bigtable.Cell{{Family: transform.LiveFamily, Qualifier: of.Guard[:], Time: at}})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Attack 49: only what no guard of its row can own is deleted, all versions of it, and nothing that
// is newer than what a late write of an item may be. What the stream wrote into the row meanwhile
// stays.
func TestForeignCellsAreDeletedOnRequest(t *testing.T) {
	w := newWorld(t)
	w.mapping = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attr: v, to: "d:{s}/v"}, {attr: n, to: "d:{s}/n"}]
`
	w.createTable("Orders")
	w.put("Orders", "p", "1", `"v":{"S":"one"}`)
	r := w.start("Orders")
	r.settle()
	now := r.clock.Now()
	old := now.Add(-time.Hour)
	column := func(row, qualifier string) request.Column {
		return request.Column{Row: []byte(row), Family: "d", Qualifier: []byte(qualifier)}
	}
	r.plant("nobody", "d", "ghost", "", old)
	r.plant("nobody", "d", "ghost", "", old.Add(-time.Minute))
	r.plant("nobody", "d", "kept", "", old) // is not asked for
	r.plant("p", "d", "2/v", "", old)
	r.plant("p", "d", "taken/v", "", old) // an item comes to it before the request
	r.plant("theirs", "d", "x", "other", old)
	r.plant("young", "d", "x", "", now.Add(time.Hour)) // the test's clock may run for minutes until the request is done
	w.put("Orders", "p", "taken", `"n":{"N":"1"}`)
	out := r.answered(r.ask(request.Foreign, request.Item{Columns: []request.Column{
		column("nobody", "ghost"), column("p", "2/v"), column("p", "1/v"), column("p", "taken/v"), column("gone", "x"),
	}}, request.Item{Columns: []request.Column{column("theirs", "x"), column("young", "x"),
		{Row: []byte("p"), Family: transform.LiveFamily, Qualifier: []byte("i")}}}))
	codes := map[string]int{}
	for _, n := range out.Notes {
		codes[n.Code]++
		if n.Code == resync.CodeYoung && (n.Item != 1 || !n.Until.After(now)) {
			t.Errorf("%+v", n)
		}
	}
	want := map[string]int{resync.CodeOwned: 1, resync.CodeOther: 1, resync.CodeYoung: 1, resync.CodeOutside: 1}
	if diff := cmp.Diff(want, codes); diff != "" || out.Deleted != 2 || out.Refused != 4 {
		t.Errorf("%+v (-want +got):\n%s", out, diff)
	}
	r.settle()
	rows := map[string][]string{
		"nobody": {`d:"kept"="planted"`}, "p": {`d:"1/v"="one"`, `d:"taken/n"="1"`}, "theirs": {`d:"x"="planted"`},
		"young": {`d:"x"="planted"`},
	}
	if diff := cmp.Diff(rows, r.stored("Orders")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestForeignCellsAreDeletedByTheOwnerAlone: nothing is deleted before it is proven that all
// changes up to the request are applied, whose guards may own the cells; nor by an owner that may
// have lost its claim, Rule 12.
func TestForeignCellsAreDeletedByTheOwnerAlone(t *testing.T) {
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	r.settle()
	now := change.MillisOf(r.clock.Now())
	r.plant("nobody", "d", "ghost", "", now.Time().Add(-time.Hour))
	errLost, errUnproven := errors.New("lost"), errors.New("unproven")
	program, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "Orders", Target: target("Orders"),
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}, View: "NEW_AND_OLD_IMAGES"})
	if program == nil {
		t.Fatal(problems)
	}
	asked := []request.Item{{Columns: []request.Column{{Row: []byte("nobody"), Family: "d", Qualifier: []byte("ghost")}}}}
	for _, c := range []struct{ proof, owned, want error }{
		{errUnproven, nil, errUnproven}, {nil, errLost, errLost}, {nil, nil, nil},
	} {
		x := resync.ForeignDeleter{
			Life: &life.Life{Target: target("Orders"), Now: func() change.Millis { return now },
				Prove: func(_ context.Context, through change.Millis) error {
					if through <= now+1000 { // a Date is cut to seconds
						t.Errorf("it is proven up to %d, asked at %d", through, now)
					}
					return c.proof
				}},
			Client:    r.sink,
			Programs:  func() ([]*transform.Program, error) { return []*transform.Program{program}, nil },
			MayDelete: func(context.Context) error { return c.owned },
		}
		out, err := x.Delete(t.Context(), asked)
		if !errors.Is(err, c.want) || err == nil && out.Deleted != 1 {
			t.Errorf("proof %v, owned %v: %+v, %v", c.proof, c.owned, out, err)
		}
		if there := len(r.stored("Orders")["nobody"]) > 0; there != (c.want != nil) {
			t.Errorf("proof %v, owned %v: the cell is there: %v", c.proof, c.owned, there)
		}
	}
}
