package pipeline_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
)

const (
	priceOnly = `
families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:price"}]}]`
	priceAndName = `
families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}",
  cells: [{attr: v, to: "d:price"}, {attr: w, to: "d:name"}]}]`
	swappedRows = `
families: {d: {max_versions: 1}}
rules: [{name: all, match: {pk: "{p}", sk: "{s}"}, row: "{s}#{p}", cells: [{attr: v, to: "d:price"}]}]`
)

// accept stores a mapping of a table and asks the log to accept it, as `mapping accept` does.
func (r *run) accept(table, mapping string) (from, to string) {
	r.t.Helper()
	info, err := r.src.Table(r.t.Context(), table)
	if err != nil {
		r.t.Fatal(err)
	}
	next := *r.world
	next.mapping = mapping
	p, err := next.compile(table)(info)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := p.Keep()
	if err != nil {
		r.t.Fatal(err)
	}
	h := p.Hash()
	to = hex.EncodeToString(h[:])
	if err := r.sink.StoreMapping(r.t.Context(), "shop", table, to, text); err != nil {
		r.t.Fatal(err)
	}
	from = r.fold(table).Identity.Mapping
	r.control(table, &checkpoint.Control{Accept: &checkpoint.Accept{From: from, To: to}, By: "test"})
	return from, to
}

// rowMapping returns the hash of the mapping that the pipeline's row names.
func (r *run) rowMapping(table string) string {
	r.t.Helper()
	row, err := r.sink.LoadState(r.t.Context(), "shop", table)
	if err != nil {
		r.t.Fatal(err)
	}
	return row.Identity.MappingHash
}

// switched waits until the copy with the new mapping is complete.
func (r *run) switched(table, to string) {
	r.t.Helper()
	r.hastenUntil("the mapping is switched and its copy complete", func() bool {
		s := r.fold(table)
		return s.Identity.Mapping == to && s.Switched == nil && s.Copy != nil && s.Copy.Done()
	})
}

func TestColumnIsAddedToATableThatRuns(t *testing.T) {
	for _, restart := range []string{"the daemon runs on", "the daemon was stopped", "killed behind the switch"} {
		t.Run(restart, func(t *testing.T) {
			long(t, "copies a table")
			w := newWorld(t)
			w.patient()
			w.mapping = priceOnly
			w.createTable("Orders")
			r := w.start("Orders")
			for i := range 40 {
				w.put("Orders", fmt.Sprint("p", i%7), fmt.Sprint(i), `"v":{"N":"1"},"w":{"S":"name"}`)
			}
			r.settle()
			r.equal()
			_, to := r.accept("Orders", priceAndName)
			w.mapping = priceAndName
			if restart == "killed behind the switch" {
				r.until("the switch is in the log", func() bool { return r.fold("Orders").Identity.Mapping == to })
			}
			if restart != "the daemon runs on" {
				if err := r.stop(); err != nil {
					t.Fatal(err)
				}
				w.put("Orders", "p1", "1", `"v":{"N":"2"},"w":{"S":"while it was away"}`)
				r = w.restart("Orders")
			}
			r.switched("Orders", to)
			w.put("Orders", "new", "1", `"v":{"N":"3"},"w":{"S":"later"}`)
			w.delete("Orders", "p2", "2")
			r.settle()
			r.equal()
			if got := r.rowMapping("Orders"); got != to {
				t.Errorf("the row names mapping %s, want %s", got, to)
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			w.mapping = priceOnly
			r = w.restart("Orders")
			refused := (*pipeline.RefusedError)(nil)
			if err := r.end(); !errors.As(err, &refused) {
				t.Errorf("the old mapping was taken after the switch: %v", err)
			}
		})
	}
}

// A mapping under which rows move is not accepted, whatever a command has written into the log.
func TestMappingThatMovesRowsIsNotSwitched(t *testing.T) {
	long(t, "3 s")
	w := newWorld(t)
	w.mapping = priceOnly
	w.createTable("Orders")
	r := w.start("Orders")
	w.put("Orders", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	from, _ := r.accept("Orders", swappedRows)
	r.until("the owner has decided", func() bool { return r.fold("Orders").Accepting == nil })
	w.put("Orders", "b", "1", `"v":{"N":"1"}`)
	r.settle()
	r.equal()
	if s := r.fold("Orders"); s.Identity.Mapping != from || s.Switched != nil || r.rowMapping("Orders") != from {
		t.Errorf("%+v, row %s", s.Identity, r.rowMapping("Orders"))
	}
}
