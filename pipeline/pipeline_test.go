package pipeline_test

import (
	"fmt"
	"testing"
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
