package pipeline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline"
)

func TestChangesReachBigtableInOrder(t *testing.T) {
	w := newWorld(t)
	w.createTable("Products")
	r := w.start("Products")
	for i := range 50 {
		w.put("Products", "hats", fmt.Sprint(i%10), fmt.Sprintf(`"n":{"N":"%d"},"a%d":{"S":"x"}`, i, i%3))
	}
	w.delete("Products", "hats", "3")
	w.put("Products", "sh#oes", "s", `"price":{"N":"12.50"}`)
	r.settle()
	r.equal()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRestartGoesOnFromWhatIsStored(t *testing.T) {
	w := newWorld(t)
	w.createTable("Products")
	r := w.start("Products")
	for i := range 20 {
		w.put("Products", "a", fmt.Sprint(i), `"v":{"N":"1"}`)
	}
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		w.put("Products", "a", fmt.Sprint(i), `"w":{"N":"2"}`)
	}
	r = w.start("Products")
	r.settle()
	r.equal()
}

func TestMappingEditIsRefused(t *testing.T) {
	w := newWorld(t)
	w.patient()
	w.createTable("Products")
	r := w.start("Products")
	w.put("Products", "a", "1", `"v":{"N":"1"}`)
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	// Old images would be projected with the new mapping, and what they left behind would stay.
	w.mapping = "families: {d: {max_versions: 1}}\nrules:\n- name: all\n  match: {pk: \"{p}\", sk: \"{s}\"}\n" +
		"  row: \"{s}#{p}\"\n" +
		"  cells: [{attrs: all, except: [pk, sk], to: \"d:{attr}\"}]\n"
	r = w.start("Products")
	refused := (*pipeline.RefusedError)(nil)
	if err := r.end(); !errors.As(err, &refused) || !strings.Contains(refused.What, "mapping") {
		t.Fatalf("an edited mapping was taken: %v", err)
	}
}
