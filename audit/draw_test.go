package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source"
)

// drawer returns a Drawer over items, which are spread evenly over the segments, and counts the
// pages that it reads.
func drawer(items, segments int, seed uint64) (d *Drawer, pages *int) {
	pages = new(int)
	return &Drawer{
		Total: segments, Rand: rand.New(rand.NewPCG(seed, 0)),
		Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}},
		Page: func(_ context.Context, segment int) (*source.ItemPage, error) {
			*pages++
			p := &source.ItemPage{Done: true}
			for i := segment; i < items; i += segments {
				p.Items = append(p.Items, fmt.Appendf(nil, `{"x":{"N":"1"},"pk":{"S":"%d"}}`, i))
			}
			return p, nil
		},
	}, pages
}

func (d *Drawer) mustDraw(t *testing.T, n int) []string {
	t.Helper()
	keys, err := d.Draw(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if all := slices.Compact(slices.Sorted(slices.Values(keys))); len(all) != len(keys) {
		t.Errorf("%d of %d drawn items are different", len(all), len(keys))
	}
	return keys
}

func TestAsManyDifferentItemsAreDrawnAsThereAre(t *testing.T) {
	for _, c := range []struct{ items, segments, n, want, pages int }{
		{100_000, 6250, 500, 500, 510},
		{100_000, 100, 500, 500, 500}, // several of one segment
		{100, 10, 100, 100, 100},      // all
		{100, 10, 500, 100, 100},
		{0, 500, 500, 0, 500},
		{3, 500, 500, 3, 500},      // an estimate that was wrong
		{2, 1_000_000, 10, 0, 200}, // and one that was very wrong: it ends
		{40, 1, 7, 7, 7},
	} {
		d, pages := drawer(c.items, c.segments, 7)
		if keys := d.mustDraw(t, c.n); len(keys) != c.want || *pages > c.pages {
			t.Errorf("%+v: %d items of %d pages", c, len(keys), *pages)
		}
	}
}

// TestSeedDecidesWhatIsDrawn: the same items with the same seed, others with another.
func TestSeedDecidesWhatIsDrawn(t *testing.T) {
	draw := func(seed uint64) []string {
		d, _ := drawer(10_000, 625, seed)
		return d.mustDraw(t, 20)
	}
	if a, b := draw(1), draw(1); !slices.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
	if a, b := draw(1), draw(2); slices.Equal(a, b) {
		t.Errorf("twice %v", a)
	}
}

// TestItemsAreDrawnAboutEvenly: of 100 items, each is one of ten in a tenth of the samples.
func TestItemsAreDrawnAboutEvenly(t *testing.T) {
	count := map[string]int{}
	const samples = 2000
	for seed := range uint64(samples) {
		d, _ := drawer(100, 12, seed)
		for _, key := range d.mustDraw(t, 10) {
			count[key]++
		}
	}
	for key, n := range count {
		if n < samples/10*7/10 || n > samples/10*13/10 {
			t.Errorf("%s was drawn %d times of %d", key, n, samples)
		}
	}
	if len(count) != 100 {
		t.Errorf("%d items were drawn", len(count))
	}
}

func TestErrorOfAPageEndsTheDrawing(t *testing.T) {
	d, _ := drawer(10, 1, 1)
	away := errors.New("away")
	d.Page = func(context.Context, int) (*source.ItemPage, error) { return nil, away }
	if _, err := d.Draw(t.Context(), 3); !errors.Is(err, away) {
		t.Error(err)
	}
}

func TestSegmentsAreSmallAndNotTooMany(t *testing.T) {
	for _, c := range []struct {
		n            int
		items, bytes int64
		want         int
	}{{100, 0, 0, 100}, {100, 1_000_000, 1 << 30, 62_500}, {10, 1000, 1 << 40, 1_000_000}, {10, 1 << 40, 0, 1_000_000}} {
		if got := Segments(c.n, c.items, c.bytes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
